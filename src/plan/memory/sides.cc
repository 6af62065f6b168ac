#include "plan/memory/sides.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sparkle {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// The largest flow by shortest paths (Dinic 1970), all of a length at a time. Each path fills an edge to the last bit, so that
// sums of any rounding come to an end.
class Flow {
 public:
  explicit Flow(size_t nodes) : edges_of_(nodes) {}

  void edge(size_t from, size_t to, double capacity) {
    if (!(capacity > 0)) return;
    edges_of_[from].push_back(edges_.size()), edges_.push_back({to, capacity});
    edges_of_[to].push_back(edges_.size()), edges_.push_back({from, 0});
  }

  void fill(size_t source, size_t sink) {
    while (measure(source, sink)) {
      next_.assign(edges_of_.size(), 0);
      while (augment(source, sink)) {
      }
    }
  }

  // The nodes from which more could flow to the sink.
  std::vector<bool> before(size_t sink) const {
    std::vector<bool> reached(edges_of_.size(), false);
    std::vector<size_t> open{sink};
    reached[sink] = true;
    while (!open.empty()) {
      const size_t node = open.back();
      open.pop_back();
      for (const size_t e : edges_of_[node]) {
        const size_t other = edges_[e].to;
        if (reached[other] || !(edges_[e ^ 1].left > 0)) continue;
        reached[other] = true;
        open.push_back(other);
      }
    }
    return reached;
  }

 private:
  struct Edge {
    size_t to = 0;
    double left = 0;  // of its capacity
  };

  // Steps from the source to each node; whether the sink can be reached.
  bool measure(size_t source, size_t sink) {
    depth_.assign(edges_of_.size(), -1);
    std::vector<size_t> order{source};
    depth_[source] = 0;
    for (size_t i = 0; i < order.size(); ++i)
      for (const size_t e : edges_of_[order[i]]) {
        if (!(edges_[e].left > 0) || depth_[edges_[e].to] >= 0) continue;
        depth_[edges_[e].to] = depth_[order[i]] + 1;
        order.push_back(edges_[e].to);
      }
    return depth_[sink] >= 0;
  }

  // One path of that length, without recursion: chains of models are long.
  bool augment(size_t source, size_t sink) {
    std::vector<size_t> path;
    for (size_t node = source; node != sink;) {
      const std::vector<size_t>& out = edges_of_[node];
      size_t& at = next_[node];
      while (at < out.size() && !(edges_[out[at]].left > 0 && depth_[edges_[out[at]].to] == depth_[node] + 1)) ++at;
      if (at < out.size()) {
        path.push_back(out[at]);
        node = edges_[out[at]].to;
        continue;
      }
      if (path.empty()) return false;
      node = edges_[path.back() ^ 1].to;
      ++next_[node];
      path.pop_back();
    }
    double flow = kInfinite;
    for (const size_t e : path) flow = std::min(flow, edges_[e].left);
    if (!(flow < kInfinite)) return false;  // a step that neither side can do
    for (const size_t e : path) edges_[e].left -= flow, edges_[e ^ 1].left += flow;
    return true;
  }

  std::vector<std::vector<size_t>> edges_of_;
  std::vector<Edge> edges_;  // an edge and its reverse, side by side
  std::vector<int> depth_;
  std::vector<size_t> next_;
};

// What can be reached from the steps that only the host can do, over bytes from writers to readers or the other way.
std::vector<bool> reached_from_host(const SideGraph& graph, bool forward) {
  std::vector<std::vector<int>> next(graph.steps.size());
  for (const SharedBytes& bytes : graph.shared)
    for (const int reader : bytes.readers) {
      if (bytes.writer < 0) continue;
      const auto from = static_cast<size_t>(forward ? bytes.writer : reader);
      next[from].push_back(forward ? reader : bytes.writer);
    }
  std::vector<bool> reached(graph.steps.size(), false);
  std::vector<size_t> open;
  for (size_t i = 0; i < graph.steps.size(); ++i)
    if (graph.steps[i].device == kInfinite) open.push_back(i);
  while (!open.empty()) {
    const size_t node = open.back();
    open.pop_back();
    for (const int other : next[node]) {
      if (reached[static_cast<size_t>(other)]) continue;
      reached[static_cast<size_t>(other)] = true;
      open.push_back(static_cast<size_t>(other));
    }
  }
  return reached;
}

}  // namespace

double seconds_of(const SideGraph& graph, const std::vector<bool>& on_host) {
  double seconds = 0;
  for (size_t i = 0; i < graph.steps.size(); ++i) seconds += on_host[i] ? graph.steps[i].host : graph.steps[i].device;
  for (const SharedBytes& bytes : graph.shared) {
    const bool by_host = bytes.writer >= 0 && on_host[static_cast<size_t>(bytes.writer)];
    const bool over = std::any_of(bytes.readers.begin(), bytes.readers.end(),
                                  [&](int reader) { return on_host[static_cast<size_t>(reader)] != by_host; });
    if (over || (by_host && bytes.read_by_caller)) seconds += bytes.seconds;
  }
  return seconds;
}

// Steps on the source's side of the cut stay on the device, those on the sink's go to the host: the edge from the source is
// what a step costs there, the edge to the sink what it costs here. Bytes go down once if the writer is here and a reader
// there, up once the other way round: a node of their own each, whose edges to the readers no cut can afford.
std::vector<bool> cheapest_sides(const SideGraph& graph) {
  const size_t steps = graph.steps.size(), source = steps, sink = steps + 1;
  Flow flow(steps + 2 + 2 * graph.shared.size());
  for (size_t i = 0; i < steps; ++i) {
    const auto& [device, host] = graph.steps[i];
    flow.edge(source, i, host > device ? host - device : 0);  // alone the difference counts
    flow.edge(i, sink, device > host ? device - host : 0);
  }
  for (size_t b = 0; b < graph.shared.size(); ++b) {
    const SharedBytes& bytes = graph.shared[b];
    const size_t writer = bytes.writer < 0 ? source : static_cast<size_t>(bytes.writer), down = steps + 2 + 2 * b,
                 up = down + 1;
    flow.edge(writer, down, bytes.seconds);
    for (const int reader : bytes.readers) flow.edge(down, static_cast<size_t>(reader), kInfinite);
    if (bytes.writer < 0) continue;
    flow.edge(up, writer, bytes.seconds);
    for (const int reader : bytes.readers) flow.edge(static_cast<size_t>(reader), up, kInfinite);
    if (bytes.read_by_caller) flow.edge(source, up, kInfinite);
  }
  flow.fill(source, sink);
  std::vector<bool> on_host = flow.before(sink);
  on_host.resize(steps);
  return on_host;
}

std::vector<bool> between_host_steps(const SideGraph& graph) {
  std::vector<bool> between = reached_from_host(graph, true);
  const std::vector<bool> before = reached_from_host(graph, false);
  for (size_t i = 0; i < between.size(); ++i) between[i] = between[i] && before[i] && graph.steps[i].device < kInfinite;
  return between;
}

}  // namespace sparkle
