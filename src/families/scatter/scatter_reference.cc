// The scatter family: names, plain loops, and what it tells the planner.
#include <array>
#include <cmath>
#include <cstring>

#include "families/common.h"
#include "families/loops/grain.h"
#include "families/values/indices.h"
#include "families/windows/samples.h"
#include "families/scatter/combine.h"
#include "families/scatter/scatter_gpu.h"
#include "families/type_set.h"
#include "families/loops/walk.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#include "families/scatter/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"", "ScatterElements, ScatterND, OneHot", kComputed,
     "elements move as they are; sums and products of numbers, largest and smallest of all", "all"},
};

constexpr std::array<std::string_view, 3> kForms = {"elements", "tuples", "one_hot"};
constexpr std::array<std::string_view, 5> kReductions = {"none", "add", "mul", "max", "min"};

template <class Names, class E>
bool parse_one_of(const Names& names, std::string_view text, E& value) {
  const auto at = std::find(names.begin(), names.end(), text);
  if (at == names.end()) return false;
  value = static_cast<E>(at - names.begin());
  return true;
}

void one_hot(const ScatterParams& p, const TensorView& indices, const TensorView& values, const TensorView& y) {
  const auto bytes = static_cast<size_t>(size_of(y.desc.dtype));
  const auto size = static_cast<double>(y.desc.shape[p.axis]);
  for_each_index(y.desc.shape, [&](const Dims& at) {
    Dims where = at;
    where.erase(p.axis);
    double index = std::trunc(load_element(indices.desc.dtype, element_at(indices, where)));
    if (index < 0) index += size;
    const int64_t on = index == static_cast<double>(at[p.axis]);
    std::memcpy(element_at(y, at), element_at(values, {on}), bytes);
  });
}

// The element of y that the update at `at` goes to.
Dims target_of(const ScatterParams& p, const TensorView& indices, const Dims& shape, const Dims& at) {
  const auto index = [&](const Dims& where, int axis) {
    return clamped_index(load_index(indices.desc.dtype, element_at(indices, where)), shape[axis]);
  };
  Dims to = at;
  if (p.form == ScatterForm::elements) {
    to[p.axis] = index(at, p.axis);
    return to;
  }
  const int outer = indices.desc.shape.size() - 1;
  Dims where;
  for (int i = 0; i < outer; ++i) where.push_back(at[i]);
  where.push_back(0);
  to = {};
  for (int64_t& i = where[outer]; i < indices.desc.shape[outer]; ++i) to.push_back(index(where, to.size()));
  for (int i = outer; i < at.size(); ++i) to.push_back(at[i]);
  return to;
}

void scatter_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const ScatterParams& p = get<ScatterParams>(params);
  const TensorView& y = outputs[0];
  if (p.form == ScatterForm::one_hot) return one_hot(p, inputs[0], inputs[1], y);
  const TensorView &data = inputs[0], &indices = inputs[1], &updates = inputs[2];
  const auto bytes = static_cast<size_t>(size_of(y.desc.dtype));
  for_each_index(y.desc.shape, [&](const Dims& at) { std::memcpy(element_at(y, at), element_at(data, at), bytes); });
  if (y.desc.elements() == 0) return;
  visit_type(y.desc.dtype, [&]<class T>(T) {
    with_reduction(p.reduction, [&]<ScatterReduction reduction>() {
      for_each_index(updates.desc.shape, [&](const Dims& at) {
        T* to = reinterpret_cast<T*>(element_at(y, target_of(p, indices, y.desc.shape, at)));
        *to = combined<reduction>(*to, *reinterpret_cast<const T*>(element_at(updates, at)));
      });
    });
  });
}

Status check(const StageParams& params, std::span<const TensorView> inputs) {
  const auto& p = get<ScatterParams>(params);
  if (p.form == ScatterForm::one_hot) return ok();
  if (p.form == ScatterForm::tuples) return check_tuples(inputs[1], inputs[0].desc.shape, 0);
  return check_indices(inputs[1], inputs[0].desc.shape[p.axis], p.axis);
}

Footprint footprint(const Stage& stage, const Schedule&, const Device& device) {
  const auto& p = get<ScatterParams>(stage.params);
  const bool computes = p.reduction != ScatterReduction::none;
  Footprint f = streaming_footprint(stage, device, computes ? static_cast<double>(stage.inputs[2].elements()) : 0);
  if (!device.has_workgroups() || p.form == ScatterForm::one_hot) return f;
  const ScatterShares shares = scatter_shares(stage);
  f.launches = shares.claims ? 3 : 2;
  if (shares.claims) f.workspace_bytes = 4 * shares.slots;
  return f;
}

// Reductions in the types that it computes, extrema of truth values; one-hot indices of whole words.
bool supported_by_gpu(const Stage& stage, const Variant& variant, const Device& device) {
  const auto& p = get<ScatterParams>(stage.params);
  const DType type = stage.outputs[0].dtype, index = stage.inputs[0].dtype;
  if (p.form == ScatterForm::one_hot) return index == DType::f32 || (kIntegers.has(index) && size_of(index) >= 4);
  const bool extremum = p.reduction == ScatterReduction::max || p.reduction == ScatterReduction::min;
  return p.reduction == ScatterReduction::none || computes_numbers(variant, device, type) ||
         (type == DType::boolean && extremum);
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const bool one_hot = get<ScatterParams>(stage.params).form == ScatterForm::one_hot;
  if (!one_hot && !is_index_type(stage.inputs[1].dtype)) {
    why_not = Reason::type_not_served;
    return {};
  }
  if (variant.for_workgroups() && !supported_by_gpu(stage, variant, device)) {
    why_not = Reason::type_not_served;
    return {};
  }
  if (variant.name == "lines") {
    bool rows = is_row_major(stage.outputs[0].shape, stage.outputs[0].layout);
    for (const TensorDesc& x : stage.inputs) rows = rows && is_row_major(x.shape, x.layout);
    if (!rows) {
      why_not = Reason::layout_not_served;
      return {};
    }
  }
  std::vector<Schedule> found = loop_schedules(stage, variant, device, why_not);
  if (one_hot) return found;
  // Two loops, over the tensor that is copied and over the updates, by the finer of their grains.
  const TensorDesc &y = stage.outputs[0], &updates = stage.inputs[2];
  const auto tasks = [&](const TensorDesc& d) { return planned_tasks(static_cast<double>(d.bytes()), kLeastBytes, 4, device); };
  const int64_t copies = grain_of(y.elements(), tasks(y)), puts = grain_of(updates.elements(), tasks(updates));
  const int64_t grain = tasks(updates) > 1 ? std::min(copies, puts) : copies;
  cut_into(found, device, grain, 1);
  return found;
}

constexpr int64_t kPicked = 4;  // elements along each axis that indices of samples point into, at least

std::vector<SampleForm> sample_forms() {
  std::vector<SampleForm> list{
      {ScatterParams{ScatterForm::one_hot, ScatterReduction::none, 1}, {DType::i64, DType::f32}, {DType::f32}}};
  for (const DType type : {DType::f32, DType::f16, DType::i64, DType::u8})
    for (const ScatterForm form : {ScatterForm::elements, ScatterForm::tuples})
      for (const ScatterReduction reduction : {ScatterReduction::none, ScatterReduction::add, ScatterReduction::max})
        list.push_back({ScatterParams{form, reduction, static_cast<int>(list.size())}, {type, DType::i64, type}, {type}});
  return list;
}

// Updates that meet among others that do not.
std::vector<Stage> samples(const SampleRequest& t) {
  auto p = get<ScatterParams>(t.params);
  const DType x = t.inputs[0], index = t.inputs[p.form == ScatterForm::one_hot ? 0 : 1];
  const Dims data{kPicked, kPicked + 1, 9};
  if (p.form == ScatterForm::one_hot) {
    p.axis = std::min(p.axis, 2);
    Dims y{3, 7};
    y.insert(p.axis, kPicked);
    return {{p,
             {described(index, {3, 7}, false, 1), described(t.inputs[1], {2}, false, 0)},
             {described(t.outputs[0], y, false, 1)}}};
  }
  Dims indices, updates;
  if (p.form == ScatterForm::elements) {
    p.axis = std::min(p.axis, 2);
    indices = {3, 4, 7};
    indices[p.axis] = 11;
    for (int i = 0; i < 3; ++i)
      if (i != p.axis) indices[i] = std::min(indices[i], data[i]);
    updates = indices;
  } else {
    indices = {3, 5, 2}, updates = {3, 5, data[2]};
  }
  return {{p,
           {described(x, data, false, 1), described(index, indices, false, 0), described(t.inputs[2], updates, false, 1)},
           {described(t.outputs[0], data, false, 0)}}};
}

// Indices lie within their axis.
double sample_value(const Stage& stage, size_t operand, std::mt19937& random) {
  const size_t indices = get<ScatterParams>(stage.params).form == ScatterForm::one_hot ? 0 : 1;
  return operand == indices ? drawn_between(-kPicked, kPicked - 1, random) : any_value(stage.inputs[operand].dtype, random);
}

// Updates are rounded to the type one after the other.
SampleRules comparison(const Stage&) { return {.in_native_type = true, .in_16_bits = true}; }

}  // namespace

std::string_view name_of(ScatterForm form) { return kForms[static_cast<size_t>(form)]; }
bool parse_name(std::string_view text, ScatterForm& form) { return parse_one_of(kForms, text, form); }
std::string_view name_of(ScatterReduction reduction) { return kReductions[static_cast<size_t>(reduction)]; }
bool parse_name(std::string_view text, ScatterReduction& reduction) { return parse_one_of(kReductions, text, reduction); }

const FamilyInfo& scatter_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<ScatterParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .gpu_16_bits = true,
      .reference = scatter_reference,
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
