// PreparedPlan: a plan with its kernels compiled, its constants resident and its launches recorded. Its arenas are kept for
// reuse, within the bound in bytes that all plans of a session share.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/backend.h"
#include "plan/plan.h"
#include "prepare/kernels.h"

namespace sparkle {

// What the cached plans of a session hold, and the most that they may.
class CacheBytes {
 public:
  explicit CacheBytes(int64_t bound) : bound_(bound) {}
  int64_t held() const {
    const std::lock_guard lock(mutex_);
    return held_;
  }
  bool exceeded() const {
    const std::lock_guard lock(mutex_);
    return held_ > bound_;
  }
  void add(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    held_ += bytes;
  }
  // Adds them if the bound allows it.
  bool try_add(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes > bound_ - held_) return false;
    held_ += bytes;
    return true;
  }

 private:
  mutable std::mutex mutex_;
  const int64_t bound_;
  int64_t held_ = 0;
};

// Kernels that need more scratch memory than the plan foresaw (weights packed at run time) get it behind the arena.
void fit_workspaces(Plan& plan, const Kernels& kernels);
// The bytes of that side's arena after that.
int64_t arena_with_workspaces(const Plan& plan, const Kernels& kernels, RunsOn side);

// Consecutive steps of one side: a program of its backend, or transfers without one.
struct Segment {
  RunsOn side = RunsOn::device;
  size_t first = 0, count = 0;  // steps of the plan
  std::unique_ptr<Program> program;
};

// The plan's steps, one segment where the device does all of them. Slots of the device's programs: its arena, inputs, outputs,
// then its constants in the order of steps and of their inputs, one slot per use; of the host's: its arena, then its constants
// likewise. `host`: nullptr where the plan has no steps for it. `most_steps`: of a segment.
Result<std::vector<Segment>> record(const Plan& plan, const Kernels& kernels, Backend& backend, Backend* host,
                                    size_t most_steps = SIZE_MAX);

// The memory of one run: `host` is the device's too, so that transfers go straight there; none where the plan needs none.
struct RunArenas {
  std::shared_ptr<Buffer> device, host;
};

class PreparedPlan {
 public:
  std::shared_ptr<Backend> host;  // what the host's steps run on; nullptr: there are none
  std::shared_ptr<Plan> plan;
  Kernels kernels;  // none for transfers
  std::vector<Segment> segments;
  std::vector<std::shared_ptr<Buffer>> constants, host_constants;
  std::shared_ptr<const void> keeps;  // whose memory constants may lie in
  int64_t own_constant_bytes = 0;     // constants that no other plan shares: what shapes and values of this one folded to

  // From here on the plan counts: one arena, its own constants, its program.
  void enter(std::shared_ptr<CacheBytes> cache);
  // It leaves the cache; runs that still hold it end as they were.
  void leave();

  // Arenas for one run; returned by give_back, which keeps as many as there is room for, and one.
  Result<RunArenas> take_arenas(Backend& backend);
  void give_back(RunArenas arenas);

 private:
  int64_t arena_bytes() const { return std::max<int64_t>(plan->arena_bytes, 64) + plan->host_arena_bytes; }
  int64_t fixed_bytes() const;

  std::mutex mutex_;
  std::shared_ptr<CacheBytes> cache_;  // nullptr: not in a cache
  size_t counted_ = 0;                 // arenas that count, lying here or used by a run
  std::vector<RunArenas> arenas_;
};

}  // namespace sparkle
