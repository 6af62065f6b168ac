// The triangle family: plain loops, and what it tells the planner.
#include <algorithm>
#include <cstring>

#include "families/common.h"
#include "families/windows/samples.h"
#include "families/triangle/triangle.h"
#include "families/loops/walk.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#include "families/triangle/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"", "Trilu", kAllTypes, "elements move as they are", "all"},
};

void triangle_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const TriangleParams& p = get<TriangleParams>(params);
  const TensorView &x = inputs[0], &y = outputs[0];
  const auto bytes = static_cast<size_t>(size_of(y.desc.dtype));
  const int rank = y.desc.shape.size();
  for_each_index(y.desc.shape, [&](const Dims& at) {
    const KeptColumns kept = kept_columns(p, at[rank - 2], y.desc.shape[rank - 1]);
    if (at[rank - 1] >= kept.begin && at[rank - 1] < kept.end) {
      std::memcpy(element_at(y, at), element_at(x, at), bytes);
    } else {
      std::memset(element_at(y, at), 0, bytes);
    }
  });
}

Footprint footprint(const Stage& stage, const Schedule&, const Device& device) { return streaming_footprint(stage, device, 0); }

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
  if (variant.name == "rows" && (!is_row_major(x.shape, x.layout) || !is_row_major(y.shape, y.layout))) {
    why_not = Reason::layout_not_served;
    return {};
  }
  return loop_schedules(stage, variant, device, why_not);
}

std::vector<SampleForm> sample_forms() {
  return {{TriangleParams{true, INT64_MIN}, {DType::f32}, {DType::f32}},
          {TriangleParams{false, 1}, {DType::i64}, {DType::i64}}};
}

std::vector<Stage> samples(const SampleRequest& t) {
  auto p = get<TriangleParams>(t.params);
  p.diagonal = std::clamp<int64_t>(p.diagonal, -5, 5);
  std::vector<Stage> stages;
  for (const Dims& shape : {Dims{2, 9, 37}, Dims{3, 33, 8}})
    stages.push_back(
        {p, {described(t.inputs[0], shape, shape[1] == 33, 1)}, {described(t.inputs[0], shape, shape[1] == 33, 0)}});
  return stages;
}

SampleRules comparison(const Stage&) { return {.in_native_type = true}; }

}  // namespace

KeptColumns kept_columns(const TriangleParams& params, int64_t row, int64_t columns) {
  // The diagonal may be any 64-bit number: it is brought near the matrix before the row is added.
  const int64_t far = row + columns + 1;
  const int64_t diagonal = std::clamp<int64_t>(row + std::clamp(params.diagonal, -far, far), -1, columns);
  if (params.upper) return {std::max<int64_t>(0, diagonal), columns};
  return {0, std::min(columns, diagonal + 1)};
}

const FamilyInfo& triangle_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<TriangleParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .gpu_16_bits = true,
      .reference = triangle_reference,
      .footprint = footprint,
      .schedules = schedules,
      .sample_forms = sample_forms,
      .samples = samples,
      .comparison = comparison,
  };
  return family;
}

}  // namespace sparkle
