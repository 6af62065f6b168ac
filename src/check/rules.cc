// The table of rules, and what they share.
#include "check/rules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/round_up.h"

namespace sparkle {
namespace {

constexpr Rule kRules[] = {
    {Reason::channels_unaligned, "C and K of a convolution", rule::channels_unaligned},
    {Reason::features_unaligned, "depth and columns of a product", rule::features_unaligned},
    {Reason::head_unaligned, "the size of attention heads", rule::head_unaligned},
    {Reason::wide_type, "products in fp32 where matrix units take 16 bits", rule::wide_type},
    {Reason::double_type, "products in fp64", rule::double_type},
    {Reason::type_without_unit, "products in a type that no unit multiplies", rule::type_without_unit},
    {Reason::mixed_types, "Cast in front of a product", rule::mixed_types},
    {Reason::float_island, "operators between DequantizeLinear and QuantizeLinear", rule::float_island},
    {Reason::weights_asymmetric, "zero points of quantised weights", rule::weights_asymmetric},
    {Reason::weights_not_constant, "filters of a convolution that are no constant", rule::weights_not_constant},
    {Reason::layout_change, "copies between layers", rule::layout_change},
    {Reason::grouped_channels, "channels per group", rule::grouped_channels},
    {Reason::depthwise, "a group per channel", rule::depthwise},
    {Reason::large_kernel, "taps of the filter", rule::large_kernel},
    {Reason::device_not_filled, "tiles of a product beside the cores", rule::device_not_filled},
    {Reason::single_row, "rows of a product", rule::single_row},
    {Reason::memory_bound, "arithmetic per byte", rule::memory_bound},
    {Reason::no_device_kernel, "the kernel that was planned", rule::no_device_kernel},
    {Reason::batchnorm_apart, "BatchNormalization in a step of its own", rule::batchnorm_apart},
    {Reason::unfused_pointwise, "element-wise operators in a step of their own", rule::unfused_pointwise},
    {Reason::attention_unfused, "Softmax between two products", rule::attention_unfused},
};

}  // namespace

std::span<const Rule> rules() { return kRules; }

double Subject::seconds_if(const Problem& changed, Precision then) const {
  const auto after = estimate(changed, then, device);
  if (!after || !problem) return row.seconds;
  const auto now = precision ? estimate(*problem, *precision, device) : std::nullopt;
  return now ? row.seconds * after->cost.seconds / now->cost.seconds : after->cost.seconds;
}

const Op* producer(const Graph& graph, TensorId id) {
  for (const Op& op : graph.ops)
    if (std::find(op.outputs.begin(), op.outputs.end(), id) != op.outputs.end()) return &op;
  return nullptr;
}

bool is_product(const Op& op) {
  return std::holds_alternative<ConvOp>(op.params) || std::holds_alternative<MatMulOp>(op.params);
}

bool is_channelwise(const Problem& p) { return p.kind != ProblemKind::matmul && p.groups > 1 && p.groups == p.c; }

const Paddings& AskedPaddings::in(Precision precision) {
  const auto at = asked_.find(precision);
  return at != asked_.end() ? at->second : asked_.emplace(precision, ask_(device_, precision)).first->second;
}

const PaddedLayer* Subject::padding(const Op& op, Precision then) const {
  if (!asked || !asked->known()) return nullptr;
  const auto& paddings = asked->in(then).layers;
  if (const auto at = paddings.find(op.name); at != paddings.end()) return &at->second;
  for (const TensorId out : op.outputs)
    if (out != kAbsent)
      if (const auto at = paddings.find(graph.tensor(out).name); at != paddings.end()) return &at->second;
  return nullptr;
}

const PaddedLayer* Subject::padding(Precision then) const {
  for (const Op* op : ops)
    if (const PaddedLayer* layer = padding(*op, then)) return layer;
  return nullptr;
}

Problem Subject::as_fixed(Precision then) const {
  Problem p = *problem;
  const PaddedLayer* layer = padding(then);
  if (!layer || !layer->grows()) return p;
  if (p.kind == ProblemKind::matmul) {
    if (p.depth == layer->in) p.depth = layer->in_to;
    if (p.columns == layer->out) p.columns = layer->out_to;
  } else if (is_channelwise(p)) {
    if (p.c == layer->in) p.c = p.k = p.groups = layer->in_to;
  } else {
    if (p.c == layer->in * p.groups) p.c = layer->in_to * p.groups;
    if (p.k == layer->out * p.groups) p.k = layer->out_to * p.groups;
  }
  return p;
}

Problem aligned(Problem p, const MathUnit& unit) {
  const int64_t want = channel_multiple(unit);
  if (p.kind == ProblemKind::matmul) {
    p.depth = rounded_up(p.depth, want), p.columns = rounded_up(p.columns, want);
  } else if (p.groups == 1) {
    p.c = rounded_up(p.c, want), p.k = rounded_up(p.k, want);
  }
  return p;
}

std::string in_words(int64_t n) { return std::to_string(n); }

std::string in_digits(double value, int digits) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string in_bytes(double bytes) {
  constexpr std::array<const char*, 4> kUnits = {"B", "KB", "MB", "GB"};
  size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < kUnits.size()) bytes /= 1000, ++unit;
  return in_digits(bytes, unit == 0 || bytes >= 100 ? 0 : bytes >= 10 ? 1 : 2) + " " + kUnits[unit];
}

std::string in_time(double seconds) {
  const double ms = seconds * 1e3;
  return ms >= 1 ? in_digits(ms, ms >= 100 ? 0 : 2) + " ms" : in_digits(ms * 1e3, ms >= 0.1 ? 0 : 1) + " us";
}

std::string in_percent(double share) { return in_digits(100 * share, share >= 0.1 || share == 0 ? 0 : 1) + " %"; }

}  // namespace sparkle
