#include "serve/batcher.h"

#include <algorithm>

#include "base/log.h"
#include "base/printable.h"
#include "base/system/out_of_memory.h"
#include "serve/rows.h"
#include "run/host_tensors.h"

namespace sparkle::serve {
namespace {

Outcome refused(Failure failure, std::string sentence) { return {Refusal{failure, std::move(sentence)}, {}}; }
Outcome refused(const Error& error) { return {refusal_of(error), {}}; }

struct Counted {
  explicit Counted(std::atomic<int>& number) : of(number) { ++of; }
  ~Counted() { --of; }
  std::atomic<int>& of;
};

PipelineOptions few_waiting() {
  PipelineOptions options;
  options.waiting = 1;  // what waits there cannot join a batch any more
  return options;
}

}  // namespace

bool has_open_batch(const Session& session) {
  const auto open = [](const SessionInput& t) { return t.rank_known && !t.by_value && t.shape.size() > 0 && t.shape[0] < 0; };
  const auto all = [&](const std::vector<SessionInput>& tensors) {
    return !tensors.empty() && std::all_of(tensors.begin(), tensors.end(), open);
  };
  return all(session.inputs()) && all(session.outputs());
}

Batcher::Batcher(std::string name, std::shared_ptr<Session> session, const BatcherOptions& options, ModelMetrics& metrics)
    : name_(std::move(name)),
      session_(std::move(session)),
      options_(options),
      metrics_(metrics),
      batches_(options.max_batch > 1 && has_open_batch(*session_)),
      pipeline_(session_, few_waiting()) {
  worker_ = std::thread([this] { work(); });
}

Batcher::~Batcher() { close(); }

void Batcher::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  arrived_.notify_all();
  if (worker_.joinable()) worker_.join();
  pipeline_.close();
}

int Batcher::waiting() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(queue_.size());
}

Outcome Batcher::run(std::vector<HostTensor> inputs, Clock::time_point deadline) {
  const auto item = std::make_shared<Item>();
  item->rows = rows_of(inputs);
  item->inputs = std::move(inputs);
  item->arrived = Clock::now(), item->deadline = deadline;
  std::unique_lock lock(mutex_);
  if (closed_) return refused(Failure::unavailable, "The model '" + printable(name_) + "' is being unloaded; ask again.");
  if (static_cast<int>(queue_.size()) >= options_.queue)
    return refused(Failure::queue_full, "The queue of model '" + printable(name_) + "' is full with " +
                                            std::to_string(options_.queue) + " requests; ask again later.");
  const Counted counted(under_way_);
  queue_.push_back(item);
  arrived_.notify_one();
  const auto is_done = [&] { return item->done; };
  if (deadline == Clock::time_point::max()) item->changed.wait(lock, is_done);
  else item->changed.wait_until(lock, deadline, is_done);
  if (item->done) return std::move(item->outcome);
  // What has begun ends without anybody who waits for it.
  std::erase(queue_, item);
  return refused(Failure::too_late,
                 "The time for the request was over before model '" + printable(name_) + "' had answered it.");
}

void Batcher::give(Item& item, Outcome outcome) {
  const std::lock_guard lock(mutex_);
  item.outcome = std::move(outcome), item.done = true;
  item.changed.notify_all();
}

void Batcher::work() {
  for (std::unique_lock lock(mutex_);;) {
    arrived_.wait(lock, [&] { return closed_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Items batch = gather(lock);
    if (batch.empty()) continue;
    lock.unlock();
    hand_over(std::move(batch));
    lock.lock();
  }
}

// The first request, and those that fit it, for which it waits a while.
Batcher::Items Batcher::gather(std::unique_lock<std::mutex>& lock) {
  Items batch{queue_.front()};
  queue_.pop_front();
  int64_t rows = batch[0]->rows;
  if (!batches_ || rows < 1) return batch;
  const auto until = batch[0]->arrived + options_.delay;
  for (;;) {
    take_fitting(batch, rows);
    if (closed_ || rows >= options_.max_batch || Clock::now() >= until) return batch;
    const size_t seen = queue_.size();
    if (!arrived_.wait_until(lock, until, [&] { return closed_ || queue_.size() > seen; })) {
      take_fitting(batch, rows);
      return batch;
    }
  }
}

void Batcher::take_fitting(Items& batch, int64_t& rows) {
  for (auto at = queue_.begin(); at != queue_.end() && rows < options_.max_batch;) {
    const Item& item = **at;
    if (item.rows < 1 || rows + item.rows > options_.max_batch || !same_but_rows(item.inputs, batch[0]->inputs)) {
      ++at;
      continue;
    }
    rows += item.rows;
    batch.push_back(std::move(*at));
    at = queue_.erase(at);
  }
}

void Batcher::hand_over(Items batch) {
  const auto now = Clock::now();
  std::erase_if(batch, [&](const auto& item) { return item->deadline <= now; });  // who asked has its answer
  if (batch.empty()) return;
  if (batch.size() > 1 && !rows_were_tried_ && !rows_are_apart(*batch[0])) return run_apart(batch);
  metrics_.batches += 1, metrics_.batched_requests += batch.size();
  std::vector<HostTensor> inputs;
  if (batch.size() == 1) {
    inputs = batch[0]->inputs;
  } else {
    std::vector<const std::vector<HostTensor>*> parts;
    for (const auto& item : batch) parts.push_back(&item->inputs);
    auto whole = guard_memory("Putting a batch together", [&] { return side_by_side(parts); });
    if (!whole.ok()) return run_apart(batch);
    inputs = std::move(*whole);
  }
  const Status taken =
      pipeline_.submit(std::move(inputs), [this, batch](Pipeline::Outputs outputs) { finish(batch, std::move(outputs)); });
  if (taken.ok()) return;
  for (const auto& item : batch) give(*item, refused(taken.error()));
}

void Batcher::finish(const Items& batch, Pipeline::Outputs outputs) {
  if (batch.size() == 1) return give(*batch[0], outputs.ok() ? Outcome{{}, std::move(*outputs)} : refused(outputs.error()));
  int64_t rows = 0;
  for (const auto& item : batch) rows += item->rows;
  // An error belongs to the request that has it: alone, each finds out.
  if (!outputs.ok() || rows_of(*outputs) != rows) return run_apart(batch);
  int64_t at = 0;
  for (const auto& item : batch) {
    give(*item, {{}, rows_from(*outputs, at, item->rows)});
    at += item->rows;
  }
}

void Batcher::run_apart(const Items& batch) {
  for (const auto& item : batch) {
    metrics_.batches += 1, metrics_.batched_requests += 1;
    auto outputs = session_->run(item->inputs);
    give(*item, outputs.ok() ? Outcome{{}, std::move(*outputs)} : refused(outputs.error()));
  }
}

// Before the first batch: this request and the same with its values the other way round, each alone and both together. An open
// first axis may be a sequence, whose rows depend on each other; such a model runs each request alone from here on.
bool Batcher::rows_are_apart(const Item& item) {
  std::vector<HostTensor> other;
  for (const HostTensor& t : item.inputs) other.push_back(turned_round(t));
  if (same_bytes(item.inputs, other)) return false;  // tells nothing
  const std::vector<HostTensor>* parts[] = {&item.inputs, &other};
  const auto together = side_by_side(parts);
  if (!together.ok()) return false;
  const auto both = session_->run(*together), first = session_->run(item.inputs), second = session_->run(other);
  if (!both.ok() || !first.ok() || !second.ok()) return false;  // an error, of the request or of the device
  rows_were_tried_ = true;
  batches_ = rows_of(*both) == 2 * item.rows && agree(*first, rows_from(*both, 0, item.rows)) &&
             agree(*second, rows_from(*both, item.rows, item.rows));
  if (!batches_)
    log(LogLevel::warning, "Requests of model '" + printable(name_) +
                               "' are not put together, as --max-batch asks for: its rows depend on each other.");
  return batches_;
}

}  // namespace sparkle::serve
