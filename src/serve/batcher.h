// Requests of one model on their way through its pipeline: they wait in a queue with a bound, those whose shapes agree beyond
// an open first axis run together, and each gets its own rows back, or its own error.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "run/pipeline/pipeline.h"
#include "serve/failure.h"
#include "serve/metrics.h"

namespace sparkle::serve {

using Clock = std::chrono::steady_clock;

struct BatcherOptions {
  int64_t max_batch = 1;               // most rows of a run that several requests share; 1: each runs alone
  std::chrono::microseconds delay{0};  // how long the first of a batch waits for others
  int queue = 64;                      // most requests that wait; one more is refused
};

struct Outcome {
  std::optional<Refusal> refused;
  std::vector<HostTensor> outputs;
};

// Whether rows of different requests may be put side by side: every input and output has an open first axis. That rows do not
// depend on each other only a run shows.
bool has_open_batch(const Session& session);

class Batcher {
 public:
  Batcher(std::string name, std::shared_ptr<Session> session, const BatcherOptions& options, ModelMetrics& metrics);
  // Ends as close() does.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // One tensor per input, in order; waits for the result, or until the deadline. Refused: queue_full at once; too_late, and
  // then nothing is run that has not begun; unavailable once it is closed; what running says.
  Outcome run(std::vector<HostTensor> inputs, Clock::time_point deadline = Clock::time_point::max());
  // Takes nothing more, and returns when each request has its result.
  void close();
  int waiting() const;
  // Requests that have no result yet, those that wait among them.
  int under_way() const { return under_way_; }
  bool full() const { return waiting() >= options_.queue; }

 private:
  struct Item {
    std::vector<HostTensor> inputs;
    int64_t rows = 1;
    Clock::time_point arrived, deadline;
    bool done = false;
    Outcome outcome;
    std::condition_variable changed;
  };
  using Items = std::vector<std::shared_ptr<Item>>;
  void work();
  Items gather(std::unique_lock<std::mutex>& lock);
  void take_fitting(Items& batch, int64_t& rows);
  void hand_over(Items batch);
  void finish(const Items& batch, Pipeline::Outputs outputs);
  void run_apart(const Items& batch);
  bool rows_are_apart(const Item& item);
  void give(Item& item, Outcome outcome);

  const std::string name_;
  const std::shared_ptr<Session> session_;
  const BatcherOptions options_;
  ModelMetrics& metrics_;
  mutable std::mutex mutex_;  // of all below, and of items
  std::condition_variable arrived_;
  std::deque<std::shared_ptr<Item>> queue_;
  bool closed_ = false;
  std::atomic<int> under_way_{0};
  bool batches_;  // the worker's alone, as the next one: several requests a run
  bool rows_were_tried_ = false;
  Pipeline pipeline_;
  std::thread worker_;
};

}  // namespace sparkle::serve
