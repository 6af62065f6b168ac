// The pad family: plain loops, and what it tells the planner.
#include <array>
#include <cstring>

#include "families/common.h"
#include "families/values/element.h"
#include "families/pad/pad.h"
#include "families/windows/samples.h"
#include "families/loops/walk.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#include "families/pad/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"", "Pad", kAllTypes, "elements move as they are", "all"},
};

void pad_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const PadParams& p = get<PadParams>(params);
  const TensorView &x = inputs[0], &y = outputs[0];
  const auto bytes = static_cast<size_t>(size_of(y.desc.dtype));
  std::array<std::byte, 8> value{};
  store_element(y.desc.dtype, p.value, value.data());
  for_each_index(y.desc.shape, [&](const Dims& at) {
    Dims from;
    bool inside = true;
    for (int i = 0; i < at.size(); ++i) {
      from.push_back(pad_source(p.mode, at[i], p.begin[i], p.end[i], x.desc.shape[i]));
      inside = inside && from[i] >= 0;
    }
    std::memcpy(element_at(y, at), inside ? element_at(x, from) : value.data(), bytes);
  });
}

Footprint footprint(const Stage& stage, const Schedule&, const Device& device) { return streaming_footprint(stage, device, 0); }

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  return loop_schedules(stage, variant, device, why_not);
}

std::vector<SampleForm> sample_forms() {
  std::vector<SampleForm> list;
  for (const PadMode mode : {PadMode::constant, PadMode::reflect, PadMode::edge, PadMode::wrap})
    for (const DType type : {DType::f32, DType::i64})
      list.push_back({PadParams{mode, {0, 0, 300, 1}, {0, 0, 2, -1}, 1.5}, {type}, {type}});
  list.push_back(
      {PadParams{PadMode::constant, {1, 0, 2, 9, -5, 1, 1, 1}, {0, 0, 0, 0, 0, 3, 0, 1}, 2}, {DType::f32}, {DType::f32}});
  return list;
}

// The same kind of padding by a few elements, whatever the self-test's.
std::vector<Stage> samples(const SampleRequest& t) {
  PadParams p = get<PadParams>(t.params);
  const int rank = p.begin.size();
  // Mirrored axes are longer than what is added to them; tensors of many axes stay small.
  const int64_t most = rank <= 4 ? 4 : 1;
  for (Dims* pads : {&p.begin, &p.end})
    for (int64_t& pad : *pads) pad = std::clamp<int64_t>(pad, -1, most);
  std::vector<Stage> stages;
  for (const int64_t last : {3, 8}) {
    Dims x, y;
    for (int i = 0; i < rank; ++i) {
      const bool padded = p.begin[i] != 0 || p.end[i] != 0;
      x.push_back(padded ? most + 1 : i == rank - 1 || i == 1 ? last : 2);
      if (rank > 4 && i != 1) x[i] = 2 + (padded && p.begin[i] + p.end[i] < 0);
      y.push_back(std::max<int64_t>(1, x[i] + p.begin[i] + p.end[i]));
      x[i] = y[i] - p.begin[i] - p.end[i];
    }
    if (rank > 0)
      stages.push_back({p, {described(t.inputs[0], x, rank > 2, last == 3)}, {described(t.inputs[0], y, rank > 2, 0)}});
  }
  return stages;
}

SampleRules comparison(const Stage&) { return {.in_native_type = true}; }

}  // namespace

const FamilyInfo& pad_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<PadParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .gpu_16_bits = true,
      .reference = pad_reference,
      .footprint = footprint,
      .schedules = schedules,
      .sample_forms = sample_forms,
      .samples = samples,
      .comparison = comparison,
  };
  return family;
}

}  // namespace sparkle
