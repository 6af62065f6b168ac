#include "families/stage.h"

#include <algorithm>
#include <array>

namespace sparkle {
namespace {

constexpr std::array<std::string_view, kFamilies> kNames = {
    "gemm",   "depthwise", "pool",     "pointwise", "reduce",  "softmax",  "normalize", "copy",      "pad",
    "resize", "gather",    "scatter",  "top_k",     "scan",    "triangle", "non_max",   "attention", "rotary",
    "sample", "deform",    "quantize", "winograd",  "grouped", "direct",   "inverted",  "fft"};

template <size_t I = 0>
Result<StageParams> parse_params(size_t index, std::string_view text) {
  if constexpr (I < kFamilies) {
    if (index != I) return parse_params<I + 1>(index, text);
    SPARKLE_TRY(params, from_text<std::variant_alternative_t<I, StageParams>>(text));
    return StageParams(std::move(params));
  } else {
    return Error{Reason::internal, "There is no family number " + std::to_string(index) + "."};
  }
}

template <class S>
Result<Schedule> parse_schedule(std::string_view text) {
  SPARKLE_TRY(schedule, from_text<S>(text));
  return Schedule(std::move(schedule));
}

}  // namespace

std::string_view name_of(Family family) { return kNames[static_cast<size_t>(family)]; }

bool parse_name(std::string_view text, Family& family) {
  const auto at = std::find(kNames.begin(), kNames.end(), text);
  if (at == kNames.end()) return false;
  family = static_cast<Family>(at - kNames.begin());
  return true;
}

const std::string& variant_of(const Schedule& schedule) {
  return std::visit([](const auto& s) -> const std::string& { return s.variant; }, schedule);
}
const std::string& unit_of(const Schedule& schedule) {
  return std::visit([](const auto& s) -> const std::string& { return s.unit; }, schedule);
}
std::string to_text(const Schedule& schedule) {
  return std::visit([](const auto& s) { return to_text(s); }, schedule);
}
std::string to_text(const StageParams& params) {
  return std::visit([](const auto& p) { return to_text(p); }, params);
}

// A family's plain variant has a LoopSchedule whatever the family, and so has a step without a kernel (plan/choose.h). On GPUs
// products are cut in tiles, depthwise windows in theirs, and everything else is loops.
Result<Schedule> schedule_from_text(Family family, std::string_view text) {
  const auto variant = record_detail::find_field(text, "variant");
  const auto rows = info(family).variants;
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const Variant& v) { return variant && v.name == *variant; });
  if (row != rows.end() && row->device != DeviceKind::cpu) {
    if (record_detail::find_field(text, "pairs")) return parse_schedule<FftTileSchedule>(text);
    if (record_detail::find_field(text, "thread_m")) return parse_schedule<TileSchedule>(text);
    return record_detail::find_field(text, "columns") ? parse_schedule<DepthwiseSchedule>(text)
                                                      : parse_schedule<LoopSchedule>(text);
  }
  const bool plain = variant && (*variant == "plain" || *variant == "no_kernel");
  if (family == Family::gemm && !plain) return parse_schedule<GemmSchedule>(text);
  if (family == Family::depthwise && !plain) return parse_schedule<DepthwiseSchedule>(text);
  if (family == Family::direct && !plain) return parse_schedule<DirectSchedule>(text);
  if (family == Family::grouped && !plain) return parse_schedule<GroupedSchedule>(text);
  if (family == Family::inverted && !plain) return parse_schedule<InvertedSchedule>(text);
  if (family == Family::fft && !plain) return parse_schedule<FftSchedule>(text);
  if (family == Family::winograd && !plain) return parse_schedule<WinogradSchedule>(text);
  return parse_schedule<LoopSchedule>(text);
}

Result<StageParams> params_from_text(Family family, std::string_view text) {
  return parse_params(static_cast<size_t>(family), text);
}

const FamilyInfo& info(Family family) {
  static const std::array<const FamilyInfo*, kFamilies> infos = {
      &gemm_info(),      &depthwise_info(), &pool_info(),     &pointwise_info(), &reduce_info(),    &softmax_info(),
      &normalize_info(), &copy_info(),      &pad_info(),      &resize_info(),    &gather_info(),    &scatter_info(),
      &top_k_info(),     &scan_info(),      &triangle_info(), &non_max_info(),   &attention_info(), &rotary_info(),
      &sample_info(),    &deform_info(),    &quantize_info(), &winograd_info(),  &grouped_info(),   &direct_info(),
      &inverted_info(),  &fft_info()};
  return *infos[static_cast<size_t>(family)];
}

Status check_data(const Stage& stage, std::span<const TensorView> inputs, const std::string& node) {
  const auto check = info(stage.family()).check;
  if (!check) return ok();
  Status status = check(stage.params, inputs);
  if (status.ok()) return status;
  Error error = status.take_error();
  error.message = "Node '" + node + "': " + error.message + ".";
  return error;
}

}  // namespace sparkle
