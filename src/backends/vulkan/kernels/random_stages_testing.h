// For tests of kernels that read any layout: stages of random shapes with operands of random layouts, and their check against
// the family's reference.
#pragma once

#include "backends/vulkan/vulkan_testing.h"
#include "families/registry.h"
#include "families/resize/resize.h"

namespace sparkle::vulkan {

struct RandomStage {
  cpu::TestRandom random;
  DType real;  // of operands that are not said to be of another type
  Stage stage;
  std::vector<TestOperand> inputs, outputs;

  explicit RandomStage(uint64_t seed, DType type = DType::f32) : random(seed), real(type) {}
  template <class F>
  void input(const TensorDesc& desc, F&& value) {
    inputs.emplace_back(desc);
    inputs.back().fill(value);
    stage.inputs.push_back(desc);
  }
  void input(const TensorDesc& desc) {
    input(desc, [&] { return random.normal(); });
  }
  void output(const TensorDesc& desc) {
    outputs.emplace_back(desc);
    stage.outputs.push_back(desc);
  }
  // Channels last, gaps of whole vectors between rows; offsets too.
  TensorDesc in_vec4(const Dims& shape) {
    TensorDesc desc{real, shape, channels_last(shape)};
    if (random.chance(40)) {
      const int64_t gap = 4 * random.between(0, 2), parts = random.between(0, 1);
      for (int i = 0; i < shape.size(); ++i)
        if (i != 1) desc.layout.strides[i] += gap * desc.layout.strides[i] / (desc.layout.strides[shape.size() - 1]) * parts;
      desc.layout.offset = 4 * random.between(0, 3);
    }
    return desc;
  }
  TensorDesc any(DType type, const Dims& shape, int broadcast = 0) { return {type, shape, random.layout(shape, broadcast)}; }
  TensorDesc any(const Dims& shape, int broadcast = 0) { return any(real, shape, broadcast); }
  // Now and then some axes run backwards: element (0,...,0) is then the last one along them.
  TensorDesc turned(TensorDesc d, int percent = 30) {
    if (!random.chance(percent)) return d;
    for (int i = 0; i < d.shape.size(); ++i)
      if (random.chance(20)) {
        d.layout.offset += (d.shape[i] - 1) * d.layout.strides[i];
        d.layout.strides[i] = -d.layout.strides[i];
      }
    return d;
  }
};

inline const Variant* variant_named(Family family, std::string_view name) {
  for (const Variant& v : info(family).variants)
    if (v.name == name && v.for_workgroups()) return &v;
  return nullptr;
}

// The outputs that the reference gives in the stage's own types: for families whose references read x as they write y.
inline std::vector<TestOperand> exact_outputs(const RandomStage& s, std::vector<TestOperand>& inputs) {
  std::vector<TensorView> in, out;
  std::vector<TestOperand> results;
  for (TestOperand& i : inputs) in.push_back(i.view());
  for (const TensorDesc& d : s.stage.outputs) results.emplace_back(d);
  for (TestOperand& r : results) out.push_back(r.view());
  info(s.stage.family()).reference(s.stage.params, in, out);
  return results;
}

// Runs the variant and compares; `tolerance` as expect_close() has it. `pick`: which of the schedules, for each is a pipeline
// of its own, which takes software devices up to a second. False where the variant does not support the stage.
inline bool check_stage(VulkanBackend& backend, RandomStage& s, std::string_view variant, double tolerance, uint32_t constants,
                        const std::string& what, size_t pick = 0) {
  const Variant* row = variant_named(s.stage.family(), variant);
  if (!row) {
    ADD_FAILURE() << "there is no variant " << variant;
    return false;
  }
  Reason why = Reason::none;
  const auto schedules = info(s.stage.family()).schedules(s.stage, *row, backend.device(), why);
  if (schedules.empty()) return false;
  const Schedule& schedule = schedules[pick % schedules.size()];
  const auto* resize = get_if<ResizeParams>(&s.stage.params);
  const bool filters = resize && resize->mode != ResizeMode::nearest && s.real == DType::f16;
  const auto comparison = info(s.stage.family()).comparison;
  const bool moves = comparison && comparison(s.stage).in_native_type && !filters;
  auto wanted = moves ? exact_outputs(s, s.inputs) : reference_outputs(s.stage, s.inputs);
  const Status ran = run_stage(backend, s.stage, schedule, s.inputs, s.outputs, constants);
  // Where the data breaks a rule of the family the CPU refuses it with the same words.
  std::vector<TensorView> views;
  for (TestOperand& i : s.inputs) views.push_back(i.view());
  const Status rule = check_data(s.stage, views, "");
  EXPECT_EQ(ran.ok() ? "" : ran.error().message, rule.ok() ? "" : rule.error().message) << what;
  if (ran.ok() != rule.ok()) return true;
  std::string text = what + " " + to_text(schedule) + " " + to_text(s.stage.params);
  for (const auto* list : {&s.stage.inputs, &s.stage.outputs})
    for (const TensorDesc& d : *list)
      text += " " + d.shape.to_string() + "@" + d.layout.strides.to_string() + "+" + std::to_string(d.layout.offset);
  for (size_t i = 0; i < s.outputs.size(); ++i) expect_close(s.outputs[i], wanted[i], tolerance, text);
  return true;
}

}  // namespace sparkle::vulkan
