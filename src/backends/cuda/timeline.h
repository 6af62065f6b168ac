// Timeline: what was put into one stream, counted, and an event behind each piece that tells when it is done.
#pragma once

#include <chrono>
#include <deque>
#include <mutex>

#include "backends/cuda/driver/context.h"

namespace sparkle::cuda {

class Timeline {
 public:
  using Kept = std::vector<std::shared_ptr<void>>;

  void open(std::shared_ptr<Context> context, CuStream stream) { context_ = std::move(context), stream_ = stream; }
  CuStream stream() const { return stream_; }
  // What was put in just now is one piece more. `kept` is let go when it is done.
  Result<uint64_t> count(Kept kept);
  // The number of the last piece that is done. Lets go what was kept up to it.
  Result<uint64_t> reached();
  // Waits for a piece; zero time-out: for ever. False: not within it.
  Result<bool> wait(uint64_t number, std::chrono::nanoseconds timeout);
  // The stream waits for a piece of another one.
  Status follow(Timeline& other, uint64_t number);
  // The last piece put in.
  uint64_t submitted() const;
  void keep(uint64_t number, Kept kept);
  // What is kept, taken away from here.
  std::vector<Kept> leave();

 private:
  struct Piece {
    uint64_t number = 0;
    std::shared_ptr<Event> event;
    Kept kept;
  };
  std::shared_ptr<Event> event_of(uint64_t number) const;  // nullptr: done

  std::shared_ptr<Context> context_;
  CuStream stream_ = nullptr;
  mutable std::mutex mutex_;
  std::deque<Piece> pieces_;  // not known to be done
  uint64_t submitted_ = 0, reached_ = 0;
};

}  // namespace sparkle::cuda
