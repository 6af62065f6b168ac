// What the inverted family tells the planner: variants, operands, schedules worth ranking.
#include "families/inverted/inverted.h"

#include <algorithm>

#include "families/common.h"
#include "families/inverted/inverted_family.h"
#include "families/windows/window_samples.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#include "families/inverted/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"", "Conv 1x1, depthwise and 1x1 in one step", TypeSet{DType::f32}, "f16 and bf16 converted to f32 before it"},
};

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const WhyNot refuse{why_not};
  if (variant.name == "plain") return loop_schedules(stage, variant, device, why_not);
  if (!variant.runs_on(device)) return refuse(Reason::backend_lacks_variant);
  const MathUnit* unit = best_vector_unit(device);
  if (!unit) return refuse(Reason::unit_missing);
  // Vectors without a fixed length cannot lie in the arrays of registers that the tiles are written with.
  if (unit->name == "sve") return refuse(Reason::backend_lacks_variant);
  for (const TensorDesc& desc : stage.inputs)
    if (desc.dtype != DType::f32) return refuse(Reason::type_not_served);
  const auto& p = get<InvertedParams>(stage.params);
  const Window& w = p.window;
  const bool filter = (w.filter == Triple{1, 3, 3} || w.filter == Triple{1, 5, 5}) && w.dilation == Triple{1, 1, 1} &&
                      w.stride[0] == 1 && w.stride[1] == w.stride[2] && (w.stride[1] == 1 || w.stride[1] == 2);
  if (!filter || w.pad_begin[1] < 0 || w.pad_begin[2] < 0) return refuse(Reason::filter_not_served);
  const InvertedOperands at = inverted_operands(p);
  if (!channels_innermost(stage.inputs[0]) || !channels_innermost(stage.outputs[0])) return refuse(Reason::layout_not_served);
  if (at.residual >= 0 && !channels_innermost(stage.inputs[static_cast<size_t>(at.residual)]))
    return refuse(Reason::layout_not_served);
  const int registers = registers_of(*unit);
  if (registers < variant.registers) return refuse(Reason::too_few_registers);
  if (registers >= 2 * variant.registers) return refuse(Reason::registers_idle);

  const FeatureMap y = feature_map(stage.outputs[0]);
  if (variant.name == "pairs6x4" && !inverted_pairs(y.c, std::max(1, unit->n))) return refuse(Reason::filter_not_served);
  InvertedSchedule s;
  s.variant = variant.name;
  s.unit = unit->name;
  s.mr = variant.rows;
  s.nr = variant.vectors;
  s.tasks =
      std::clamp<int64_t>((std::max(1, device.cores) + y.n - 1) / std::max<int64_t>(1, y.n), 1, std::max<int64_t>(1, y.h));
  // Many rows read the weights seldom, few stay near: which counts more is a matter of caches.
  std::vector<Schedule> found;
  for (const int64_t rows : {2, 4, 8, 16}) {
    s.rows = std::min(rows, kMostInvertedRows);
    found.emplace_back(s);
    if (rows * s.tasks >= y.h) break;
  }
  return found;
}

std::vector<SampleForm> sample_forms() {
  InvertedParams p, narrow;
  p.window = narrow.window = small_window();
  p.wide.bias = p.deep.bias = p.project.bias = true;
  p.wide.activation = p.deep.activation = Activation::relu;
  p.project.residuals_after = 1;
  narrow.expand = false;
  return {{p, std::vector<DType>(8, DType::f32), {DType::f32}}, {narrow, std::vector<DType>(3, DType::f32), {DType::f32}}};
}

// Channels last; wide planes of vectors and a part of one, results of half a vector and of some.
std::vector<Stage> samples(const SampleRequest& t) {
  const auto& p = get<InvertedParams>(t.params);
  if (!of_one_real(t)) return {};
  const InvertedOperands at = inverted_operands(p);
  std::vector<Stage> stages;
  for (const int64_t filters : {8, 24}) {
    const int64_t wide = 56, channels = p.expand ? filters : wide;
    Stage stage = window_sample(p, p.window, nullptr, {channels, filters, 1, 9}, 0);
    stage.inputs.resize(static_cast<size_t>(at.count));
    const auto operand = [&](int i, const Dims& shape) {
      if (i >= 0) stage.inputs[static_cast<size_t>(i)] = dense_desc(DType::f32, shape);
    };
    operand(at.wide_weights, {wide, channels, 1, 1}), operand(at.wide_bias, {wide});
    operand(at.deep_weights, {wide, 1, p.window.filter[1], p.window.filter[2]}), operand(at.deep_bias, {wide});
    operand(at.weights, {filters, wide, 1, 1}), operand(at.bias, {filters});
    // Three axes of space in the sample, two in this family.
    for (TensorDesc* d : {&stage.inputs[0], &stage.outputs[0]})
      *d = described(DType::f32, {d->shape[0], d->shape[1], d->shape[3], d->shape[4]}, true, 0);
    if (at.residual >= 0) stage.inputs[static_cast<size_t>(at.residual)] = stage.outputs[0];
    stages.push_back(with_types(stage, t));
  }
  return stages;
}

}  // namespace

InvertedOperands inverted_operands(const InvertedParams& p) {
  InvertedOperands at;
  int next = 1;
  if (p.expand) {
    at.wide_weights = next++;
    if (p.wide.bias) at.wide_bias = next++;
  }
  at.deep_weights = next++;
  if (p.deep.bias) at.deep_bias = next++;
  at.weights = next++;
  if (p.project.bias) at.bias = next++;
  if (p.project.residuals_before + p.project.residuals_after > 0) at.residual = next++;
  at.count = next;
  return at;
}

const FamilyInfo& inverted_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<InvertedParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .reference = inverted_reference,
      .footprint = inverted_footprint,
      .blocking = inverted_blocking,
      .schedules = schedules,
      .sample_forms = sample_forms,
      .samples = samples,
      .cpu_schedule = &ScheduleType::of<InvertedSchedule>,
  };
  return family;
}

}  // namespace sparkle
