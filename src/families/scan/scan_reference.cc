// The scan family: plain loops, and what it tells the planner.
#include <algorithm>

#include "families/common.h"
#include "families/loops/row_groups.h"
#include "families/windows/samples.h"
#include "families/scan/scan.h"
#include "families/values/typed.h"
#include "families/loops/walk.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#include "families/scan/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"", "CumSum", kNumbers, "added in their own type, f16 and bf16 in f32", "f64, integers"},
};

void scan_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const ScanParams& p = get<ScanParams>(params);
  const TensorView &x = inputs[0], &y = outputs[0];
  Dims lines = x.desc.shape;
  lines[p.axis] = 1;
  const int64_t size = x.desc.shape[p.axis];
  visit_type(x.desc.dtype, [&]<class T>(T) {
    using Sum = std::conditional_t<is_float_type<T>, double, T>;
    for_each_index(lines, [&](Dims at) {
      Sum sum{};
      for (int64_t i = 0; i < size; ++i) {
        at[p.axis] = p.reverse ? size - 1 - i : i;
        const Sum with = wrapped_sum(sum, static_cast<Sum>(to_computed(*reinterpret_cast<const T*>(element_at(x, at)))));
        *reinterpret_cast<T*>(element_at(y, at)) = from_computed<T>(p.exclusive ? sum : with);
        sum = with;
      }
    });
  });
}

Footprint footprint(const Stage& stage, const Schedule&, const Device& device) {
  const TensorDesc& x = stage.inputs[0];
  const int axis = get<ScanParams>(stage.params).axis;
  Footprint result = streaming_footprint(stage, device, static_cast<double>(x.elements()));
  if (device.has_workgroups()) {
    const RowGroups groups = row_groups(x, 1u << axis, true);
    result.parallel_items = std::max(1.0, static_cast<double>(groups.groups * groups.parts));
    result.launches = groups.parts > 1 ? 2 : 1;
    if (groups.parts > 1) result.workspace_bytes = 8 * groups.rows * groups.parts;
    return result;
  }
  const auto size = static_cast<double>(x.shape[axis]);
  result.parallel_items =
      std::max(1.0, std::min(result.parallel_items, static_cast<double>(x.elements()) / std::max(1.0, size)));
  return result;
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
  // CUDA's cards, which have mma.sync, add up doubles.
  const bool doubles = x.dtype == DType::f64 && variant.runs_on(device) && device.unit("mma-bf16");
  if (variant.name == "rows_gpu" && !doubles && !computes_numbers(variant, device, x.dtype)) {
    why_not = Reason::type_not_served;
    return {};
  }
  if (variant.name == "columns" && (!is_row_major(x.shape, x.layout) || !is_row_major(y.shape, y.layout))) {
    why_not = Reason::layout_not_served;
    return {};
  }
  return loop_schedules(stage, variant, device, why_not);
}

std::vector<SampleForm> sample_forms() {
  const auto of = [](const ScanParams& p, DType type) { return SampleForm{p, {type}, {type}}; };
  return {of({0, false, true}, DType::f32), of({1, true, false}, DType::f16), of({1, true, false}, DType::f64),
          of({1, false, false}, DType::i64), of({1, false, false}, DType::u8)};
}

// Along the rows and across them.
std::vector<Stage> samples(const SampleRequest& t) {
  ScanParams along = get<ScanParams>(t.params), across = along;
  along.axis = 2, across.axis = 0;
  return {with_types(rows_sample(along, 1, {3, 5, 37}), t), with_types(rows_sample(across, 1, {3, 5, 37}), t)};
}

SampleRules comparison(const Stage&) { return {.in_native_type = true}; }

}  // namespace

const FamilyInfo& scan_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<ScanParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .gpu_16_bits = true,
      .reference = scan_reference,
      .footprint = footprint,
      .schedules = schedules,
      .sample_forms = sample_forms,
      .samples = samples,
      .comparison = comparison,
  };
  return family;
}

}  // namespace sparkle
