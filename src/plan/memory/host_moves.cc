#include "plan/memory/host_moves.h"

#include <algorithm>
#include <limits>

namespace sparkle {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// The device's candidates stand behind the host's, the one that would have been taken with the reason why it was not.
void take_over(Choice& choice, Choice of_host) {
  for (Candidate& candidate : of_host.candidates)
    if (candidate.reason == Reason::none && &candidate != of_host.candidates.data()) candidate.reason = Reason::cheaper_on_host;
  of_host.host_reason = Reason::cheaper_on_host;
  choice = std::move(of_host);
}

}  // namespace

SideGraph side_graph(const Draft& draft, const std::vector<const DraftStep*>& steps, const std::vector<Choice>& choices,
                     const Device& device) {
  SideGraph graph;
  const auto buffer_of = [&](int value) { return static_cast<size_t>(draft.values[static_cast<size_t>(value)].buffer); };
  std::vector<int> now(draft.buffers.size(), -1);  // what each buffer holds: an entry of graph.shared
  const auto write = [&](size_t buffer, int writer) {
    const DraftBuffer& written = draft.buffers[buffer];
    now[buffer] = static_cast<int>(graph.shared.size());
    const auto bytes = static_cast<double>(written.elements * size_of(written.dtype));
    graph.shared.push_back({writer, {}, false, transfer_seconds(device, bytes)});
  };
  const auto read = [&](size_t buffer, int reader) {
    if (now[buffer] < 0) return;
    std::vector<int>& readers = graph.shared[static_cast<size_t>(now[buffer])].readers;
    if (readers.empty() || readers.back() != reader) readers.push_back(reader);
  };
  for (const int v : draft.inputs) write(buffer_of(v), -1);
  for (size_t i = 0; i < steps.size(); ++i) {
    graph.steps.push_back(choices[i].on_host() ? SideCost{kInfinite, choices[i].cost.seconds}
                                               : SideCost{choices[i].cost.seconds, kInfinite});
    for (const int v : steps[i]->inputs) read(buffer_of(v), static_cast<int>(i));
    for (const int v : steps[i]->outputs) {
      const DraftBuffer& buffer = draft.buffers[buffer_of(v)];
      const TensorDesc& desc = draft.desc(v);
      const bool covers =
          desc.layout.offset == 0 && desc.elements() == buffer.elements && extent(desc.shape, desc.layout) == desc.elements();
      if (!covers) read(buffer_of(v), static_cast<int>(i));  // who writes a part adds to what is there
      write(buffer_of(v), static_cast<int>(i));
    }
  }
  for (const int v : draft.outputs)
    if (now[buffer_of(v)] >= 0) graph.shared[static_cast<size_t>(now[buffer_of(v)])].read_by_caller = true;
  return graph;
}

bool move_to_host(const Draft& draft, const std::vector<const DraftStep*>& steps, const Device& device,
                  const ChooseOnHost& choose_on_host, const std::vector<size_t>* moves, std::vector<Choice>& choices) {
  if (std::none_of(choices.begin(), choices.end(), [](const Choice& c) { return c.on_host(); })) return false;
  SideGraph graph = side_graph(draft, steps, choices, device);
  const std::vector<bool> between = between_host_steps(graph);
  std::vector<std::optional<Choice>> there(choices.size());
  for (size_t i = 0; i < choices.size(); ++i) {
    if (!between[i] || choices[i].without_kernel) continue;
    there[i] = choose_on_host(i);
    if (there[i]) graph.steps[i].host = there[i]->cost.seconds;
  }
  std::vector<bool> on_host;
  if (!moves) on_host = cheapest_sides(graph);
  else
    for (size_t i = 0; i < choices.size(); ++i) on_host.push_back(std::count(moves->begin(), moves->end(), i) > 0);
  bool any = false;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (!there[i] || !on_host[i]) continue;
    take_over(choices[i], std::move(*there[i]));
    any = true;
  }
  return any;
}

}  // namespace sparkle
