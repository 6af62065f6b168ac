#include "fix/proof/sensitivity.h"

#include <algorithm>
#include <cmath>

namespace sparkle::fix {

std::vector<LayerGroup> layer_groups(const Document& doc, const std::map<std::string, TensorInfo>& tensors) {
  std::vector<LayerGroup> groups{{"what lies before the first product", {}, 0, 0}};
  std::map<int, size_t> products;
  for (const auto& p : products_of(doc, tensors)) {
    products[p.node] = groups.size();
    groups.push_back({p.name, {}, p.macs, 0});
  }
  std::map<std::string, size_t> group_of;
  for (int n = 0; n < doc.graph().node_size(); ++n) {
    const auto& node = doc.graph().node(n);
    if (node.output_size() == 0) continue;
    size_t group = 0;
    if (const auto at = products.find(n); at != products.end()) group = at->second;
    else
      for (const std::string& name : node.input())
        if (const auto of = group_of.find(name); of != group_of.end()) group = std::max(group, of->second);
    for (const std::string& name : node.output()) group_of[name] = group;
    groups[group].tensors.push_back(node.output(0));
  }
  return groups;
}

Status measure_sensitivity(const Document& doc, std::vector<LayerGroup>& groups, const std::vector<Sample>& samples,
                           const std::function<Result<Document>(const Layers& wide)>& convert,
                           const std::shared_ptr<Backend>& backend) {
  SPARKLE_TRY(before, Runner::open(doc, backend));
  std::vector<std::vector<HostTensor>> wanted;
  for (const Sample& sample : samples) {
    SPARKLE_TRY(outputs, before.run(sample));
    wanted.push_back(std::move(outputs));
  }
  for (LayerGroup& group : groups) {
    if (group.tensors.empty()) continue;
    Layers wide;
    for (const LayerGroup& other : groups)
      if (&other != &group) wide.insert(other.tensors.begin(), other.tensors.end());
    SPARKLE_TRY(alone, convert(wide));
    SPARKLE_TRY(runner, Runner::open(alone, backend));
    group.error = 0;
    for (size_t s = 0; s < samples.size(); ++s) {
      SPARKLE_TRY(found, runner.run(samples[s]));
      for (size_t o = 0; o < wanted[s].size(); ++o) group.error = std::max(group.error, relative_error(wanted[s][o], found[o]));
    }
    if (!std::isfinite(group.error)) group.error = 1e6;
  }
  return ok();
}

std::vector<const LayerGroup*> worst_groups(const std::vector<LayerGroup>& groups, double share) {
  double all = 0;
  std::vector<const LayerGroup*> order;
  for (const LayerGroup& g : groups) all += g.error * g.error, order.push_back(&g);
  const auto harm = [](const LayerGroup* g) { return g->error * g->error / std::max(g->macs, 1.0); };
  std::sort(order.begin(), order.end(), [&](const LayerGroup* a, const LayerGroup* b) {
    return std::pair(-harm(a), a->name) < std::pair(-harm(b), b->name);
  });
  std::vector<const LayerGroup*> wide;
  double left = all;
  for (const LayerGroup* g : order) {
    if (left <= share * all || g->error == 0) break;
    left -= g->error * g->error;
    wide.push_back(g);
  }
  return wide;
}

}  // namespace sparkle::fix
