#include "prepare/prepared_plan.h"

namespace sparkle {
namespace {
// Of the kernel, launch and text of a step: an estimate.
constexpr int64_t kBytesPerStep = 4096;
}  // namespace

int64_t PreparedPlan::fixed_bytes() const { return own_constant_bytes + static_cast<int64_t>(kernels.size()) * kBytesPerStep; }

void PreparedPlan::enter(std::shared_ptr<CacheBytes> cache) {
  const std::lock_guard lock(mutex_);
  cache_ = std::move(cache);
  counted_ = 1;
  cache_->add(fixed_bytes() + arena_bytes());
}

void PreparedPlan::leave() {
  const std::lock_guard lock(mutex_);
  cache_->add(-(fixed_bytes() + static_cast<int64_t>(counted_) * arena_bytes()));
  cache_.reset();
  arenas_.clear();
}

Result<std::shared_ptr<Buffer>> PreparedPlan::take_arena(Backend& backend) {
  {
    const std::lock_guard lock(mutex_);
    if (!arenas_.empty()) {
      auto arena = std::move(arenas_.back());
      arenas_.pop_back();
      return arena;
    }
  }
  return backend.allocate(arena_bytes(), MemoryKind::device);
}

void PreparedPlan::give_back(std::shared_ptr<Buffer> arena) {
  const std::lock_guard lock(mutex_);
  if (!cache_) return;
  if (arenas_.size() >= counted_) {
    if (!cache_->try_add(arena_bytes())) return;
    ++counted_;
  }
  arenas_.push_back(std::move(arena));
}

}  // namespace sparkle
