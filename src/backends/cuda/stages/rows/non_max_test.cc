// Non-maximum suppression on CUDA, over the functional model, against the family's plain loops, byte for byte: boxes on a grid
// so that many overlap by the very limit, equal scores, NaN, any layout, more boxes than a block has bits for in one word, more
// classes than are summed at once.
#include "families/non_max/non_max.h"

#include <random>

#include "backends/cuda/cuda_testing.h"
#include "backends/self_tests/sample_testing.h"
#include "families/loops/walk.h"
#include "families/non_max/non_max_gpu.h"
#include "families/registry.h"
#include "families/values/element.h"

namespace sparkle::cuda {
namespace {

// A tensor in host memory, 0x5a wherever nothing was stored.
struct Operand {
  TensorDesc desc;
  std::vector<std::byte> bytes;
  explicit Operand(const TensorDesc& d)
      : desc(d),
        bytes(static_cast<size_t>(std::max<int64_t>(1, extent(d.shape, d.layout)) * size_of(d.dtype)), std::byte{0x5a}) {}
  TensorView view() { return {bytes.data(), desc}; }
};

struct Draw {
  std::mt19937 random;
  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); }
  bool chance(int64_t percent) { return pick(1, 100) <= percent; }
  // Axes in any order, gaps now and then.
  TensorDesc any(DType type, const Dims& shape) {
    std::vector<int> order;
    for (int i = 0; i < shape.size(); ++i) order.insert(order.begin() + pick(0, i), i);
    TensorDesc desc{type, shape, row_major(shape)};
    int64_t stride = chance(20) ? 2 : 1;
    for (const int axis : order) {
      desc.layout.strides[axis] = stride;
      stride = stride * std::max<int64_t>(1, shape[axis]) + (chance(20) ? 3 : 0);
    }
    return desc;
  }
};

struct Boxes {
  Stage stage;
  std::vector<Operand> inputs;
};

Boxes boxes_of(Draw& draw, int64_t images, int64_t classes, int64_t count) {
  NonMaxParams p;
  p.centers = draw.chance(50);
  p.most = draw.chance(10) ? 0 : draw.chance(20) ? INT64_MAX : draw.pick(1, std::max<int64_t>(1, count));
  p.overlap = static_cast<double>(draw.pick(0, 10)) / 10;
  p.has_threshold = draw.chance(50);
  p.threshold = static_cast<double>(draw.pick(0, 8)) / 10;
  Boxes b;
  const TensorDesc boxes = draw.any(DType::f32, {images, count, 4}), scores = draw.any(DType::f32, {images, classes, count});
  b.stage = {p, {boxes, scores}, {draw.any(DType::i64, {images * classes * std::min(p.most, count) + draw.pick(1, 3), 3})}};
  for (const TensorDesc& d : b.stage.inputs) b.inputs.emplace_back(d);
  const int64_t steps = draw.pick(2, 12);
  const auto store = [&](Operand& operand, auto&& value) {
    for_each_index(operand.desc.shape,
                   [&](const Dims& at) { store_element(DType::f32, value(), element_at(operand.view(), at)); });
  };
  store(b.inputs[0], [&] { return draw.chance(1) ? std::nan("") : static_cast<double>(draw.pick(0, 4 * steps)) / 4; });
  store(b.inputs[1], [&] { return draw.chance(3) ? std::nan("") : static_cast<double>(draw.pick(-2, 9)) / 10; });
  return b;
}

// Twice, so that what the first run left in the workspace is found.
void expect_rows_of_reference(CudaBackend& backend, Boxes& b, const std::string& note) {
  SCOPED_TRACE(note + " " + to_text(b.stage.params) + " " + b.stage.inputs[1].shape.to_string());
  Operand wanted(b.stage.outputs[0]), got(b.stage.outputs[0]);
  const std::vector<TensorView> in{b.inputs[0].view(), b.inputs[1].view()};
  const TensorView out = wanted.view();
  info(Family::non_max).reference(b.stage.params, in, {&out, 1});
  const auto kernel = backend.compile(b.stage, LoopSchedule{"groups", "fma-f32", 0}, 0);
  ASSERT_TRUE(kernel.ok()) << kernel.error().message;
  std::vector<std::shared_ptr<Buffer>> buffers;
  for (const Operand* o : {&b.inputs[0], &b.inputs[1], &got})
    buffers.push_back(uploaded(backend, o->bytes.data(), static_cast<int64_t>(o->bytes.size())));
  buffers.push_back(*backend.allocate(std::max<int64_t>(4, (*kernel)->workspace_bytes()), MemoryKind::device));
  std::vector<Buffer*> slots;
  for (const auto& buffer : buffers) slots.push_back(buffer.get());
  Launch launch;
  launch.kernel = kernel->get();
  launch.inputs = {{0, 0}, {1, 0}}, launch.outputs = {{2, 0}}, launch.workspace = {3, 0};
  const auto program = backend.record({&launch, 1});
  ASSERT_TRUE(program.ok()) << program.error().message;
  for (int run = 0; run < 2; ++run) {
    const auto token = backend.submit(**program, slots, {});
    ASSERT_TRUE(token.ok()) << token.error().message;
    const Status ran = backend.wait(*token);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    download(backend, *buffers[2], got.bytes.data(), static_cast<int64_t>(got.bytes.size()));
    EXPECT_TRUE(got.bytes == wanted.bytes) << "run " << run;
  }
}

TEST(CudaNonMax, RandomBoxes) {
  const auto backend = test_backend();
  ASSERT_TRUE(backend);
  const testing::Sample sample = testing::sample();
  for (uint32_t seed = 1; seed <= 40 && !HasFailure(); ++seed) {
    if (!sample.takes(seed)) continue;
    Draw draw{std::mt19937(seed)};
    const int64_t images = draw.pick(1, 3), classes = draw.pick(1, 4), count = draw.pick(1, draw.chance(20) ? 400 : 40);
    Boxes b = boxes_of(draw, images, classes, count);
    expect_rows_of_reference(*backend, b, "seed " + std::to_string(seed));
  }
}

TEST(CudaNonMax, MoreBoxesThanAWordOfEachThreadHasBits) {
  const auto backend = test_backend();
  ASSERT_TRUE(backend);
  Draw draw{std::mt19937(3)};
  Boxes b = boxes_of(draw, 1, 2, 32 * kNonMaxThreads + 77);
  auto p = get<NonMaxParams>(b.stage.params);
  p.most = 12, p.overlap = 0.4;
  b.stage.params = p;
  b.stage.outputs = {draw.any(DType::i64, {2 * p.most + 1, 3})};
  expect_rows_of_reference(*backend, b, "many boxes");
}

TEST(CudaNonMax, MoreClassesThanAreSummedAtOnce) {
  const auto backend = test_backend();
  ASSERT_TRUE(backend);
  Draw draw{std::mt19937(5)};
  Boxes b = boxes_of(draw, 2, 131, 9);
  expect_rows_of_reference(*backend, b, "many classes");
}

TEST(CudaNonMax, NothingAtAll) {
  const auto backend = test_backend();
  ASSERT_TRUE(backend);
  for (const Dims& sizes : {Dims{0, 2, 5}, Dims{2, 0, 5}, Dims{2, 2, 0}}) {
    Boxes b;
    const Dims four{sizes[0], sizes[2], 4}, rows{3, 3};
    b.stage = {NonMaxParams{},
               {{DType::f32, four, row_major(four)}, {DType::f32, sizes, row_major(sizes)}},
               {{DType::i64, rows, row_major(rows)}}};
    for (const TensorDesc& d : b.stage.inputs) b.inputs.emplace_back(d);
    expect_rows_of_reference(*backend, b, sizes.to_string());
  }
}

}  // namespace
}  // namespace sparkle::cuda
