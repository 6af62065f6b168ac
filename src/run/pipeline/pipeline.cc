#include "run/pipeline/pipeline.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/system/out_of_memory.h"

namespace sparkle {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

bool same_shapes(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const HostTensor& x, const HostTensor& y) { return x.dtype == y.dtype && x.shape == y.shape; });
}

Error closed_error() { return {Reason::bad_usage, "The pipeline is closed and takes no more items."}; }

}  // namespace

Pipeline::Pipeline(std::shared_ptr<Session> session, PipelineOptions options)
    : session_(std::move(session)),
      options_(std::move(options)),
      most_waiting_(static_cast<size_t>(std::max(1, options_.waiting > 0 ? options_.waiting : 4 * options_.depth))) {
  if (options_.trace)
    watch_ = std::make_unique<PipelineWatch>(options_.trace,
                                             options_.name.empty() ? session_->backend()->device().name : options_.name);
  feeder_ = std::thread([this] { feed(); });
  finisher_ = std::thread([this] { finish(); });
}

Pipeline::~Pipeline() { close(); }

void Pipeline::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  room_.notify_all();
  to_feed_.notify_one();
  if (feeder_.joinable()) feeder_.join();
  if (finisher_.joinable()) finisher_.join();
  watch_.reset();
}

bool Pipeline::put(std::vector<HostTensor>& inputs, Done& done, int64_t number, std::unique_lock<std::mutex>& lock) {
  if (waiting_.size() >= most_waiting_) return false;
  waiting_.push_back({std::move(inputs), std::move(done), number < 0 ? counted_++ : number, nullptr, {}, {}, nullptr, ok()});
  lock.unlock();
  to_feed_.notify_one();
  return true;
}

Status Pipeline::submit(std::vector<HostTensor> inputs, Done done) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] { return closed_ || waiting_.size() < most_waiting_; });
  if (closed_) return closed_error();
  put(inputs, done, -1, lock);
  return ok();
}

Result<bool> Pipeline::try_submit(std::vector<HostTensor>& inputs, Done done) {
  return try_submit(inputs, std::move(done), -1);
}

Result<bool> Pipeline::try_submit(std::vector<HostTensor>& inputs, Done done, int64_t number) {
  std::unique_lock lock(mutex_);
  if (closed_) return closed_error();
  return put(inputs, done, number, lock);
}

Result<std::future<Pipeline::Outputs>> Pipeline::submit(std::vector<HostTensor> inputs) {
  auto promise = std::make_shared<std::promise<Outputs>>();
  auto future = promise->get_future();
  SPARKLE_CHECK(submit(std::move(inputs), [promise](Outputs outputs) { promise->set_value(std::move(outputs)); }));
  return future;
}

PipelineTimes Pipeline::times() const {
  const std::lock_guard lock(mutex_);
  return times_;
}

// Hands items over in their order, each once a set is free. What goes wrong travels on with the item.
void Pipeline::feed() {
  std::optional<Item> ahead;  // its download is handed over behind the next one's upload
  for (std::unique_lock lock(mutex_);;) {
    const auto has_set = [&] { return !free_.empty() || made_ < std::max(1, options_.depth); };
    // Unless there is a next one, or will be as soon as an item before gives its set back. What has other shapes may have to
    // be planned first.
    if (ahead && (waiting_.empty() || !same_shapes(waiting_.front().inputs, ahead->inputs) ||
                  (!has_set() && under_way_.empty() && !finishing_))) {
      lock.unlock();
      let_go(ahead);
      lock.lock();
    }
    to_feed_.wait(lock, [&] { return waiting_.empty() ? closed_ : has_set(); });
    if (waiting_.empty()) {
      fed_ = true;
      break;
    }
    Item item = std::move(waiting_.front());
    waiting_.pop_front();
    // Who waits is woken for half of the queue at once: on CPUs each waking takes a core from the item that is computed.
    const bool room = waiting_.size() == most_waiting_ / 2;
    if (free_.empty()) {
      item.set = std::make_unique<TransferSet>();
      ++made_;
    } else {
      item.set = std::move(free_.back());
      free_.pop_back();
    }
    lock.unlock();
    if (room) room_.notify_all();
    const auto begin_time = Clock::now();
    const double traced = watch_ ? watch_->now() : 0;
    item.begun = begin(item, ahead);
    // Where nothing is to be waited for the download is in nobody's way.
    const bool complete = item.set->backend() && item.set->backend()->done(item.token);
    if (complete || !item.begun.ok() || !item.set->has_download()) fetch(item);
    const double taken = seconds_since(begin_time);
    if (watch_) watch_->host(PipelineLane::hand_over, item.number, traced);
    lock.lock();
    times_.handing += taken;
    // What is complete already, as on CPUs, needs no other thread.
    if (under_way_.empty() && !finishing_ && complete && item.set->backend()->done(item.token)) hand_back(item, lock);
    else if (item.fetched) set_under_way(std::move(item));
    else ahead = std::move(item);
  }
  to_finish_.notify_one();
}

// Under the lock.
void Pipeline::set_under_way(Item item) {
  under_way_.push_back(std::move(item));
  to_finish_.notify_one();
}

// Its download is handed over, and from there on the other thread waits for it. By the thread that feeds, outside of the lock.
void Pipeline::let_go(std::optional<Item>& ahead) {
  if (!ahead) return;
  fetch(*ahead);
  const std::lock_guard lock(mutex_);
  set_under_way(*std::exchange(ahead, std::nullopt));
}

// Hands the download over, where all before it was. By the thread that feeds.
void Pipeline::fetch(Item& item) {
  if (std::exchange(item.fetched, true) || !item.begun.ok()) return;
  const double traced = watch_ ? watch_->now() : 0;
  item.begun = guard_memory("Running the model on these inputs", [&]() -> Status {
    SPARKLE_TRY(back, item.set->download(item.token));
    if (watch_ && back.value != item.token.value && back.value != 0)
      watch_->device(PipelineLane::download, item.number, traced, item.set->backend(), back);
    item.token = back;
    return ok();
  });
}

// With the item's outputs, outside of the lock.
void Pipeline::hand_back(Item& item, std::unique_lock<std::mutex>& lock) {
  finishing_ = true;
  lock.unlock();
  Outputs outputs = end(item);
  const bool failed = !outputs.ok();
  item.done(std::move(outputs));
  lock.lock();
  finishing_ = false;
  ++times_.items, times_.failed += failed;
  free_.push_back(std::move(item.set));
}

// An item is handed over by one thread, which computes the host's steps as well.
void Pipeline::tell_once(const Plan& plan) {
  if (plan.host.empty() || told_.exchange(true)) return;
  log(LogLevel::warning, "Items of '" + plan.model + "' overlap in part alone: steps of each run on " + plan.host +
                             ", and the next item is begun after the last of these.");
}

// `before`: the item whose download waits for this one's upload; it is let go in any case.
Status Pipeline::begin(Item& item, std::optional<Item>& before) {
  double traced = 0;
  const auto stage = [&] {
    if (watch_) traced = watch_->now();
  };
  // Nothing was handed over where there is no token.
  const auto staged = [&](PipelineLane lane, Token token) {
    if (watch_ && token.value != 0) watch_->device(lane, item.number, traced, item.set->backend(), token);
  };
  const auto once = [&]() -> Status {
    item.token = item.computed = {};
    item.device = session_->backend();
    SPARKLE_TRY(plan, session_->prepare(item.inputs));
    tell_once(*plan);
    for (size_t i = 0; i < item.inputs.size(); ++i)
      if (!item.inputs[i].bytes && item.inputs[i].elements() > 0)
        return Error{Reason::bad_input, "Input '" + session_->inputs()[i].name + "' has a shape, but no values."};
    SPARKLE_CHECK(item.set->fit(session_->backend(), plan, item.inputs));
    if (before && before->set->backend()->done(before->token)) let_go(before);
    stage();
    SPARKLE_TRY(there, item.set->upload(item.inputs));
    item.token = there;
    staged(PipelineLane::upload, there);
    let_go(before);
    stage();
    SPARKLE_TRY(computed,
                session_->submit(item.inputs, item.set->inputs(), item.set->outputs(), item.set->backend().get(), there));
    item.token = item.computed = computed;
    if (watch_) watch_->device(PipelineLane::compute, item.number, traced, item.set->backend(), computed);
    return ok();
  };
  Status all = guard_memory("Running the model on these inputs", [&]() -> Status {
    Status begun = once();
    // The session has moved to another device meanwhile.
    if (!begun.ok() && begun.error().reason == Reason::bad_usage && session_->backend() != item.set->backend()) {
      // What the device before was given still uses the set's buffers; its own end is no concern of the item any more.
      if (item.set->backend()) (void)item.set->backend()->wait(item.token);
      begun = once();
    }
    return begun;
  });
  let_go(before);
  return all;
}

// Waits for the item that was handed over first and brings its outputs.
void Pipeline::finish() {
  for (std::unique_lock lock(mutex_);;) {
    to_finish_.wait(lock, [&] { return !under_way_.empty() || fed_; });
    if (under_way_.empty()) return;
    Item item = std::move(under_way_.front());
    under_way_.pop_front();
    hand_back(item, lock);
    to_feed_.notify_one();
  }
}

Pipeline::Outputs Pipeline::end(Item& item) {
  Status status = std::move(item.begun);
  const auto begin_time = Clock::now();
  if (const auto& backend = item.set->backend()) {
    // Where handing over failed half-way, what was handed over still uses the set.
    Status over = backend->wait(item.token);
    // What the work itself has to say - an index that is none - is told to who waits for it, not for the copy behind it.
    if (over.ok() && item.computed.value != 0 && item.computed.value != item.token.value) over = backend->wait(item.computed);
    if (status.ok()) status = std::move(over);
  }
  const double waited = seconds_since(begin_time);
  const auto woken = Clock::now();
  const double traced = watch_ ? watch_->now() : 0;
  Outputs outputs = status.ok() ? item.set->take() : Outputs(status.error());
  if (watch_) watch_->host(PipelineLane::bring_back, item.number, traced);
  {
    const std::lock_guard lock(mutex_);
    times_.waiting += waited, times_.bringing += seconds_since(woken);
  }
  if (outputs.ok() || !is_of_the_device(outputs.error())) return outputs;
  if (options_.passes_on && options_.passes_on(outputs.error())) return outputs;
  Status recovered =
      options_.recover ? options_.recover(outputs.error()) : session_->recover(outputs.error(), item.device.get());
  if (!recovered.ok()) return recovered.take_error();
  {
    const std::lock_guard lock(mutex_);
    ++times_.again;
  }
  return session_->run(item.inputs);
}

}  // namespace sparkle
