// A session that goes on with another backend: what the one before held is dropped once nobody else can come to it.
#include "base/system/out_of_memory.h"
#include "run/session.h"

namespace sparkle {

Status Session::move_to(std::shared_ptr<Backend> backend) {
  const std::lock_guard lock(recovery_);
  SPARKLE_CHECK(guard_memory("Moving the session to another device", [&] { return go_to(std::move(backend)); }));
  recovered_ = false;
  return ok();
}

Status Session::recover(const Error& error, const Backend* failed) {
  if (!next_device_ || !is_of_the_device(error)) return error;
  std::unique_lock lock(recovery_);
  const std::shared_ptr<Backend> before = this->backend();
  if (failed && failed != before.get()) return ok();
  if (recovered_) return error;
  const auto with = [&](const Error& also) {
    return Error{error.reason, error.message + " It cannot go on with another device: " + also.message};
  };
  auto next = next_device_(error);
  if (!next.ok()) return with(next.error());
  const std::string from = before->device().name, to = (*next)->device().name;
  const Status moved = guard_memory("Moving the session to another device", [&] { return go_to(std::move(*next)); });
  if (!moved.ok()) return with(moved.error());
  recovered_ = true;
  lock.unlock();  // the log is the caller's
  events_.add({"device", from, to, error.reason, 0, "", error.message + " The session goes on with " + to + "."}, fallback_);
  return ok();
}

Status Session::go_to(std::shared_ptr<Backend> backend) {
  if (parts_) return parts_->move_to(std::move(backend));
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
