// Pipeline: items through a session, one behind the other, several under way at once. While the device computes one the next is
// handed to it and the one before comes back, each in a set of buffers of its own; threads of the pipeline do that, and wait
// once for each item. Order is kept: results come as items were given. Copies of a device go one after another, and the
// download of an item waits for its computing: it is handed over behind the upload of the next one, which else would wait with
// it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "run/pipeline/pipeline_trace.h"
#include "run/pipeline/transfer_set.h"
#include "run/session.h"

namespace sparkle {

struct PipelineOptions {
  int depth = 3;    // sets of buffers: items that the device has at once; at least 1
  int waiting = 0;  // items that wait for a set before submit() waits; 0: four times as many as there are sets
  // Called with an error that is not the item's own: the device was lost or has no memory left. Where it returns ok the session
  // can go on, and the items that failed so are run again, in their order. Empty: Session::recover(). Called by one thread at
  // a time.
  std::function<Status(const Error&)> recover;
  // Asked with such an error before that: whether somebody else runs the item. Then the item has the error at once, and the
  // session is left as it is. Empty: nobody does.
  std::function<bool(const Error&)> passes_on = {};
  std::shared_ptr<PipelineTrace> trace = nullptr;  // where given, each stage of each item is noted there
  std::string name = {};                           // of the device, there; empty: as it calls itself
};

// Sums over the items so far, by the host's clock in seconds.
struct PipelineTimes {
  uint64_t items = 0, failed = 0, again = 0;  // done, of these with an error, of these run again after recover()
  double handing = 0;                         // planning, copying inputs, submitting; on CPUs the computing too
  double waiting = 0;                         // for the device, without anything else to do
  double bringing = 0;                        // copying outputs
};

class Pipeline {
 public:
  using Outputs = Result<std::vector<HostTensor>>;
  using Done = std::function<void(Outputs)>;

  Pipeline(std::shared_ptr<Session> session, PipelineOptions options);
  // Ends as close() does.
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Takes an item, one tensor per input; waits while the pipeline is full. `done` is called once, by a thread of the
  // pipeline's, after those of the items before; it may not call the pipeline. Errors of the item go there. Errors here:
  // bad_usage once the pipeline is closed.
  Status submit(std::vector<HostTensor> inputs, Done done);
  Result<std::future<Outputs>> submit(std::vector<HostTensor> inputs);
  // The same without waiting; false where the pipeline is full, and the inputs are as they were.
  Result<bool> try_submit(std::vector<HostTensor>& inputs, Done done);
  // The same for an item that has a number of its own in the trace, from the caller's `done` too; others are counted.
  Result<bool> try_submit(std::vector<HostTensor>& inputs, Done done, int64_t number);
  // Takes nothing more, and returns when each item has its result.
  void close();

  PipelineTimes times() const;
  const std::shared_ptr<Session>& session() const { return session_; }

 private:
  struct Item {
    std::vector<HostTensor> inputs;
    Done done;
    int64_t number = 0;
    std::unique_ptr<TransferSet> set;  // once it is under way
    Token token, computed;             // of the set's backend: the last that was handed over, the computing
    std::shared_ptr<Backend> device;   // that the session had when the item was begun
    Status begun = ok();
    bool fetched = false;  // its download was handed over, or there is nothing to bring
  };
  void tell_once(const Plan& plan);
  void feed();
  void finish();
  Status begin(Item& item, std::optional<Item>& before);
  void let_go(std::optional<Item>& ahead);
  void fetch(Item& item);
  void set_under_way(Item item);
  Outputs end(Item& item);
  void hand_back(Item& item, std::unique_lock<std::mutex>& lock);
  bool put(std::vector<HostTensor>& inputs, Done& done, int64_t number, std::unique_lock<std::mutex>& lock);

  const std::shared_ptr<Session> session_;
  const PipelineOptions options_;
  const size_t most_waiting_;
  mutable std::mutex mutex_;                            // of all below
  std::condition_variable room_, to_feed_, to_finish_;  // for submit(), feed() and finish()
  std::deque<Item> waiting_, under_way_;
  std::vector<std::unique_ptr<TransferSet>> free_;
  int made_ = 0;         // sets
  int64_t counted_ = 0;  // items that came without a number
  bool closed_ = false, fed_ = false, finishing_ = false;
  PipelineTimes times_;
  std::atomic<bool> told_{false};
  std::unique_ptr<PipelineWatch> watch_;
  std::thread feeder_, finisher_;
};

}  // namespace sparkle
