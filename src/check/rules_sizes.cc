// Rules on sizes: what matrix units want of channels, features, heads and groups.
#include <algorithm>

#include "base/round_up.h"
#include "check/rules.h"
#include "families/attention/attention.h"
#include "plan/choose/choose.h"

namespace sparkle::rule {
namespace {

std::string sizes(int64_t a, const char* what_a, int64_t b, const char* what_b, int64_t want) {
  std::string text;
  if (a % want) text = in_words(a) + " " + what_a;
  if (b % want) text += (text.empty() ? "" : " and ") + in_words(b) + " " + what_b;
  return text;
}

std::string more_work(double share) {
  return share < 0.005 ? "hardly any more arithmetic" : in_percent(share) + " more arithmetic";
}

// What changes, as "72 input channels and 136 filters".
std::string changes(int64_t a, int64_t a_to, const char* what_a, int64_t b, int64_t b_to, const char* what_b) {
  std::string text;
  if (a != a_to) text = in_words(a_to) + " " + what_a;
  if (b != b_to) text += (text.empty() ? "" : " and ") + in_words(b_to) + " " + what_b;
  return text;
}

// Whose channels those of a layer are that `fix` knows nothing of.
constexpr const char* kNotPadded =
    "'sparkle fix' leaves it: it pads products with constant weights in floats; choose such sizes before export";

struct Sides {
  const char *in, *out;
};

// The finding of sizes that padding would mend; nothing where the kernels of this build lose nothing by them. What is advised
// is what `fix` does.
std::optional<Finding> unaligned(const Subject& s, Reason code, const std::string& what, const Sides& sides) {
  const Precision precision = *s.matrix_precision;
  const int64_t want = channel_multiple(*s.matrix);
  const bool other = s.precision != s.matrix_precision;
  Finding f;
  f.code = code;
  f.in_model = true;
  f.now_seconds = f.then_seconds = other ? s.seconds_if(*s.problem, precision) : s.row.seconds;
  if (!pays(f.now_seconds, s.seconds_if(aligned(*s.problem, *s.matrix), precision))) return std::nullopt;
  f.rule = what + ": " + s.matrix->name + (other ? " (in " + std::string(name_of(precision)) + ")" : "") +
           " takes multiples of " + in_words(want) + ", runs of " + in_words(want * size_of(s.matrix->input)) + " bytes";
  const PaddedLayer* layer = s.padding(precision);
  if (!layer) {
    f.fix = kNotPadded;
    return f;
  }
  if (!layer->grows()) {
    f.fix = "'sparkle fix' leaves it: " +
            (layer->refused.empty() ? "what its channels lead to sums over all of them" : layer->refused);
    return f;
  }
  const Problem then = s.as_fixed(precision);
  f.by_fix = true;
  f.then_seconds = std::min(f.now_seconds, s.seconds_if(then, precision));
  f.fix = "pad to " + changes(layer->in, layer->in_to, sides.in, layer->out, layer->out_to, sides.out) + " with zeros, " +
          more_work(then.nominal_flops() / s.problem->nominal_flops() - 1);
  if (!layer->refused.empty()) f.fix += "; the rest stays: " + layer->refused;
  return f;
}

// Sizes of attention: of queries and keys, and of values and results.
struct Heads {
  int64_t size = 1, columns = 1;
  friend bool operator==(const Heads&, const Heads&) = default;
};

// What a stage of attention takes with heads of other sizes, its rows side by side; 0: no kernel computes it.
double attention_seconds(Stage stage, const Heads& heads, const Device& device) {
  const auto resize = [](TensorDesc& d, int64_t size) {
    d.shape[d.shape.size() - 1] = size;
    d.layout = row_major(d.shape);
  };
  resize(stage.inputs[0], heads.size), resize(stage.inputs[1], heads.size);
  resize(stage.inputs[2], heads.columns), resize(stage.outputs[0], heads.columns);
  const auto choice = choose(stage, device, {});
  return choice.ok() && !choice->without_kernel ? choice->cost.seconds : 0;
}

}  // namespace

std::optional<Finding> channels_unaligned(const Subject& s) {
  if (!s.problem || s.problem->kind == ProblemKind::matmul || s.problem->groups > 1 || !s.matrix) return std::nullopt;
  const int64_t want = channel_multiple(*s.matrix), c = s.problem->c, k = s.problem->k;
  if (c % want == 0 && k % want == 0) return std::nullopt;
  return unaligned(s, Reason::channels_unaligned, sizes(c, "input channels", k, "filters", want),
                   {"input channels", "filters"});
}

std::optional<Finding> features_unaligned(const Subject& s) {
  if (!s.problem || s.problem->kind != ProblemKind::matmul || !s.matrix) return std::nullopt;
  const int64_t want = channel_multiple(*s.matrix), depth = s.problem->depth, columns = s.problem->columns;
  if (depth % want == 0 && columns % want == 0) return std::nullopt;
  return unaligned(s, Reason::features_unaligned, sizes(depth, "inputs", columns, "outputs", want), {"inputs", "outputs"});
}

std::optional<Finding> head_unaligned(const Subject& s) {
  if (!get_if<AttentionParams>(&s.step.stage.params) || !s.matrix || s.step.stage.inputs.size() < 3) return std::nullopt;
  const Heads now{s.step.stage.inputs[0].shape.back(), s.step.stage.inputs[2].shape.back()};
  const int64_t want = channel_multiple(*s.matrix);
  if (now.size % want == 0 && now.columns % want == 0) return std::nullopt;
  const auto seconds_if = [&](const Heads& then) {
    const double before = attention_seconds(s.step.stage, now, s.device),
                 after = attention_seconds(s.step.stage, then, s.device);
    return before > 0 && after > 0 ? s.row.seconds * after / before : s.row.seconds;
  };
  const Heads whole{rounded_up(now.size, want), rounded_up(now.columns, want)};
  if (!pays(s.row.seconds, seconds_if(whole))) return std::nullopt;
  Finding f;
  f.code = Reason::head_unaligned;
  f.in_model = true;
  f.now_seconds = f.then_seconds = s.row.seconds;
  f.rule = "heads of " + in_words(now.size) + ": kernels for " + s.matrix->name + " copy runs of " +
           in_words(want * size_of(s.matrix->input)) + " bytes, multiples of " + in_words(want) +
           ", and load others element by element";
  Heads then = now;
  const Precision precision = *s.matrix_precision;
  std::string refused;
  for (const Op* op : s.ops)
    if (const PaddedLayer* layer = s.padding(*op, precision)) {
      if (layer->in == now.size) then.size = layer->in_to;
      if (layer->out == now.columns) then.columns = layer->out_to;
      if (!layer->refused.empty()) refused = layer->refused;
    }
  if (then == now) {
    f.fix =
        "'sparkle fix' leaves them" + (refused.empty() ? "" : ": " + refused) + "; train with heads of " + in_words(whole.size);
    return f;
  }
  f.by_fix = true;
  f.then_seconds = std::min(s.row.seconds, seconds_if(then));
  f.fix = "pad heads to " + in_words(then.size) + " with zeros; the scale stays that of " + in_words(now.size);
  return f;
}

std::optional<Finding> grouped_channels(const Subject& s) {
  if (!s.problem || s.problem->kind == ProblemKind::matmul || !s.matrix) return std::nullopt;
  const Problem& p = *s.problem;
  const int64_t c = p.c / p.groups;
  if (p.groups == 1 || c == 1 || (c >= s.matrix->k && c % channel_multiple(*s.matrix) == 0)) return std::nullopt;
  Finding f;
  f.code = Reason::grouped_channels;
  f.now_seconds = s.row.seconds, f.then_seconds = s.row.seconds;
  f.rule = in_words(p.groups) + " groups of " + in_words(c) + " channels: one instruction of " + s.matrix->name +
           " sums over " + in_words(s.matrix->k);
  const bool other = s.precision != s.matrix_precision;
  if (other) f.now_seconds = f.then_seconds = s.seconds_if(p, *s.matrix_precision);
  int64_t best = p.groups;
  for (int64_t groups = p.groups / 2; groups >= 1; --groups) {
    if (p.groups % groups) continue;
    Problem merged = p;
    merged.groups = groups;
    if (const double seconds = s.seconds_if(merged, *s.matrix_precision); seconds < (1 - kLeastGain) * f.then_seconds)
      best = groups, f.then_seconds = seconds;
  }
  if (best == p.groups) {
    f.fix = "train with at least " + in_words(s.matrix->k) +
            " channels a group; as they are, merging groups costs more than it brings";
  } else {
    f.in_model = true;
    f.fix = "merge to " + in_words(best) + (best == 1 ? " group" : " groups") + " of " + in_words(p.c / best) +
            " channels, zeros between them";
  }
  return f;
}

std::optional<Finding> depthwise(const Subject& s) {
  if (!s.problem || !is_channelwise(*s.problem) || !s.matrix) return std::nullopt;
  const Problem& p = *s.problem;
  const double intensity = p.nominal_flops() / std::max(1.0, s.row.bytes);
  Finding f;
  f.code = Reason::depthwise;
  f.now_seconds = f.then_seconds = s.row.seconds;
  f.rule = "a filter of " + in_words(p.window.taps()) + " taps for each of " + in_words(p.c) +
           " channels: " + in_digits(intensity, 1) + " flops a byte, on vectors";
  f.fix = "nothing exact; fuse it with the layers around it, or train with full convolutions of fewer channels";
  return f;
}

std::optional<Finding> large_kernel(const Subject& s) {
  if (!s.problem || s.problem->kind != ProblemKind::conv) return std::nullopt;
  const Problem& p = *s.problem;
  constexpr int64_t kMostTaps = 49;  // 7 x 7, the largest that is common
  if (p.window.taps() <= kMostTaps || s.row.algorithm == "fft") return std::nullopt;
  if (p.window.stride != Triple{1, 1, 1}) return std::nullopt;  // patches: each pixel is read once
  Finding f;
  f.code = Reason::large_kernel;
  f.now_seconds = f.then_seconds = s.row.seconds;
  f.rule = "a filter of " + in_words(p.window.filter[1]) + " x " + in_words(p.window.filter[2]) + " is " +
           in_words(p.window.taps()) + " products per sum and channel";
  f.fix = "take a transform (--algorithm fft where it serves), or train with small filters one behind the other";
  return f;
}

}  // namespace sparkle::rule
