// The Vulkan kernels that move data (copy, pad, triangle, gather) against their families' references, byte for byte.
#include "backends/vulkan/kernels/random_stages_testing.h"
#include "families/copy/copy.h"
#include "families/gather/gather.h"
#include "families/pad/pad.h"
#include "families/registry.h"
#include "families/triangle/triangle.h"

namespace sparkle::vulkan {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::u8, DType::i64, DType::f16, DType::boolean, DType::i32};

DType type_of(RandomStage& s) { return s.random.chance(50) ? DType::f32 : kTypes[s.random.between(0, std::size(kTypes) - 1)]; }
auto small_integers(RandomStage& s) {
  return [&s] { return static_cast<double>(s.random.between(0, 100)); };
}
bool supports(VulkanBackend& backend, DType type) {
  const Features& f = backend.context().features();
  return size_of(type) > 2 || (size_of(type) == 1 ? f.i8 : f.f16);
}

TEST(VulkanCopy, ChunksBetweenAnyLayouts) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    RandomStage s(seed);
    const DType type = type_of(s);
    if (!supports(*backend, type)) continue;
    const int rank = static_cast<int>(s.random.between(0, 8));
    Dims shape = s.random.shape(rank, rank <= 2 ? 60 : rank <= 4 ? 9 : 3);
    if (rank > 0 && s.random.chance(40)) shape[rank - 1] = 4 * s.random.between(1, 4);
    TensorDesc x = s.any(type, shape, 10);
    x = s.turned(x, 30);
    s.input(x, small_integers(s));
    s.output(s.any(type, shape));
    s.stage.params = CopyParams{};
    EXPECT_TRUE(check_stage(*backend, s, "units", 0, 0, "seed " + std::to_string(seed)));
  }
}

TEST(VulkanCopy, TransposesInTiles) {
  SPARKLE_NEEDS_VULKAN(backend);
  int supported = 0;
  for (uint64_t seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    RandomStage s(seed);
    const DType type = type_of(s);
    if (!supports(*backend, type)) continue;
    const int rank = static_cast<int>(s.random.between(2, 5));
    const Dims shape = s.random.shape(rank, rank <= 3 ? 80 : 14);
    TensorDesc x{type, shape, row_major(shape)}, y{type, shape, channels_last(shape)};
    if (s.random.chance(50)) std::swap(x, y);
    if (s.random.chance(40)) x = s.any(type, shape);
    y = s.turned(y, 20);
    s.input(x, small_integers(s));
    s.output(y);
    s.stage.params = CopyParams{};
    supported += check_stage(*backend, s, "transpose", 0, 0, "seed " + std::to_string(seed));
  }
  EXPECT_GT(supported, 40);
}

// 65,535 workgroups along one dimension are not enough for these.
TEST(VulkanCopy, ManyWorkgroups) {
  SPARKLE_NEEDS_VULKAN(backend);
  RandomStage s(1);
  const Dims shape{3, 1031, 9000};
  TensorDesc x{DType::u8, shape, row_major(shape)}, y{DType::u8, shape, row_major(shape)};
  if (!supports(*backend, DType::u8)) GTEST_SKIP() << "the device does not store bytes";
  x.layout.strides[2] = 0;
  s.inputs.emplace_back(x);
  s.stage.inputs.push_back(x);
  for (size_t i = 0; i < s.inputs[0].bytes.size(); ++i) s.inputs[0].bytes[i] = static_cast<std::byte>(i * 31 + 7);
  s.output(y);
  s.stage.params = CopyParams{};
  const Schedule schedule = LoopSchedule{"units", "fma-f32", 0};
  const Status ran = run_stage(*backend, s.stage, schedule, s.inputs, s.outputs, 0);
  ASSERT_TRUE(ran.ok()) << ran.error().message;
  for (int64_t row = 0; row < 3 * 1031; row += 103)
    for (const int64_t column : {0, 1, 511, 8999})
      ASSERT_EQ(s.outputs[0].bytes[static_cast<size_t>(row * 9000 + column)],
                s.inputs[0].bytes[static_cast<size_t>(row * 9000)]);
}

TEST(VulkanPad, AllModes) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    RandomStage s(seed);
    const DType type = type_of(s);
    if (!supports(*backend, type)) continue;
    const int rank = static_cast<int>(s.random.between(0, 6));
    const Dims shape = s.random.shape(rank, rank <= 2 ? 40 : rank <= 4 ? 9 : 4);
    Dims padded;
    PadParams p;
    p.mode = static_cast<PadMode>(s.random.between(0, 3));
    p.value = static_cast<double>(s.random.between(0, 1) * (type == DType::boolean ? 1 : 37));
    for (int i = 0; i < rank; ++i) {
      const bool is_padded = s.random.chance(50);
      p.begin.push_back(is_padded ? s.random.between(-1, 6) : 0);
      p.end.push_back(is_padded ? s.random.between(-1, 6) : 0);
      if (shape[i] + p.begin[i] + p.end[i] < 0) p.end[i] = 0;
      padded.push_back(shape[i] + p.begin[i] + p.end[i]);
    }
    const bool last = s.random.chance(40);
    TensorDesc x{type, shape, last ? channels_last(shape) : s.random.layout(shape, 10)};
    x = s.turned(x, 30);
    s.input(x, small_integers(s));
    s.output({type, padded, last ? channels_last(padded) : s.random.layout(padded)});
    s.stage.params = p;
    EXPECT_TRUE(check_stage(*backend, s, "units", 0, 0, "seed " + std::to_string(seed)));
  }
}

TEST(VulkanTriangle, AnyDiagonal) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    RandomStage s(seed);
    const DType type = type_of(s);
    if (!supports(*backend, type)) continue;
    const int rank = static_cast<int>(s.random.between(2, 8));
    Dims shape = s.random.shape(rank, rank <= 2 ? 60 : rank <= 4 ? 9 : 3);
    if (s.random.chance(40)) shape[rank - 1] = 4 * s.random.between(1, 4);
    if (s.random.chance(5)) shape[static_cast<int>(s.random.between(0, rank - 1))] = 0;
    TensorDesc x = s.any(type, shape, 10), y = s.any(type, shape);
    // Elements of other matrices side by side.
    if (rank > 2 && s.random.chance(20)) shape[0] = 8, x = {type, shape, channels_last(shape)}, y = x;
    x = s.turned(x, 30);
    s.input(x, small_integers(s));
    s.output(y);
    const int64_t far = s.random.chance(50) ? INT64_MIN : INT64_MAX;
    s.stage.params = TriangleParams{s.random.chance(50), s.random.chance(10) ? far : s.random.between(-20, 20)};
    EXPECT_TRUE(check_stage(*backend, s, "units", 0, 0, "seed " + std::to_string(seed)));
  }
}

TEST(VulkanGather, AllFormsWithIndicesThatLieOutsideToo) {
  SPARKLE_NEEDS_VULKAN(backend);
  int inside = 0;
  for (uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    RandomStage s(seed);
    const DType type = type_of(s);
    if (!supports(*backend, type)) continue;
    GatherParams p;
    p.form = static_cast<GatherForm>(s.random.between(0, 2));
    const int rank = static_cast<int>(s.random.between(1, 4));
    Dims x = s.random.shape(rank, 9), indices, y;
    if (s.random.chance(40)) x[rank - 1] = 4 * s.random.between(1, 5);
    p.axis = static_cast<int>(s.random.between(0, rank - 1));
    if (p.form == GatherForm::elements) {
      for (int i = 0; i < rank; ++i) indices.push_back(i == p.axis ? s.random.between(1, 12) : s.random.between(1, x[i]));
      y = indices;
    } else if (p.form == GatherForm::slices) {
      indices = s.random.shape(static_cast<int>(s.random.between(0, 3)), 5);
      for (int i = 0; i < p.axis; ++i) y.push_back(x[i]);
      for (const int64_t i : indices) y.push_back(i);
      for (int i = p.axis + 1; i < rank; ++i) y.push_back(x[i]);
    } else {
      p.axis = 0;
      p.batch_axes = static_cast<int>(s.random.between(0, rank - 1));
      const int64_t tuple = s.random.between(1, rank - p.batch_axes);
      for (int i = 0; i < p.batch_axes; ++i) indices.push_back(x[i]);
      for (int64_t i = s.random.between(0, 2); i > 0; --i) indices.push_back(s.random.between(1, 5));
      y = indices;
      indices.push_back(tuple);
      for (int i = p.batch_axes + static_cast<int>(tuple); i < rank; ++i) y.push_back(x[i]);
    }
    TensorDesc from = s.any(type, x), places = s.any(s.random.chance(50) ? DType::i64 : DType::i32, indices, 10);
    from = s.turned(from, 30);
    places = s.turned(places, 20);
    s.input(from, small_integers(s));
    const bool is_long = places.dtype == DType::i64;
    // A third keep to the rule, a third break it at all axes but large ones, a third now and then.
    const int64_t reach = seed % 3 == 0 ? 12 : seed % 3 == 1 ? 0 : 1;
    s.input(places, [&] {
      if (reach != 0 && s.random.chance(4)) return (s.random.chance(50) ? 1 : -1) * (is_long ? 5e15 : 2e9);
      return static_cast<double>(s.random.between(-reach, reach));
    });
    s.output(s.any(type, y));
    s.stage.params = p;
    EXPECT_TRUE(check_stage(*backend, s, "units", 0, 0, "seed " + std::to_string(seed)));
    std::vector<TensorView> views;
    for (TestOperand& i : s.inputs) views.push_back(i.view());
    inside += check_data(s.stage, views, "").ok();
  }
  EXPECT_GT(inside, 80);
  EXPECT_LT(inside, 260);
}

// Where there is nothing to pick from, or nothing to write, indices are looked at all the same.
TEST(VulkanGather, IndicesIntoNothing) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (const Dims& x : {Dims{0, 3}, Dims{3, 0}}) {
    for (const GatherForm form : {GatherForm::slices, GatherForm::tuples}) {
      RandomStage s(1);
      s.stage.params = GatherParams{0, form, 0};
      s.input({DType::f32, x, row_major(x)}, [] { return 0; });
      const Dims indices = form == GatherForm::tuples ? Dims{5, 1} : Dims{5}, y{5, x[1]};
      int next = 0;
      s.input({DType::i64, indices, row_major(indices)}, [&] { return next++ < 3 ? 0.0 : -7e12; });
      s.output({DType::f32, y, row_major(y)});
      const Status ran = run_stage(*backend, s.stage, LoopSchedule{"units", "fma-f32", 0}, s.inputs, s.outputs, 0);
      std::vector<TensorView> views;
      for (TestOperand& i : s.inputs) views.push_back(i.view());
      const Status rule = check_data(s.stage, views, "");
      ASSERT_FALSE(ran.ok() || rule.ok());
      EXPECT_EQ(ran.error().message, rule.error().message);
    }
  }
}

}  // namespace
}  // namespace sparkle::vulkan
