#include "prepare/shape_advice.h"

namespace sparkle {
namespace {

bool fits(const SessionInput& want, const Dims& have) {
  if (have.size() != want.shape.size()) return false;
  for (int a = 0; a < have.size(); ++a)
    if (want.shape[a] >= 0 && want.shape[a] != have[a]) return false;
  return true;
}

// Batch, spatial axes, channels -> batch, channels, spatial axes.
Dims channels_first(const Dims& have) {
  Dims moved = have;
  moved.erase(have.size() - 1);
  moved.insert(1, have.back());
  return moved;
}

}  // namespace

std::string declared_shape(const SessionInput& input) {
  std::string text;
  for (int a = 0; a < input.shape.size(); ++a) {
    const auto at = static_cast<size_t>(a);
    const bool named = at < input.axis_names.size() && !input.axis_names[at].empty();
    text += a ? "x" : "";
    text += input.shape[a] >= 0 ? std::to_string(input.shape[a]) : named ? input.axis_names[at] : "?";
  }
  return text.empty() ? "scalar" : text;
}

std::string listed_inputs(const std::vector<SessionInput>& inputs) {
  std::string text;
  for (const SessionInput& in : inputs) {
    text += (text.empty() ? "'" : ", '") + in.name + "' (" + std::string(name_of(in.dtype)) +
            (in.rank_known ? " " + declared_shape(in) : "") + ")";
  }
  return text.empty() ? "no inputs" : text;
}

std::string shape_advice(const SessionInput& want, const Dims& have) {
  if (have.size() < 1) return "";
  Dims batch = have;
  if (have.size() < kMaxRank) batch.insert(0, 1);
  if (fits(want, batch)) return "; put the batch axis in front of it: " + batch.to_string();
  // One open axis more fits nearly everything: only where the model says how many channels it wants.
  const bool channels = want.shape.size() >= 3 && want.shape[1] > 0;
  if (channels && have.size() == want.shape.size() && fits(want, channels_first(have)))
    return "; its channels are last, transpose it to " + channels_first(have).to_string();
  if (channels && batch.size() == want.shape.size() && fits(want, channels_first(batch)))
    return "; its channels are last and it has no batch axis, bring it to " + channels_first(batch).to_string();
  return "";
}

}  // namespace sparkle
