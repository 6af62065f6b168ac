// The gather family: plain loops, and what it tells the planner.
#include <algorithm>
#include <array>
#include <cstring>

#include "families/common.h"
#include "families/gather/gather.h"
#include "families/values/indices.h"
#include "families/windows/samples.h"
#include "families/loops/walk.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#include "families/gather/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"", "Gather, GatherElements, GatherND", kAllTypes, "elements move as they are", "all"},
};

constexpr std::array<std::string_view, 3> kForms = {"slices", "elements", "tuples"};

// Where in x the element of y at `at` comes from.
Dims source_of(const GatherParams& p, const TensorView& x, const TensorView& indices, const Dims& at) {
  const auto index = [&](const Dims& where, int axis) {
    return clamped_index(load_index(indices.desc.dtype, element_at(indices, where)), x.desc.shape[axis]);
  };
  Dims from;
  if (p.form == GatherForm::elements) {
    from = at;
    from[p.axis] = index(at, p.axis);
  } else if (p.form == GatherForm::slices) {
    const int rank = indices.desc.shape.size();
    Dims where;
    for (int i = 0; i < rank; ++i) where.push_back(at[p.axis + i]);
    for (int i = 0; i < p.axis; ++i) from.push_back(at[i]);
    from.push_back(index(where, p.axis));
    for (int i = p.axis + rank; i < at.size(); ++i) from.push_back(at[i]);
  } else {
    const int outer = indices.desc.shape.size() - 1;
    Dims where;
    for (int i = 0; i < outer; ++i) where.push_back(at[i]);
    where.push_back(0);
    for (int i = 0; i < p.batch_axes; ++i) from.push_back(at[i]);
    for (int64_t& i = where[outer]; i < indices.desc.shape[outer]; ++i) from.push_back(index(where, from.size()));
    for (int i = outer; i < at.size(); ++i) from.push_back(at[i]);
  }
  return from;
}

void gather_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const TensorView &x = inputs[0], &indices = inputs[1], &y = outputs[0];
  const auto bytes = static_cast<size_t>(size_of(y.desc.dtype));
  if (x.desc.elements() == 0) return;
  for_each_index(y.desc.shape, [&](const Dims& at) {
    std::memcpy(element_at(y, at), element_at(x, source_of(get<GatherParams>(params), x, indices, at)), bytes);
  });
}

Status check(const StageParams& params, std::span<const TensorView> inputs) {
  const auto& p = get<GatherParams>(params);
  const Dims& x = inputs[0].desc.shape;
  if (p.form == GatherForm::tuples) return check_tuples(inputs[1], x, p.batch_axes);
  return check_indices(inputs[1], x[p.axis], p.axis);
}

// Only the slices that are picked are read: as many bytes as are written, and the indices.
Footprint footprint(const Stage& stage, const Schedule&, const Device& device) {
  Footprint result = streaming_footprint(stage, device, 0);
  const double written = static_cast<double>(stage.outputs[0].bytes()), indices = static_cast<double>(stage.inputs[1].bytes());
  result.bytes = bytes_per_level(device, 2 * written + indices, 2 * written + indices);
  return result;
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  if (!is_index_type(stage.inputs[1].dtype)) {
    why_not = Reason::type_not_served;
    return {};
  }
  const GatherForm form = get<GatherParams>(stage.params).form;
  if (variant.name != "plain" && variant.name != "units" && (variant.name == "elements") != (form == GatherForm::elements)) {
    why_not = Reason::not_this_family;
    return {};
  }
  const TensorDesc& x = stage.inputs[0];
  const auto rows = [](const TensorDesc& d) { return is_row_major(d.shape, d.layout); };
  if (variant.name == "slices" && form == GatherForm::tuples && !(rows(x) && rows(stage.inputs[1]) && rows(stage.outputs[0]))) {
    why_not = Reason::layout_not_served;
    return {};
  }
  return loop_schedules(stage, variant, device, why_not);
}

constexpr int64_t kPicked = 4;  // elements along each axis that indices of samples point into, at least

std::vector<SampleForm> sample_forms() {
  std::vector<SampleForm> list;
  for (const DType index : {DType::i32, DType::i64})
    for (const int axis : {0, 1, 5, 7}) {
      list.push_back({GatherParams{axis, GatherForm::slices, 0}, {DType::f32, index}, {DType::f32}});
      list.push_back({GatherParams{axis, GatherForm::elements, 0}, {DType::f32, index}, {DType::f32}});
      list.push_back({GatherParams{0, GatherForm::tuples, axis / 2}, {DType::i32, index}, {DType::i32}});
    }
  return list;
}

std::vector<Stage> samples(const SampleRequest& t) {
  const auto& p = get<GatherParams>(t.params);
  std::vector<Stage> stages;
  for (const int64_t last : {3, 8}) {
    Dims x, indices, y;
    const int before = p.form == GatherForm::tuples ? p.batch_axes : p.axis;
    for (int i = 0; i < before; ++i) x.push_back(2);
    x.push_back(kPicked);
    if (p.form == GatherForm::tuples) x.push_back(kPicked + 1);
    if (before < 5) x.push_back(last);
    if (p.form == GatherForm::elements) {
      indices = x;
      indices[p.axis] = 5;
      y = indices;
    } else if (p.form == GatherForm::slices) {
      indices = before < 5 ? Dims{2, 3} : Dims{3};
      for (int i = 0; i < before; ++i) y.push_back(x[i]);
      for (const int64_t size : indices) y.push_back(size);
      for (int i = before + 1; i < x.size(); ++i) y.push_back(x[i]);
    } else {
      for (int i = 0; i < before; ++i) indices.push_back(x[i]);
      indices.push_back(3);
      y = indices;
      indices.push_back(2);
      for (int i = before + 2; i < x.size(); ++i) y.push_back(x[i]);
    }
    if (y.size() > kMaxRank || x.size() > kMaxRank) continue;
    stages.push_back({p,
                      {described(t.inputs[0], x, false, last == 3), described(t.inputs[1], indices, false, 0)},
                      {described(t.inputs[0], y, false, last == 3)}});
  }
  return stages;
}

// Indices lie within their axis.
double sample_value(const Stage& stage, size_t operand, std::mt19937& random) {
  return operand == 1 ? drawn_between(-kPicked, kPicked - 1, random) : any_value(stage.inputs[operand].dtype, random);
}

SampleRules comparison(const Stage&) { return {.in_native_type = true}; }

}  // namespace

std::string_view name_of(GatherForm form) { return kForms[static_cast<size_t>(form)]; }

bool parse_name(std::string_view text, GatherForm& form) {
  const auto at = std::find(kForms.begin(), kForms.end(), text);
  if (at == kForms.end()) return false;
  form = static_cast<GatherForm>(at - kForms.begin());
  return true;
}

const FamilyInfo& gather_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<GatherParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .gpu_16_bits = true,
      .reference = gather_reference,
      .footprint = footprint,
      .schedules = schedules,
      .check = check,
      .sample_forms = sample_forms,
      .samples = samples,
      .sample_value = sample_value,
      .comparison = comparison,
  };
  return family;
}

}  // namespace sparkle
