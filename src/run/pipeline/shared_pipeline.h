// SharedPipeline: one queue of items over several devices, a pipeline each. Who has room takes the next item by the rule of
// work_share.h, so that each does as much as it is fast; results come in the order of the items whoever computed them.
#pragma once

#include <set>

#include "run/choice/together.h"
#include "run/choice/work_share.h"
#include "run/pipeline/pipeline.h"

namespace sparkle {

// automatic: devices whose part is predicted to be worth nothing take none (run/choice/together.h), settled with the first
// item, whose shapes tell. always: each takes what it can.
enum class Split : uint8_t { automatic, always };

struct SharedPipelineOptions {
  int depth = 3;       // items that a device has at once; a CPU, which computes one after another, has one
  int waiting = 0;     // items beside those that devices have, waiting for them or for their turn to be handed out, before
                       // submit() waits; 0: four times as many
  int64_t items = -1;  // that will come, where that is known: the last of them do not wait for the slowest device
  Split split = Split::automatic;
  // Under forbid what a lost device had comes back with its error; else the other devices run it again.
  Fallback fallback = Fallback::warn;
  std::vector<std::string> names;  // of the sessions' devices; empty: as these call themselves
  std::function<double()> clock;   // seconds; empty: the host's
  std::shared_ptr<PipelineTrace> trace;
};

struct DeviceShare {
  std::string name;
  bool used = false, lost = false;
  uint64_t items = 0;    // whose results it gave
  double predicted = 0;  // seconds for an item; 0: nobody knows
  double seconds = 0;    // the same, as measured of late
  PipelineTimes times;
};

class SharedPipeline {
 public:
  using Outputs = Pipeline::Outputs;
  using Done = Pipeline::Done;

  // All sessions are of the same model, one for each device; one at least.
  SharedPipeline(std::vector<std::shared_ptr<Session>> sessions, SharedPipelineOptions options);
  // Ends as close() does.
  ~SharedPipeline();
  SharedPipeline(const SharedPipeline&) = delete;
  SharedPipeline& operator=(const SharedPipeline&) = delete;

  // As those of Pipeline: `done` is called once for each item, in their order, by one thread
  // at a time - that of the device where one is left -; it may not call this.
  Status submit(std::vector<HostTensor> inputs, Done done);
  Result<std::future<Outputs>> submit(std::vector<HostTensor> inputs);
  Result<bool> try_submit(std::vector<HostTensor>& inputs, Done done);
  // Takes nothing more, and returns when each item has its result.
  void close();

  std::vector<DeviceShare> shares() const;
  // Which devices work, and why, in one line; empty before the first item.
  std::string why() const;
  // Sums over all devices; items that were run again elsewhere are counted once.
  PipelineTimes times() const;

 private:
  struct Item {
    std::vector<HostTensor> inputs;
    Done done;
    std::optional<Outputs> result;
    double begun = 0;
  };
  struct Place {
    std::shared_ptr<Session> session;
    std::string name;
    std::unique_ptr<Pipeline> pipeline;
    int most = 2;  // items at once
    Worker worker;
    bool lost = false;
    double busy_since = 0;  // with what it computes now, where it has anything
    double predicted = 0;
    uint64_t items = 0, measured = 0, failed = 0, passed_on = 0;
  };

  bool full() const { return closed_ || static_cast<int64_t>(items_.size()) >= window_; }
  Status put(std::vector<HostTensor>& inputs, Done& done);
  void settle(const std::vector<HostTensor>& inputs);
  void hand_out();
  bool begin(int64_t number);
  void finished(size_t place, int64_t number, Outputs outputs);
  bool passes_on(size_t place, const Error& error);
  bool several() const;
  void deliver();
  void deliver_ready(std::unique_lock<std::mutex>& lock);
  Item& item(int64_t number) { return items_[static_cast<size_t>(number - delivered_)]; }
  double now() const { return options_.clock(); }

  SharedPipelineOptions options_;
  int64_t window_ = 0;        // items between submit() and their turn
  std::mutex settling_;       // taken before mutex_
  mutable std::mutex mutex_;  // of all below
  std::condition_variable room_, to_deliver_;
  std::deque<Item> items_;   // those from delivered_ on
  std::set<int64_t> again_;  // that a lost device had
  int64_t delivered_ = 0, next_ = 0, submitted_ = 0;
  bool closed_ = false, settled_ = false, delivering_ = false;
  std::string why_;
  std::vector<Place> places_;
  std::thread deliverer_;
};

}  // namespace sparkle
