// The normalize family: plain loops in double precision, and what it tells the planner.
#include "families/normalize/normalize.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "families/common.h"
#include "families/values/element.h"
#include "families/loops/grain.h"
#include "families/windows/samples.h"
#include "families/loops/walk.h"

namespace sparkle {
namespace {

constexpr std::array<std::string_view, 4> kDivisors = {"variance", "deviation", "l1", "l2"};

constexpr Variant kVariants[] = {
#include "families/normalize/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"",
     "InstanceNormalization, LayerNormalization, RMSNormalization, GroupNormalization, MeanVarianceNormalization, "
     "LpNormalization",
     kFloats, kInF32, "f64"},
};

void normalize_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const NormalizeParams& p = get<NormalizeParams>(params);
  const TensorView &x = inputs[0], &y = outputs[0];
  Dims outer = x.desc.shape, inner = Dims::filled(outer.size(), 1);
  for (int64_t axis : p.axes) std::swap(outer[static_cast<int>(axis)], inner[static_cast<int>(axis)]);
  const double count = static_cast<double>(inner.product());
  for_each_index(outer, [&](const Dims& group) {
    const auto load = [](const TensorView& v, const Dims& at) { return load_element(v.desc.dtype, element_at(v, at)); };
    const auto for_each = [&](auto&& f) {
      for_each_index(inner, [&](const Dims& at) {
        Dims place = group;
        for (int i = 0; i < place.size(); ++i) place[i] += at[i];
        f(place);
      });
    };
    double mean = 0, sum = 0;
    if (p.center) for_each([&](const Dims& at) { mean += load(x, at) / count; });
    for_each([&](const Dims& at) {
      const double value = load(x, at) - mean;
      sum += p.divisor == NormalizeDivisor::l1 ? std::abs(value) : value * value;
    });
    const double factor = normalize_factor(p, sum, count);
    for_each([&](const Dims& at) {
      double result = (load(x, at) - mean) * factor;
      if (p.scale) result *= load(inputs[1], at);
      if (p.bias) result += load(inputs[p.scale ? 2 : 1], at);
      store_element(y.desc.dtype, result, element_at(y, at));
    });
  });
}

// Sum, squared deviation and the application; the input passes through memory up to three times. On CPUs one pass waits for the
// other: what an element and what a group of its own takes was measured on Zen 4, rows of 96 to 12544 elements.
Footprint footprint(const Stage& stage, const Schedule&, const Device& device) {
  const auto elements = static_cast<double>(stage.outputs[0].elements());
  Footprint f = streaming_footprint(stage, device, 8 * elements);
  if (device.has_workgroups()) return f;
  constexpr double kElement = 19, kGroup = 2400;
  double groups = elements;
  for (const int64_t axis : get<NormalizeParams>(stage.params).axes)
    groups /= static_cast<double>(std::max<int64_t>(1, stage.outputs[0].shape[static_cast<int>(axis)]));
  f.executed_flops = kElement * elements + kGroup * groups;
  return f;
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const auto is_double = [](const TensorDesc& d) { return d.dtype == DType::f64; };
  const bool doubles = std::all_of(stage.inputs.begin(), stage.inputs.end(), is_double) && is_double(stage.outputs[0]) &&
                       computes_numbers(variant, device, DType::f64);
  if (variant.name != "plain" && !doubles && !stores_reals(variant, device, stage)) {
    why_not = Reason::type_not_served;
    return {};
  }
  // No operator has it, and kernels sum magnitudes as they come.
  if (const auto& p = get<NormalizeParams>(stage.params);
      variant.name != "plain" && p.center && p.divisor == NormalizeDivisor::l1) {
    why_not = Reason::not_this_family;
    return {};
  }
  return loop_schedules(stage, variant, device, why_not, kLeastElements);
}

// What operators are: a deviation is one from the mean, norms are of the elements as they come.
std::vector<SampleForm> sample_forms() {
  std::vector<SampleForm> list;
  for (const DType type : {DType::f32, DType::f64})
    for (int i = 0; i < 4; ++i) {
      const auto divisor = static_cast<NormalizeDivisor>(i);
      const bool center = divisor == NormalizeDivisor::variance || divisor == NormalizeDivisor::deviation;
      list.push_back({NormalizeParams{{1}, 1e-5, center, true, true, divisor}, {type, type, type}, {type}});
    }
  return list;
}

std::vector<Stage> samples(const SampleRequest& t) {
  if (!of_one_real(t)) return {};
  auto p = get<NormalizeParams>(t.params);
  std::vector<Stage> stages;
  for (const Dims& axes : {Dims{2}, Dims{0, 1}}) {
    p.axes = axes;
    stages.push_back(with_types(rows_sample(p, t.inputs.size(), {3, 5, 37}), t));
  }
  return stages;
}

}  // namespace

std::string_view name_of(NormalizeDivisor divisor) { return kDivisors[static_cast<size_t>(divisor)]; }
bool parse_name(std::string_view text, NormalizeDivisor& divisor) {
  const auto at = std::find(kDivisors.begin(), kDivisors.end(), text);
  if (at == kDivisors.end()) return false;
  divisor = static_cast<NormalizeDivisor>(at - kDivisors.begin());
  return true;
}

double normalize_factor(const NormalizeParams& params, double total, double count) {
  switch (params.divisor) {
    case NormalizeDivisor::variance: return 1 / std::sqrt(total / count + params.epsilon);
    case NormalizeDivisor::deviation: return 1 / (std::sqrt(total / count) + params.epsilon);
    case NormalizeDivisor::l1: return total == 0 ? 0 : 1 / total;  // where all are zero they stay zero
    case NormalizeDivisor::l2: return total == 0 ? 0 : 1 / std::sqrt(total);
  }
  return 0;
}

const FamilyInfo& normalize_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<NormalizeParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .gpu_16_bits = true,
      .reference = normalize_reference,
      .footprint = footprint,
      .schedules = schedules,
      .sample_forms = sample_forms,
      .samples = samples,
  };
  return family;
}

}  // namespace sparkle
