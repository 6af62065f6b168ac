// How far runs of channels grow: each to the next multiple, unless its chain would then have too much extra arithmetic.
#include "fix/pad/plan.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "base/round_up.h"
#include "fix/pad/walk.h"

namespace sparkle::fix {
namespace {

// Products that share channels, directly or through others.
std::vector<std::vector<size_t>> chains_of(const PadPlan& plan) {
  std::map<int, size_t> first;  // product by run
  std::vector<size_t> chain(plan.products.size());
  for (size_t i = 0; i < chain.size(); ++i) chain[i] = i;
  const auto root = [&](size_t i) {
    while (chain[i] != i) i = chain[i];
    return i;
  };
  for (size_t i = 0; i < plan.products.size(); ++i)
    for (const Runs& list : {plan.products[i].in, plan.products[i].out})
      for (const Run& run : plan.channels.expand(list)) {
        const auto [at, fresh] = first.emplace(run.id, i);
        if (!fresh) chain[root(i)] = root(at->second);
      }
  std::map<size_t, std::vector<size_t>> members;
  for (size_t i = 0; i < chain.size(); ++i) members[root(i)].push_back(i);
  std::vector<std::vector<size_t>> found;
  for (auto& [key, list] : members) found.push_back(std::move(list));
  return found;
}

std::string percent(double share) { return std::to_string(static_cast<int>(share * 100 + 0.5)) + " %"; }

class Chooser {
 public:
  Chooser(PadPlan& plan, const PadOptions& options) : plan_(plan), options_(options) {}

  void settle() {
    // Runs of a list that is a multiple as it is stay, unless another list has one of them grow.
    for (bool changed = true; changed;) {
      changed = false;
      for (const Runs& list : plan_.wanted) {
        if (plan_.channels.grown(list) % options_.multiple == 0) continue;
        for (const Run& run : plan_.channels.expand(list)) {
          const int64_t to = rounded_up(plan_.channels.run_size(run.id), options_.multiple);
          if (plan_.channels.pinned(run.id) || plan_.channels.grown(run.id) == to) continue;
          plan_.channels.grow(run.id, to);
          changed = true;
        }
      }
    }
    for (const auto& members : chains_of(plan_)) {
      std::set<int> runs;
      for (size_t i : members)
        for (const Runs& list : {plan_.products[i].in, plan_.products[i].out})
          for (const Run& run : plan_.channels.expand(list)) runs.insert(run.id);
      while (shrink_costliest(members, runs)) continue;
      note(members);
    }
  }

 private:
  double macs(const std::vector<size_t>& members) const {
    double sum = 0;
    for (size_t i : members) sum += plan_.macs_of(plan_.products[i]);
    return sum;
  }

  // Where the chain is over its limit: the run that costs most keeps its size.
  bool shrink_costliest(const std::vector<size_t>& members, const std::set<int>& runs) {
    double before = 0;
    for (size_t i : members) before += plan_.products[i].macs;
    const double after = macs(members);
    if (after <= before * (1 + options_.max_extra)) return false;
    int costliest = -1;
    double most = 0;
    for (int id : runs) {
      const int64_t grown = plan_.channels.grown(id);
      if (grown == plan_.channels.run_size(id)) continue;
      plan_.channels.grow(id, plan_.channels.run_size(id));
      const double saved = after - macs(members);
      plan_.channels.grow(id, grown);
      if (costliest < 0 || saved > most) costliest = id, most = saved;
    }
    if (costliest < 0) return false;
    plan_.refused.push_back({plan_.channels.run_name(costliest),
                             "would bring " + percent(most / before) + " more arithmetic to its chain of layers, together " +
                                 percent(after / before - 1) + " where " + percent(options_.max_extra) + " is the limit",
                             plan_.channels.run_size(costliest), plan_.channels.grown(costliest)});
    plan_.channels.grow(costliest, plan_.channels.run_size(costliest));
    return true;
  }

  void note(const std::vector<size_t>& members) {
    PadPlan::Chain chain;
    for (size_t i : members) {
      chain.layers.push_back(plan_.products[i].name);
      chain.before += plan_.products[i].macs;
    }
    chain.after = macs(members);
    if (chain.after > chain.before) plan_.chains.push_back(std::move(chain));
  }

  PadPlan& plan_;
  const PadOptions& options_;
};

}  // namespace

bool PadPlan::empty() const {
  return std::all_of(products.begin(), products.end(), [&](const Product& p) {
    return channels.grown(p.in) == channels.size(p.in) && channels.grown(p.out) == channels.size(p.out);
  });
}

double PadPlan::macs_of(const Product& p) const {
  const auto ratio = [&](const Runs& list) {
    return list.empty() ? 1.0 : static_cast<double>(channels.grown(list)) / static_cast<double>(channels.size(list));
  };
  return p.macs * ratio(p.in) * (p.one ? 1 : ratio(p.out));
}

PadPlan plan_padding(const Document& doc, const std::map<std::string, TensorInfo>& tensors, const PadOptions& options) {
  Walk walk(doc, tensors);
  walk.run();
  PadPlan plan = std::move(walk.plan);
  Chooser(plan, options).settle();
  return plan;
}

std::vector<std::string> to_lines(const PadPlan& plan) {
  std::vector<std::string> lines;
  const auto change = [&](const Runs& list) {
    const int64_t from = plan.channels.size(list), to = plan.channels.grown(list);
    return std::to_string(from) + (from == to ? "" : " -> " + std::to_string(to));
  };
  for (const auto& p : plan.products) {
    if (plan.channels.grown(p.in) == plan.channels.size(p.in) && plan.channels.grown(p.out) == plan.channels.size(p.out))
      continue;
    std::string line = p.name + ":";
    if (!p.in.empty()) line += " " + change(p.in) + " channels in";
    if (!p.out.empty() && !p.one) line += (p.in.empty() ? " " : ", ") + change(p.out) + " out";
    if (p.groups > 1) line += " of each of " + std::to_string(p.groups) + " groups";
    lines.push_back(line);
  }
  for (const auto& h : plan.heads)
    lines.push_back(h.name + ": " + std::to_string(h.count) + " heads of " + change(h.runs) + " elements");
  for (const auto& chain : plan.chains) {
    const double percent = chain.extra() * 100;
    char text[64];
    std::snprintf(text, sizeof text, "%.1f %%", percent);
    lines.push_back("extra arithmetic: " + std::string(text) + " in the chain of " + std::to_string(chain.layers.size()) +
                    " layers from " + chain.layers.front() + " to " + chain.layers.back());
  }
  for (const auto& r : plan.refused)
    lines.push_back("refused: " + r.name + " keeps " + std::to_string(r.from) + " channels: " + std::to_string(r.to) + " " +
                    r.why);
  return lines;
}

}  // namespace sparkle::fix
