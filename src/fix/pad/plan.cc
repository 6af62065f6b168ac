// How far runs of channels grow: each to the next multiple, unless its chain would then take as long as before on the target,
// or have too much extra arithmetic.
#include "fix/pad/plan.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "base/round_up.h"
#include "check/estimate.h"
#include "check/rules.h"
#include "fix/pad/predict.h"
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
      std::optional<PredictedChain> predicted;
      if (options_.target && std::any_of(runs.begin(), runs.end(), [&](int id) { return grows(id); })) {
        predicted.emplace(plan_, *options_.target, members);
      }
      while (shrink_costliest(members, runs, predicted ? &*predicted : nullptr)) continue;
      if (predicted && !options_.anyway) keep_what_pays(*predicted, runs);
      note(members, predicted ? &*predicted : nullptr);
    }
  }

 private:
  double macs(const std::vector<size_t>& members) const {
    double sum = 0;
    for (size_t i : members) sum += plan_.macs_of(plan_.products[i]);
    return sum;
  }

  bool grows(int id) const { return plan_.channels.grown(id) != plan_.channels.run_size(id); }

  void refuse(int id, const std::string& why) {
    const int64_t from = plan_.channels.run_size(id);
    plan_.refused.push_back({plan_.channels.run_name(id), why, from, plan_.channels.grown(id), id});
    plan_.channels.grow(id, from);
  }

  // What a function says with the run at its own size.
  template <class F>
  double without(int id, const F& say) {
    const int64_t grown = plan_.channels.grown(id);
    plan_.channels.grow(id, plan_.channels.run_size(id));
    const double said = say();
    plan_.channels.grow(id, grown);
    return said;
  }

  // Runs without which the chain is as fast or faster keep their sizes, one after the other, since some pay together alone.
  void keep_what_pays(PredictedChain& chain, const std::set<int>& runs) {
    for (;;) {
      const double now = chain.seconds();
      int idle = -1;
      double least = now;
      for (int id : runs) {
        if (!grows(id)) continue;
        const double other = without(id, [&] { return chain.seconds(); });
        if (other <= least) idle = id, least = other;
      }
      if (idle < 0) break;
      refuse(idle, no_gain(now, least));
    }
    const double before = chain.before_seconds(), after = chain.seconds();
    if (pays(before, after)) return;
    for (int id : runs)
      if (grows(id)) refuse(id, no_gain(after, before));
  }

  static std::string no_gain(double now, double without) {
    return "no gain: " + in_time(now) + " predicted for its chain of layers, " + in_time(without) + " as it is";
  }

  // Where the chain is over its limit: the run that costs most keeps its size.
  bool shrink_costliest(const std::vector<size_t>& members, const std::set<int>& runs, PredictedChain* chain) {
    double before = 0;
    for (size_t i : members) before += plan_.products[i].macs;
    const double after = macs(members);
    if (after <= before * (1 + options_.max_extra)) return false;
    int costliest = -1;
    double most = 0;
    for (int id : runs) {
      if (!grows(id)) continue;
      const double saved = after - without(id, [&] { return macs(members); });
      if (costliest < 0 || saved > most) costliest = id, most = saved;
    }
    if (costliest < 0) return false;
    if (chain) {
      const double now = chain->seconds(), least = without(costliest, [&] { return chain->seconds(); });
      if (least <= now) return refuse(costliest, no_gain(now, least)), true;
    }
    refuse(costliest, "above fix's limit of " + percent(options_.max_extra) +
                          " extra arithmetic in its chain of layers, which has " + percent(after / before - 1) +
                          " with it: --max-extra " + std::to_string(static_cast<int>(std::ceil(100 * (after / before - 1)))) +
                          " allows it");
    return true;
  }

  void note(const std::vector<size_t>& members, PredictedChain* predicted) {
    PadPlan::Chain chain;
    for (size_t i : members) {
      PadPlan::Product& p = plan_.products[i];
      chain.layers.push_back(p.name);
      chain.before += p.macs;
      if (predicted && plan_.grows(p)) p.before_seconds = predicted->before_of(i), p.after_seconds = predicted->after_of(i);
    }
    chain.after = macs(members);
    if (predicted) {
      chain.before_seconds = predicted->before_seconds(), chain.after_seconds = predicted->seconds();
      chain.border_seconds = predicted->border_seconds();
    }
    if (chain.after > chain.before) plan_.chains.push_back(std::move(chain));
  }

  PadPlan& plan_;
  const PadOptions& options_;
};

}  // namespace

bool PadPlan::empty() const {
  return std::none_of(products.begin(), products.end(), [&](const Product& p) { return grows(p); });
}

double PadPlan::macs_of(const Product& p) const {
  const auto ratio = [&](const Runs& list) {
    return list.empty() ? 1.0 : static_cast<double>(channels.grown(list)) / static_cast<double>(channels.size(list));
  };
  return p.macs * ratio(p.in) * (p.one ? 1 : ratio(p.out));
}

Problem PadPlan::padded(const Product& p) const {
  Problem problem = p.problem;
  const int64_t in = channels.grown(p.in), out = channels.grown(p.out);
  if (problem.kind == ProblemKind::matmul) {
    if (in > 0) problem.depth = in;
    if (out > 0) problem.columns = out;
  } else if (p.one) {
    if (in > 0) problem.c = problem.k = problem.groups = in;
  } else {
    if (in > 0) problem.c = in * problem.groups;
    if (out > 0) problem.k = out * problem.groups;
  }
  return problem;
}

PadOptions default_padding(const Device& device, Precision precision) {
  return {channel_multiple(device, precision), kMostExtra, PadTarget{device, precision}};
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
    if (!plan.grows(p)) continue;
    std::string line = p.name + ":";
    if (!p.in.empty()) line += " " + change(p.in) + " channels in";
    if (!p.out.empty() && !p.one) line += (p.in.empty() ? " " : ", ") + change(p.out) + " out";
    if (p.groups > 1) line += " of each of " + std::to_string(p.groups) + " groups";
    if (p.before_seconds > 0) line += ", predicted " + in_time(p.before_seconds) + " -> " + in_time(p.after_seconds);
    lines.push_back(line);
  }
  for (const auto& h : plan.heads)
    lines.push_back(h.name + ": " + std::to_string(h.count) + " heads of " + change(h.runs) + " elements");
  for (const auto& chain : plan.chains) {
    const double percent = chain.extra() * 100;
    char text[64];
    std::snprintf(text, sizeof text, "%.1f %%", percent);
    lines.push_back("extra arithmetic: " + std::string(text) + " in the chain of " + std::to_string(chain.layers.size()) +
                    " layers from " + chain.layers.front() + " to " + chain.layers.back() +
                    (chain.before_seconds > 0 ? ", predicted " + in_time(chain.before_seconds) + " -> " +
                                                    in_time(chain.after_seconds) + " with the copies at its ends"
                                              : ""));
  }
  for (const auto& r : plan.refused)
    lines.push_back("refused: " + r.name + " keeps " + std::to_string(r.from) + " channels: " + std::to_string(r.to) +
                    " would be " + r.why);
  return lines;
}

}  // namespace sparkle::fix
