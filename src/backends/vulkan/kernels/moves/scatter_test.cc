// Scatter on Vulkan against the family's plain loops, to the bit: all forms and reductions, updates that meet at one place,
// indices that lie outside (the CPU's words), any layout, nothing to update and nothing to write.
#include "backends/vulkan/kernels/random_stages_testing.h"
#include "families/registry.h"
#include "families/scatter/scatter.h"
#include "families/type_set.h"

namespace sparkle::vulkan {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::f64, DType::i8,  DType::u8,      DType::i16, DType::u16,
                            DType::i32, DType::u32, DType::i64, DType::u64, DType::boolean, DType::bf16};

bool supports(VulkanBackend& backend, DType type, ScatterReduction reduction) {
  const Features& f = backend.context().features();
  if (reduction != ScatterReduction::none && (type == DType::bf16 || (type == DType::f64 && !f.f64))) return false;
  if (type == DType::boolean && (reduction == ScatterReduction::add || reduction == ScatterReduction::mul)) return false;
  return size_of(type) > 2 || (size_of(type) == 1 ? f.i8 : f.f16);
}

void fill_shapes(RandomStage& s, ScatterParams& p, Dims& data, Dims& indices, Dims& updates) {
  const int rank = data.size();
  if (p.form == ScatterForm::elements) {
    p.axis = static_cast<int>(s.random.between(0, rank - 1));
    for (int i = 0; i < rank; ++i) indices.push_back(i == p.axis ? s.random.between(1, 12) : s.random.between(1, data[i]));
    updates = indices;
    return;
  }
  const int64_t tuple = s.random.between(1, rank);
  for (int64_t i = s.random.between(0, 3); i > 0; --i) indices.push_back(s.random.between(1, 6));
  updates = indices;
  indices.push_back(tuple);
  for (int i = static_cast<int>(tuple); i < rank; ++i) updates.push_back(data[i]);
}

TEST(VulkanScatter, UpdatesThatMeetAndIndicesThatLieOutside) {
  SPARKLE_NEEDS_VULKAN(backend);
  int inside = 0, run = 0;
  for (uint64_t seed = 1; seed <= 500 && !HasFailure(); ++seed) {
    RandomStage s(seed);
    ScatterParams p;
    p.form = s.random.chance(50) ? ScatterForm::elements : ScatterForm::tuples;
    p.reduction = static_cast<ScatterReduction>(s.random.chance(40) ? 0 : s.random.between(1, 4));
    const DType type = kTypes[s.random.chance(40) ? 0 : s.random.between(0, std::size(kTypes) - 1)];
    if (!supports(*backend, type, p.reduction)) continue;
    Dims data = s.random.shape(static_cast<int>(s.random.between(1, 4)), 9), indices, updates;
    fill_shapes(s, p, data, indices, updates);
    TensorDesc x = s.any(type, data, 10), places = s.any(s.random.chance(50) ? DType::i64 : DType::i32, indices, 10),
               from = s.any(type, updates, 10), y = s.any(type, data);
    for (TensorDesc* d : {&x, &places, &from, &y}) *d = s.turned(*d);
    const auto value = [&] {
      if (type == DType::boolean) return static_cast<double>(s.random.between(0, 1));
      if (is_float(type)) return s.random.chance(2) ? std::nan("") : s.random.normal();
      return static_cast<double>(s.random.between(kSignedIntegers.has(type) ? -100 : 0, 100));
    };
    s.input(x, value);
    // A third keep to the rule, a third break it at all axes but large ones, a third now and then.
    const int64_t reach = seed % 3 == 0 ? 12 : seed % 3 == 1 ? 0 : 1;
    s.input(places, [&] {
      if (reach != 0 && s.random.chance(4)) return (s.random.chance(50) ? 1 : -1) * (places.dtype == DType::i64 ? 5e15 : 2e9);
      return static_cast<double>(s.random.between(-reach, reach));
    });
    s.input(from, value);
    s.output(y);
    s.stage.params = p;
    auto wanted = exact_outputs(s, s.inputs);
    const Status ran = run_stage(*backend, s.stage, LoopSchedule{"updates", "fma-f32", 0}, s.inputs, s.outputs, 0);
    std::vector<TensorView> views;
    for (TestOperand& i : s.inputs) views.push_back(i.view());
    const Status rule = check_data(s.stage, views, "");
    const std::string what = "seed " + std::to_string(seed) + " " + to_text(s.stage.params) + " " + data.to_string() + " by " +
                             indices.to_string() + " of " + std::string(name_of(type));
    ASSERT_EQ(ran.ok() ? "" : ran.error().message, rule.ok() ? "" : rule.error().message) << what;
    ++run;
    if (!ran.ok()) continue;
    ++inside;
    expect_close(s.outputs[0], wanted[0], 0, what);
  }
  EXPECT_GT(inside, run / 4);
  EXPECT_LT(inside, run);
}

TEST(VulkanScatter, NothingToUpdateOrToWrite) {
  SPARKLE_NEEDS_VULKAN(backend);
  struct Sizes {
    ScatterForm form;
    Dims data, indices, updates;
  };
  for (const Sizes& sizes :
       {Sizes{ScatterForm::elements, {4, 3}, {0, 3}, {0, 3}}, Sizes{ScatterForm::tuples, {4, 3}, {0, 1}, {0, 3}},
        Sizes{ScatterForm::elements, {0, 3}, {2, 3}, {2, 3}}, Sizes{ScatterForm::tuples, {4, 0}, {2, 1}, {2, 0}},
        Sizes{ScatterForm::tuples, {0, 4}, {2, 1}, {2, 4}}}) {
    RandomStage s(1);
    s.stage.params = ScatterParams{sizes.form, ScatterReduction::none, 0};
    s.input({DType::f32, sizes.data, row_major(sizes.data)});
    s.input({DType::i64, sizes.indices, row_major(sizes.indices)}, [] { return 1.0; });
    s.input({DType::f32, sizes.updates, row_major(sizes.updates)});
    s.output({DType::f32, sizes.data, row_major(sizes.data)});
    const Status ran = run_stage(*backend, s.stage, LoopSchedule{"updates", "fma-f32", 0}, s.inputs, s.outputs, 0);
    std::vector<TensorView> views;
    for (TestOperand& i : s.inputs) views.push_back(i.view());
    const Status rule = check_data(s.stage, views, "");
    ASSERT_EQ(ran.ok() ? "" : ran.error().message, rule.ok() ? "" : rule.error().message) << sizes.data.to_string();
    if (ran.ok()) expect_close(s.outputs[0], exact_outputs(s, s.inputs)[0], 0, sizes.data.to_string());
  }
}

TEST(VulkanScatter, OneHot) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (uint64_t seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    RandomStage s(seed);
    constexpr DType kIndices[] = {DType::f32, DType::i32, DType::u32, DType::i64, DType::u64};
    const DType index = kIndices[seed % std::size(kIndices)], type = kTypes[s.random.between(0, std::size(kTypes) - 1)];
    if (!supports(*backend, type, ScatterReduction::none)) continue;
    const Dims indices = s.random.shape(static_cast<int>(s.random.between(0, 4)), 9);
    const int axis = static_cast<int>(s.random.between(0, indices.size()));
    const int64_t size = s.random.between(1, 20);
    Dims y = indices;
    y.insert(axis, size);
    TensorDesc places = s.any(index, indices, 10);
    s.input(s.turned(places), [&] {
      if (s.random.chance(3)) return index == DType::f32 ? (s.random.chance(50) ? std::nan("") : -1e30) : 2e9;
      const auto near =
          static_cast<double>(s.random.between(index == DType::u32 || index == DType::u64 ? 0 : -size - 2, size + 2));
      return index == DType::f32 ? near + static_cast<double>(s.random.between(-3, 3)) / 4 : near;
    });
    s.input(s.any(type, {2}), [&] { return static_cast<double>(s.random.between(0, 1)); });
    s.output(s.turned(s.any(type, y)));
    s.stage.params = ScatterParams{ScatterForm::one_hot, ScatterReduction::none, axis};
    auto wanted = exact_outputs(s, s.inputs);
    const Status ran = run_stage(*backend, s.stage, LoopSchedule{"updates", "fma-f32", 0}, s.inputs, s.outputs, 0);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    expect_close(s.outputs[0], wanted[0], 0,
                 "seed " + std::to_string(seed) + " " + y.to_string() + " at " + std::to_string(axis));
  }
}

}  // namespace
}  // namespace sparkle::vulkan
