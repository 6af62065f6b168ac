#include "fix/proof/proof.h"

#include <algorithm>
#include <limits>
#include <numeric>

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

std::vector<size_t> Proof::worst_samples(size_t most) const {
  std::vector<size_t> order(samples.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const OfSample &x = samples[a], &y = samples[b];
    return x.class_lost != y.class_lost ? x.class_lost : x.cosine < y.cosine;
  });
  order.resize(std::min(order.size(), most));
  return order;
}

Result<Prover> Prover::open(const Document& original, const std::vector<Sample>& samples, std::shared_ptr<Backend> backend) {
  SPARKLE_TRY(runner, Runner::open(original, backend));
  Prover prover;
  prover.samples_ = &samples, prover.backend_ = std::move(backend);
  prover.original_ = std::move(runner);
  return prover;
}

Result<std::vector<HostTensor>> Prover::wanted(size_t sample) {
  constexpr int64_t kMostBytes = int64_t{256} << 20;
  if (sample < answers_.size()) return answers_[sample];
  SPARKLE_TRY(outputs, original_->run((*samples_)[sample]));
  for (const HostTensor& t : outputs) bytes_ += t.size_bytes();
  if (sample == answers_.size() && bytes_ <= kMostBytes) answers_.push_back(outputs);
  return outputs;
}

Result<Proof> Prover::prove(const Document& fixed) {
  SPARKLE_TRY(runner, Runner::open(fixed, backend_));
  Proof proof;
  for (const std::string& name : original_->names()) proof.outputs.push_back({name});
  for (size_t s = 0; s < samples_->size(); ++s) {
    SPARKLE_TRY(answers, wanted(s));
    SPARKLE_TRY(found, runner.run((*samples_)[s]));
    Proof::OfSample of_sample;
    for (size_t o = 0; o < proof.outputs.size() && o < found.size(); ++o) {
      Difference d;
      add_sample(d, answers[o], found[o]);
      of_sample.class_lost = of_sample.class_lost || (d.classes && d.same_top1 == 0);
      of_sample.cosine = std::min(of_sample.cosine, d.cosine);
      add(proof.outputs[o], d);
    }
    proof.samples.push_back(of_sample);
  }
  return proof;
}

Result<Proof> prove(const Document& original, const Document& fixed, const std::vector<Sample>& samples,
                    const std::shared_ptr<Backend>& backend) {
  SPARKLE_TRY(prover, Prover::open(original, samples, backend));
  return prover.prove(fixed);
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
