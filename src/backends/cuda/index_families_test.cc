// Families that rank, add up along rows, or follow indices, over the functional model: random stages larger than self-tests
// have - rows in parts, sorts that merge, updates that meet - of each type, in any layout, against the family's plain loops.
#include "backends/cuda/cuda_testing.h"
#include "backends/self_tests/sample_run.h"
#include "backends/self_tests/sample_testing.h"
#include "families/deform/deform.h"
#include "families/pool/pool.h"
#include "families/reduce/reduce.h"
#include "families/registry.h"
#include "families/rotary/rotary.h"
#include "families/sample/sample.h"
#include "families/scan/scan.h"
#include "families/scatter/scatter.h"
#include "families/top_k/top_k.h"
#include "families/triangle/triangle.h"
#include "families/type_set.h"
#include "families/windows/samples.h"

namespace sparkle::cuda {
namespace {

constexpr DType kEveryNumber[] = {DType::f32, DType::i64, DType::f16, DType::u8,  DType::bf16, DType::i32,
                                  DType::u32, DType::i8,  DType::u64, DType::i16, DType::u16};

struct Draw {
  std::mt19937 random;
  int64_t pick(int64_t low, int64_t high) { return static_cast<int64_t>(drawn_between(low, high, random)); }
  bool chance(int64_t percent) { return pick(1, 100) <= percent; }
  // Axes in any order, gaps now and then.
  TensorDesc any(DType type, const Dims& shape) {
    const int rank = shape.size();
    std::vector<int> order;
    for (int i = 0; i < rank; ++i) order.insert(order.begin() + pick(0, i), i);
    TensorDesc desc{type, shape, row_major(shape)};
    int64_t stride = chance(20) ? 2 : 1;
    for (const int axis : order) {
      desc.layout.strides[axis] = stride;
      stride = stride * std::max<int64_t>(1, shape[axis]) + (chance(20) ? 3 : 0);
    }
    return desc;
  }
};

// Runs the stage that `make` draws for each of so many seeds by every schedule that the planner has for it.
template <class Make>
void check(uint32_t seeds, Make&& make) {
  const auto backend = test_backend();
  ASSERT_TRUE(backend);
  const testing::Sample sample = testing::sample();
  int run = 0;
  for (uint32_t seed = 1; seed <= seeds && !::testing::Test::HasFailure(); ++seed) {
    if (!sample.takes(seed)) continue;
    Draw draw{std::mt19937(seed)};
    const Stage stage = make(draw, seed);
    const FamilyInfo& family = info(stage.family());
    for (const Variant& variant : family.variants) {
      Reason why = Reason::none;
      for (const Schedule& schedule : family.schedules(stage, variant, backend->device(), why)) {
        const Status ran = run_sample(*backend, stage, schedule, 0, {});
        EXPECT_TRUE(ran.ok()) << "seed " << seed << " " << to_text(schedule) << " " << to_text(stage.params) << " "
                              << stage.inputs[0].shape.to_string() << " " << name_of(stage.inputs[0].dtype) << ": "
                              << (ran.ok() ? "" : ran.error().message);
        ++run;
      }
    }
  }
  EXPECT_GE(run, static_cast<int>(seeds / sample.share) / 2);
}

DType type_of(uint32_t seed) { return kEveryNumber[seed % std::size(kEveryNumber)]; }

// One row in five is long enough for parts of its own.
Dims rows_shape(Draw& draw, int& axis) {
  if (draw.chance(20)) {
    axis = static_cast<int>(draw.pick(0, 1));
    return axis ? Dims{draw.pick(1, 3), draw.pick(4100, 9000)} : Dims{draw.pick(4100, 9000), draw.pick(1, 3)};
  }
  Dims shape;
  for (int64_t i = draw.pick(1, 4); i > 0; --i) shape.push_back(draw.pick(1, 14));
  axis = static_cast<int>(draw.pick(0, shape.size() - 1));
  shape[axis] = draw.pick(1, 300);
  return shape;
}

TEST(CudaScan, RandomRows) {
  check(66, [](Draw& draw, uint32_t seed) {
    ScanParams p;
    const Dims shape = rows_shape(draw, p.axis);
    p.exclusive = draw.chance(50), p.reverse = draw.chance(50);
    const DType type = seed % 6 == 0 ? DType::f64 : type_of(seed);
    return Stage{p, {draw.any(type, shape)}, {draw.any(type, shape)}};
  });
}

// Doubles, bytes and truth values among the types; integers have no roots and logarithms here, truth values extrema alone.
TEST(CudaReduce, RandomRows) {
  check(96, [](Draw& draw, uint32_t seed) {
    ReduceParams p;
    int axis = 0;
    Dims shape = rows_shape(draw, axis);
    p.axes = {axis};
    const DType type = seed % 4 == 0 ? DType::f64 : seed % 4 == 1 ? DType::boolean : type_of(seed);
    constexpr ReduceKind kExtrema[] = {ReduceKind::max, ReduceKind::min};
    constexpr ReduceKind kOfIntegers[] = {ReduceKind::sum, ReduceKind::mean, ReduceKind::max, ReduceKind::min, ReduceKind::l1};
    constexpr ReduceKind kOfReals[] = {ReduceKind::sum, ReduceKind::mean,        ReduceKind::max,
                                       ReduceKind::l2,  ReduceKind::log_sum_exp, ReduceKind::sum_square};
    p.kind = type == DType::boolean ? kExtrema[draw.pick(0, 1)]
             : is_float(type)       ? kOfReals[draw.pick(0, 5)]
                                    : kOfIntegers[draw.pick(0, 4)];
    Stage stage{p, {draw.any(type, shape)}, {}};
    shape[axis] = 1;
    stage.outputs = {draw.any(type, shape)};
    return stage;
  });
}

TEST(CudaPool, MaximaOfBytes) {
  check(40, [](Draw& draw, uint32_t seed) {
    PoolParams p;
    for (size_t i = 1; i < 3; ++i) {
      p.window.filter[i] = draw.pick(1, 4), p.window.stride[i] = draw.pick(1, 3), p.window.dilation[i] = draw.pick(1, 2);
      p.window.pad_begin[i] = p.window.pad_end[i] = draw.pick(0, (p.window.filter[i] - 1) * p.window.dilation[i] / 2);
    }
    Dims x{draw.pick(1, 3), draw.pick(1, 9), draw.pick(8, 20), draw.pick(8, 20)}, y = x;
    for (int i = 0; i < 2; ++i) {
      const auto axis = static_cast<size_t>(i + 1);
      const Window& w = p.window;
      y[i + 2] =
          (x[i + 2] + w.pad_begin[axis] + w.pad_end[axis] - (w.filter[axis] - 1) * w.dilation[axis] - 1) / w.stride[axis] + 1;
    }
    const DType type = seed % 2 ? DType::u8 : DType::i8;
    Stage stage{p, {draw.any(type, x)}, {draw.any(type, y)}};
    if (draw.chance(30)) stage.outputs.push_back(draw.any(DType::i64, y));
    return stage;
  });
}

TEST(CudaTopK, RandomRows) {
  check(88, [](Draw& draw, uint32_t seed) {
    TopKParams p;
    Dims shape = rows_shape(draw, p.axis);
    p.k = draw.chance(40) ? 1 : draw.pick(1, std::min<int64_t>(shape[p.axis], draw.chance(50) ? 5 : 3000));
    p.largest = draw.chance(50), p.last_of_equals = draw.chance(50), p.nan_first = draw.chance(50);
    const DType type = type_of(seed);
    Stage stage{p, {draw.any(type, shape)}, {}};
    shape[p.axis] = p.k;
    if (p.k > 1 || draw.chance(50)) stage.outputs.push_back(draw.any(type, shape));
    stage.outputs.push_back(draw.any(DType::i64, shape));
    return stage;
  });
}

TEST(CudaScatter, UpdatesThatMeet) {
  check(110, [](Draw& draw, uint32_t seed) {
    ScatterParams p;
    p.form = draw.chance(50) ? ScatterForm::elements : ScatterForm::tuples;
    p.reduction = static_cast<ScatterReduction>(draw.pick(0, 4));
    Dims data, indices, updates;
    for (int64_t i = draw.pick(1, 4); i > 0; --i) data.push_back(draw.pick(4, 9));  // indices of samples are below 4
    p.axis = static_cast<int>(draw.pick(0, data.size() - 1));
    if (p.form == ScatterForm::elements) {
      for (int i = 0; i < data.size(); ++i) indices.push_back(i == p.axis ? draw.pick(1, 12) : draw.pick(1, data[i]));
      updates = indices;
    } else {
      const int64_t tuple = draw.pick(1, data.size());
      for (int64_t i = draw.pick(0, 3); i > 0; --i) indices.push_back(draw.pick(1, 6));
      updates = indices;
      indices.push_back(tuple);
      for (auto i = static_cast<int>(tuple); i < data.size(); ++i) updates.push_back(data[i]);
    }
    const DType type = type_of(seed);
    return Stage{p,
                 {draw.any(type, data), draw.any(draw.chance(50) ? DType::i64 : DType::i32, indices), draw.any(type, updates)},
                 {draw.any(type, data)}};
  });
}

TEST(CudaSample, RandomPositions) {
  constexpr DType kReals[] = {DType::f32, DType::f16, DType::bf16};
  check(90, [&](Draw& draw, uint32_t seed) {
    SampleParams p;
    p.mode = static_cast<SampleMode>(draw.pick(0, 2)), p.padding = static_cast<SamplePadding>(draw.pick(0, 2));
    p.align_corners = draw.chance(50);
    const DType type = kReals[seed % std::size(kReals)];
    const int64_t spatial = draw.pick(1, 3), images = draw.pick(1, 3), channels = draw.pick(1, 9);
    Dims x{images, channels}, grid{images}, y = x;
    for (int64_t i = 0; i < spatial; ++i) {
      x.push_back(draw.pick(1, 9)), y.push_back(draw.pick(1, 7));
      grid.push_back(y.back());
    }
    grid.push_back(spatial);
    return Stage{p, {draw.any(type, x), draw.any(type, grid)}, {draw.any(type, y)}};
  });
}

TEST(CudaDeform, RandomOffsets) {
  constexpr DType kReals[] = {DType::f32, DType::f16, DType::bf16};
  check(120, [&](Draw& draw, uint32_t seed) {
    DeformParams p;
    for (size_t i = 0; i < 2; ++i) {
      p.filter[i] = draw.pick(1, 3), p.stride[i] = draw.pick(1, 2);
      p.dilation[i] = draw.pick(1, 2), p.pad_begin[i] = draw.pick(0, 2);
    }
    p.groups = draw.pick(1, 3), p.offset_groups = draw.pick(1, 2);
    p.bias = draw.chance(50), p.mask = draw.chance(50);
    const DType type = kReals[seed % std::size(kReals)];
    const int64_t n = draw.pick(1, 2), inner = 2 * draw.pick(1, 5), taps = p.filter[0] * p.filter[1];
    const int64_t k = p.groups * draw.pick(1, draw.chance(20) ? 70 : 9), rows = draw.pick(1, 7), columns = draw.pick(1, 7);
    Stage stage;
    stage.params = p;
    stage.inputs = {draw.any(type, {n, p.groups * inner, draw.pick(1, 9), draw.pick(1, 9)}),
                    draw.any(type, {k, inner, p.filter[0], p.filter[1]}),
                    draw.any(type, {n, p.offset_groups * taps * 2, rows, columns})};
    if (p.bias) stage.inputs.push_back(draw.any(type, {k}));
    if (p.mask) stage.inputs.push_back(draw.any(type, {n, p.offset_groups * taps, rows, columns}));
    stage.outputs = {draw.any(type, {n, k, rows, columns})};
    return stage;
  });
}

TEST(CudaTriangle, RandomMatrices) {
  check(55, [](Draw& draw, uint32_t seed) {
    Dims shape;
    for (int64_t i = draw.pick(2, 5); i > 0; --i) shape.push_back(draw.pick(1, i > 2 ? 4 : 70));
    const int64_t diagonal = draw.chance(10) ? (draw.chance(50) ? INT64_MAX : INT64_MIN) : draw.pick(0, 80) - 40;
    const DType type = type_of(seed);
    return Stage{TriangleParams{draw.chance(50), diagonal}, {draw.any(type, shape)}, {draw.any(type, shape)}};
  });
}

TEST(CudaRotary, RandomPairs) {
  constexpr DType kReals[] = {DType::f32, DType::f16, DType::bf16};
  check(45, [&](Draw& draw, uint32_t seed) {
    const DType type = kReals[seed % std::size(kReals)];
    const int64_t pairs = draw.pick(1, 70), heads = draw.pick(1, 5), positions = draw.pick(1, 9);
    const Dims shape{heads, positions, 2 * pairs + draw.pick(0, 9)};
    TensorDesc angle = draw.any(type, {heads, positions, pairs});
    if (draw.chance(50)) angle.layout.strides[0] = 0;  // one for all heads
    return Stage{RotaryParams{draw.chance(50)}, {draw.any(type, shape), angle, angle}, {draw.any(type, shape)}};
  });
}

}  // namespace
}  // namespace sparkle::cuda
