#include "backends/cuda/timeline.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace sparkle::cuda {

Result<uint64_t> Timeline::count(Kept kept) {
  SPARKLE_TRY(event, Event::record(context_, stream_, false));
  const std::lock_guard lock(mutex_);
  pieces_.push_back({++submitted_, std::move(event), std::move(kept)});
  return submitted_;
}

Result<uint64_t> Timeline::reached() {
  std::vector<Piece> gone;  // let go outside of the lock: buffers may come back here
  const Driver& d = context_->driver();
  const Current current(*context_);
  const std::lock_guard lock(mutex_);
  while (!pieces_.empty()) {
    const CuResult r = d.event_query(pieces_.front().event->handle());
    if (r == CuResult::not_ready) break;
    SPARKLE_CU(d, r, "cuEventQuery");
    reached_ = pieces_.front().number;
    gone.push_back(std::move(pieces_.front()));
    pieces_.pop_front();
  }
  return reached_;
}

std::shared_ptr<Event> Timeline::event_of(uint64_t number) const {
  const std::lock_guard lock(mutex_);
  for (const Piece& p : pieces_)
    if (p.number == number) return p.event;
  return nullptr;
}

Result<bool> Timeline::wait(uint64_t number, std::chrono::nanoseconds timeout) {
  const std::shared_ptr<Event> event = event_of(number);
  if (!event) return true;
  const Driver& d = context_->driver();
  const Current current(*context_);
  if (timeout.count() <= 0) {
    SPARKLE_CU(d, d.event_synchronize(event->handle()), "cuEventSynchronize");
    return true;
  }
  const auto end = std::chrono::steady_clock::now() + timeout;
  for (std::chrono::microseconds pause{1};; pause = std::min(2 * pause, std::chrono::microseconds(1000))) {
    const CuResult r = d.event_query(event->handle());
    if (r == CuResult::success) return true;
    if (r != CuResult::not_ready) return d.error_of(r, "cuEventQuery");
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(pause);
  }
}

Status Timeline::follow(Timeline& other, uint64_t number) {
  const std::shared_ptr<Event> event = other.event_of(number);
  if (!event) return ok();
  const Driver& d = context_->driver();
  const Current current(*context_);
  SPARKLE_CU(d, d.stream_wait(stream_, event->handle(), 0), "cuStreamWaitEvent");
  return ok();
}

uint64_t Timeline::submitted() const {
  const std::lock_guard lock(mutex_);
  return submitted_;
}

void Timeline::keep(uint64_t number, Kept kept) {
  const std::lock_guard lock(mutex_);
  for (Piece& p : pieces_)
    if (p.number >= number) {
      p.kept.insert(p.kept.end(), std::make_move_iterator(kept.begin()), std::make_move_iterator(kept.end()));
      return;
    }
}

std::vector<Timeline::Kept> Timeline::leave() {
  const std::lock_guard lock(mutex_);
  std::vector<Kept> all;
  for (Piece& p : pieces_) all.push_back(std::move(p.kept)), all.back().push_back(p.event);
  pieces_.clear();
  return all;
}

}  // namespace sparkle::cuda
