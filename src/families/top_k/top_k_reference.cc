// The top_k family: plain loops, and what it tells the planner.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "families/common.h"
#include "families/loops/grain.h"
#include "families/loops/row_groups.h"
#include "families/windows/samples.h"
#include "families/top_k/rank_key.h"
#include "families/top_k/top_k_gpu.h"
#include "families/loops/walk.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#include "families/top_k/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"", "TopK, ArgMax, ArgMin", kNumbers, "compared in their own type", "f64, integers"},
};

// Sorts each whole line.
template <bool largest, class T>
void sort_lines(const TopKParams& p, const TensorView& x, std::span<const TensorView> outputs) {
  struct Entry {
    RankKey<T> key;
    int64_t index;
  };
  Dims lines = x.desc.shape;
  lines[p.axis] = 1;
  for_each_index(lines, [&](Dims at) {
    std::vector<Entry> entries;
    for (int64_t i = 0; i < x.desc.shape[p.axis]; ++i) {
      at[p.axis] = i;
      entries.push_back({rank_key<largest>(*reinterpret_cast<const T*>(element_at(x, at)), p.nan_first), i});
    }
    std::sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
      if (a.key != b.key) return a.key > b.key;
      return p.last_of_equals ? a.index > b.index : a.index < b.index;
    });
    for (int64_t i = 0; i < p.k; ++i) {
      Dims from = at, to = at;
      const int64_t index = from[p.axis] = entries[static_cast<size_t>(i)].index;
      to[p.axis] = i;
      if (outputs.size() > 1) std::memcpy(element_at(outputs[0], to), element_at(x, from), sizeof(T));
      std::memcpy(element_at(outputs.back(), to), &index, sizeof index);
    }
  });
}

void top_k_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const TopKParams& p = get<TopKParams>(params);
  visit_type(inputs[0].desc.dtype, [&]<class T>(T) {
    p.largest ? sort_lines<true, T>(p, inputs[0], outputs) : sort_lines<false, T>(p, inputs[0], outputs);
  });
}

// Workgroups, what sorting compares (a network of log^2 steps, searches through the other run), runs written and read by each
// merge.
void gpu_parts(const Stage& stage, std::string_view variant, Footprint& f) {
  const auto& p = get<TopKParams>(stage.params);
  if (variant == "best") {
    const RowGroups groups = row_groups(stage.inputs[0], 1u << p.axis, true);
    f.parallel_items = std::max(1.0, static_cast<double>(groups.groups * groups.parts));
    f.launches = groups.parts > 1 ? 2 : 1;
    if (groups.parts > 1) f.workspace_bytes = 8 * groups.rows * groups.parts;
    return;
  }
  const TopKRuns r = top_k_runs(stage);
  const auto d = [](int64_t value) { return static_cast<double>(value); };
  const double steps = std::log2(d(r.width)), merges = std::ceil(std::log2(d(r.runs)));
  f.parallel_items = std::max(1.0, d(r.rows * r.runs * r.width) / d(kTopKEntries));
  f.executed_flops += d(r.rows * r.runs * r.width) * steps * (steps + 1) / 4 + merges * d(r.entries) * 10;
  f.workspace_bytes = r.bytes;
  f.launches = 1 + merges;
}

// A comparison per element, and the heap's for those that enter it: k * (1 + ln(n / k)) of n in random order.
Footprint footprint(const Stage& stage, const Schedule& schedule, const Device& device) {
  const TopKParams& p = get<TopKParams>(stage.params);
  const auto n = static_cast<double>(std::max<int64_t>(1, stage.inputs[0].shape[p.axis])), k = static_cast<double>(p.k);
  const double lines = static_cast<double>(stage.inputs[0].elements()) / n;
  const double entered = k < 1 ? 0 : k * (1 + std::log(std::max(1.0, n / k)));
  Footprint result = streaming_footprint(stage, device, lines * (n + (k > 1 ? 4 * entered * std::log2(k) : 0)));
  if (device.has_workgroups()) {
    gpu_parts(stage, variant_of(schedule), result);
    return result;
  }
  result.parallel_items = std::max(1.0, std::min(lines, static_cast<double>(stage.inputs[0].bytes()) / 65536));
  return result;
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const bool best = get<TopKParams>(stage.params).k <= 1;
  if ((variant.name == "best" && !best) || (variant.name == "sort" && best)) {
    why_not = best ? Reason::costlier : Reason::filter_not_served;
    return {};
  }
  // Doubles are compared by their bits.
  const DType type = stage.inputs[0].dtype;
  if (variant.for_workgroups() && type != DType::f64 && !computes_numbers(variant, device, type)) {
    why_not = Reason::type_not_served;
    return {};
  }
  if (variant.name == "heap") {
    bool rows = is_row_major(stage.inputs[0].shape, stage.inputs[0].layout);
    for (const TensorDesc& y : stage.outputs) rows = rows && is_row_major(y.shape, y.layout);
    if (!rows) {
      why_not = Reason::layout_not_served;
      return {};
    }
  }
  std::vector<Schedule> found = loop_schedules(stage, variant, device, why_not);
  const TensorDesc& x = stage.inputs[0];
  cut_into(found, device, x.elements(), planned_tasks(static_cast<double>(x.bytes()), kLeastBytes, 4, device));
  return found;
}

std::vector<SampleForm> sample_forms() {
  const auto of = [](const TopKParams& p, DType type) { return SampleForm{p, {type}, {type, DType::i64}}; };
  return {of({0, 7}, DType::f32),
          {TopKParams{1, 1, false, true, true}, {DType::f32}, {DType::i64}},
          of({0, 3}, DType::i64),
          of({0, 3, false}, DType::u8),
          of({0, 3, false}, DType::f16)};
}

// Rows of one piece and of several, along the last axis and across it.
std::vector<Stage> samples(const SampleRequest& t) {
  const auto& params = get<TopKParams>(t.params);
  std::vector<Stage> stages;
  const auto add = [&](TopKParams p, const Dims& shape, int axis) {
    p.axis = axis;
    p.k = p.k <= 1 ? p.k : std::min<int64_t>(shape[axis], 300);
    Dims result = shape;
    result[axis] = p.k;
    Stage stage{p, {described(t.inputs[0], shape, false, 1)}, {}};
    for (const DType type : t.outputs) stage.outputs.push_back(described(type, result, false, 1));
    stages.push_back(stage);
  };
  add(params, {2, 5, 37}, 2);
  add(params, {40, 7}, 0);
  add(params, {2, 2100}, 1);
  return stages;
}

SampleRules comparison(const Stage&) { return {.in_native_type = true}; }

}  // namespace

const FamilyInfo& top_k_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<TopKParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .gpu_16_bits = true,
      .reference = top_k_reference,
      .footprint = footprint,
      .schedules = schedules,
      .sample_forms = sample_forms,
      .samples = samples,
      .comparison = comparison,
  };
  return family;
}

}  // namespace sparkle
