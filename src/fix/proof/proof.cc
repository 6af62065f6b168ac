#include "fix/proof/proof.h"

#include <algorithm>
#include <limits>

namespace sparkle::fix {

bool Proof::same_bits() const {
  return std::all_of(outputs.begin(), outputs.end(), [](const Difference& d) { return d.same_bits; });
}
double Proof::cosine() const {
  double least = 1;
  for (const Difference& d : outputs) least = std::min(least, d.cosine);
  return least;
}
double Proof::largest() const {
  double most = 0;
  for (const Difference& d : outputs) most = std::max(most, d.largest);
  return most;
}
bool Proof::classifies() const {
  return !outputs.empty() && std::all_of(outputs.begin(), outputs.end(), [](const Difference& d) { return d.classes; });
}
double Proof::agreement() const {
  double least = 1;
  for (const Difference& d : outputs)
    if (d.samples > 0) least = std::min(least, static_cast<double>(d.same_top1) / d.samples);
  return least;
}

Result<Proof> prove(const Document& original, const Document& fixed, const std::vector<Sample>& samples,
                    const std::shared_ptr<Backend>& backend) {
  SPARKLE_TRY(before, Runner::open(original, backend));
  SPARKLE_TRY(after, Runner::open(fixed, backend));
  Proof proof;
  for (const std::string& name : before.names()) proof.outputs.push_back({name});
  for (const Sample& sample : samples) {
    SPARKLE_TRY(wanted, before.run(sample));
    SPARKLE_TRY(found, after.run(sample));
    for (size_t o = 0; o < proof.outputs.size() && o < found.size(); ++o) add_sample(proof.outputs[o], wanted[o], found[o]);
  }
  return proof;
}

Result<std::vector<Entrance>> where_errors_enter(const Document& original, const Document& fixed, const Sample& sample,
                                                 const std::shared_ptr<Backend>& backend) {
  std::vector<std::string> names;
  for (const auto& node : original.graph().node())
    for (const std::string& name : node.output())
      if (!name.empty() && fixed.producer(name) >= 0) names.push_back(name);
  SPARKLE_TRY(before, Runner::open(original, backend, names));
  SPARKLE_TRY(after, Runner::open(fixed, backend, names));
  SPARKLE_TRY(wanted, before.run(sample));
  SPARKLE_TRY(found, after.run(sample));
  std::map<std::string, double> errors;
  for (size_t i = 0; i < before.names().size(); ++i) {
    const auto at = std::find(after.names().begin(), after.names().end(), before.names()[i]);
    if (at != after.names().end())
      errors[before.names()[i]] = relative_error(wanted[i], found[static_cast<size_t>(at - after.names().begin())]);
  }
  std::vector<Entrance> entrances;
  for (int n = 0; n < original.graph().node_size(); ++n) {
    const auto& node = original.graph().node(n);
    if (node.output_size() == 0 || !errors.contains(node.output(0))) continue;
    Entrance e{label_of(node, n), node.output(0), errors[node.output(0)], 0};
    for (const std::string& name : node.input())
      if (const auto at = errors.find(name); at != errors.end()) e.before = std::max(e.before, at->second);
    entrances.push_back(e);
  }
  std::sort(entrances.begin(), entrances.end(), [](const Entrance& a, const Entrance& b) {
    return std::pair(b.error - b.before, a.tensor) < std::pair(a.error - a.before, b.tensor);
  });
  return entrances;
}

}  // namespace sparkle::fix
