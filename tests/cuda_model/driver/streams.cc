// What waits in streams, and in which order it is done: as late as may be, and graphs in any order that their edges allow.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "model_driver.h"

namespace cuda_model::driver {

void tell(const std::string& what) { std::fprintf(stderr, "cuda_model: %s\n", what.c_str()); }

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

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
    case Work::Kind::graph: {
      ++counts.graph_launches;
      open_device_memory(true);
      const auto& nodes = *work.graph;
      std::vector<size_t> open(nodes.size()), ready;
      for (size_t i = 0; i < nodes.size(); ++i)
        if ((open[i] = nodes[i].after.size()) == 0) ready.push_back(i);
      while (!ready.empty() && wrong.empty()) {
        const size_t pick = std::uniform_int_distribution<size_t>(0, ready.size() - 1)(random);
        const size_t node = ready[pick];
        ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(pick));
        counts.early_launches += nodes[node].early;
        wrong = run(nodes[node].launch);
        for (size_t i = 0; i < nodes.size(); ++i)
          for (const size_t a : nodes[i].after)
            if (a == node && --open[i] == 0) ready.push_back(i);
      }
      open_device_memory(false);
      break;
    }
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
