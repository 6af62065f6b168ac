// What waits in streams, and in which order it is done: as late as may be, and graphs in any order that their edges allow.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "cuda_model/accesses.h"
#include "model_driver.h"

namespace cuda_model::driver {

void tell(const std::string& what) { std::fprintf(stderr, "cuda_model: %s\n", what.c_str()); }

namespace {

// For each node, those that are over before it begins: edges lead from nodes to later ones.
std::vector<std::vector<bool>> before_each(const std::vector<GraphNode>& nodes) {
  std::vector<std::vector<bool>> before(nodes.size(), std::vector<bool>(nodes.size()));
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const size_t a : nodes[i].after) {
      before[i][a] = true;
      for (size_t j = 0; j < a; ++j)
        if (before[a][j]) before[i][j] = true;
    }
  return before;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

std::string Driver::run_graph(const std::vector<GraphNode>& nodes) {
  const auto before = before_each(nodes);
  const auto unordered = [&](size_t i, size_t j) { return i != j && !before[i][j] && !before[j][i]; };
  std::vector<std::unique_ptr<Accesses>> touched(nodes.size());  // of nodes that are done and have others beside them
  std::vector<size_t> open(nodes.size()), ready;
  for (size_t i = 0; i < nodes.size(); ++i)
    if ((open[i] = nodes[i].after.size()) == 0) ready.push_back(i);
  std::string wrong;
  while (!ready.empty() && wrong.empty()) {
    const size_t pick = std::uniform_int_distribution<size_t>(0, ready.size() - 1)(random);
    const size_t node = ready[pick];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(pick));
    counts.early_launches += nodes[node].early;
    bool is_alone = true;
    for (size_t j = 0; j < nodes.size() && is_alone; ++j) is_alone = !unordered(node, j);
    if (!is_alone) touched[node] = std::make_unique<Accesses>();
    note_accesses(touched[node].get());
    wrong = run(nodes[node].launch);
    note_accesses(nullptr);
    for (size_t j = 0; j < nodes.size() && touched[node] && wrong.empty(); ++j)
      if (touched[j] && unordered(node, j))
        if (const uintptr_t byte = touched[node]->conflict(*touched[j]); byte != 0)
          wrong = "race: " + std::string(nodes[node].launch.kernel->name) + " and " + nodes[j].launch.kernel->name + " touch " +
                  place_of(byte) + ", one of them writes it, and no path of their graph orders them";
    for (size_t i = 0; i < nodes.size(); ++i)
      for (const size_t a : nodes[i].after)
        if (a == node && --open[i] == 0) ready.push_back(i);
  }
  return wrong;
}

std::string Driver::place_of(uintptr_t byte) const {
  auto at = allocations.upper_bound(reinterpret_cast<std::byte*>(byte));
  if (at == allocations.begin()) return "a byte of no allocation";
  --at;
  return "byte " + std::to_string(byte - reinterpret_cast<uintptr_t>(at->first)) + " of an allocation of " +
         std::to_string(at->second.bytes) + " bytes";
}

// What begins early can do nothing before it has waited that anybody sees, device memory being closed to it: so it is run when
// it would be over waiting. Any kernel may be behind a programmatic edge of some plan, so all are held to it.
std::string Driver::run(const KernelLaunch& launch) {
  ++counts.launches;
  Launch how = launch.how;
  how.seed = random(), how.early = true;
  const std::string wrong = cuda_model::launch(*launch.kernel, how, launch.record.get());
  return wrong.empty() ? wrong : std::string(launch.kernel->name) + ": " + wrong;
}

CuResult Driver::step(Stream& stream) {
  Work work = std::move(stream.waiting.front());
  stream.waiting.pop_front();
  std::string wrong;
  switch (work.kind) {
    case Work::Kind::record:
      work.mark->done = true;
      work.mark->seconds = now();
      return CuResult::success;
    case Work::Kind::wait:
      // Its stream comes first, as far as the mark.
      return work.mark->done ? CuResult::success : advance(*work.mark->stream, work.mark.get());
    case Work::Kind::copy:
      ++counts.copies;
      if (!holder(work.to, work.bytes) || !holder(work.from, work.bytes)) {
        wrong = "a copy of memory that was freed meanwhile";
        break;
      }
      open_device_memory(true);
      std::memmove(reinterpret_cast<void*>(work.to), reinterpret_cast<const void*>(work.from), work.bytes);
      open_device_memory(false);
      break;
    case Work::Kind::launch:
      open_device_memory(true);
      wrong = run(work.launch);
      open_device_memory(false);
      break;
    case Work::Kind::graph:
      ++counts.graph_launches;
      open_device_memory(true);
      wrong = run_graph(*work.graph);
      open_device_memory(false);
      break;
  }
  if (wrong.empty()) return CuResult::success;
  tell(wrong);
  stream.owner->lost = CuResult::launch_failed;
  return stream.owner->lost;
}

CuResult Driver::advance(Stream& stream, const Mark* until) {
  while (!stream.waiting.empty() && !(until && until->done))
    if (const CuResult r = step(stream); r != CuResult::success) return r;
  return CuResult::success;
}

CuResult Driver::advance_all(Context& context) {
  for (const auto& stream : context.streams)
    if (const CuResult r = advance(*stream, nullptr); r != CuResult::success) return r;
  return CuResult::success;
}

}  // namespace cuda_model::driver
