// A session that goes on with another backend: what the one before held is dropped once nobody else can come to it.
#include "base/system/out_of_memory.h"
#include "run/session.h"

namespace sparkle {

Status Session::move_to(std::shared_ptr<Backend> backend) {
  return guard_memory("Moving the session to another device", [&] {
    if (parts_) return parts_->move_to(std::move(backend));
    return go_to(std::move(backend));
  });
}

Status Session::go_to(std::shared_ptr<Backend> backend) {
  auto cache = std::make_shared<CacheBytes>(plan_cache_bytes_);
  // After the exchange these hold what is old. They go when the lock is free again, the backend last.
  ModelPlanner::Past past;
  std::map<std::string, std::shared_ptr<PreparedPlan>> plans;
  const std::lock_guard lock(mutex_);
  SPARKLE_TRY(gone, planner_->move_to(std::move(backend)));
  past = std::move(gone);
  for (const auto& [key, plan] : plans_) plan->leave();
  plan_order_.clear();
  plans_.swap(plans);
  cache_.swap(cache);
  return ok();
}

}  // namespace sparkle
