#include "graph/refusals.h"

#include <algorithm>

#include "base/printable.h"

namespace sparkle {
namespace {

// Refusals of one operator for one reason.
struct Kind {
  std::string type, why;
  std::vector<std::string> names;
};

std::string named(const std::string& type) { return type.empty() ? "tensors" : type; }

std::vector<Kind> kinds_of(const std::vector<Refusal>& refusals) {
  std::vector<Kind> kinds;
  for (const Refusal& r : refusals) {
    const auto same = [&](const Kind& k) { return k.type == r.type && k.why == r.why; };
    auto at = std::find_if(kinds.begin(), kinds.end(), same);
    if (at == kinds.end()) at = kinds.insert(kinds.end(), {r.type, r.why, {}});
    at->names.push_back(r.name);
  }
  return kinds;
}

// "Foo x3, Bar x1", in the order of their first appearance.
std::string counted(const std::vector<Refusal>& refusals) {
  std::vector<std::pair<std::string, int>> counts;
  for (const Refusal& r : refusals) {
    auto at = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == r.type; });
    if (at == counts.end()) at = counts.insert(counts.end(), {r.type, 0});
    ++at->second;
  }
  std::string text;
  for (const auto& [type, count] : counts)
    text += (text.empty() ? "" : ", ") + printable(named(type)) + " x" + std::to_string(count);
  return text;
}

}  // namespace

Refusal wrongly_declared(const std::string& output, DType declared, DType computed) {
  return {output, "", Reason::bad_model,
          "the model declares this output as " + std::string(name_of(declared)) + ", but its nodes compute " +
              std::string(name_of(computed))};
}

// Names are made printable here: an end of a line in one would look like a line of the list.
Error refused(const std::string& model, const std::vector<Refusal>& refusals) {
  Reason reason = refusals[0].reason;
  for (const Refusal& r : refusals)
    if (r.reason == Reason::bad_model) reason = Reason::bad_model;
  if (refusals.size() == 1) {
    const Refusal& r = refusals[0];
    return {reason, "'" + model + "': " + (r.type.empty() ? "tensor '" : "node '") + r.name + "'" +
                        (r.type.empty() ? "" : " (" + r.type + ")") + ": " + r.why +
                        (reason == Reason::operator_not_served
                             ? "; export the model without it (docs/operators.md lists what is supported)."
                             : ".")};
  }
  const bool nodes = std::none_of(refusals.begin(), refusals.end(), [](const Refusal& r) { return r.type.empty(); });
  const std::string count = std::to_string(refusals.size());
  std::string text = "'" + model + "' ";
  if (reason == Reason::bad_model)
    text += "contradicts itself or the ONNX specification in " + count + " places (" + counted(refusals) + "); mend the model.";
  else
    text += "has " + count + (nodes ? " nodes" : " nodes and tensors") + " that cannot run here (" + counted(refusals) +
            "); export it without them (docs/operators.md lists what is supported).";
  for (const Kind& kind : kinds_of(refusals)) {
    text += "\n  " + printable(named(kind.type)) + " x" + std::to_string(kind.names.size()) + ": " + kind.why + ": ";
    for (size_t i = 0; i < kind.names.size(); ++i) text += (i ? ", '" : "'") + printable(kind.names[i]) + "'";
  }
  return {reason, std::move(text)};
}

}  // namespace sparkle
