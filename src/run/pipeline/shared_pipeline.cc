#include "run/pipeline/shared_pipeline.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "run/choice/predicted.h"

namespace sparkle {
namespace {

constexpr double kNewest = 0.25;  // the weight of the newest item in what an item takes
constexpr std::chrono::milliseconds kAskAgain{2};

double host_clock() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Error closed_error() { return {Reason::bad_usage, "The pipeline is closed and takes no more items."}; }

}  // namespace

SharedPipeline::SharedPipeline(std::vector<std::shared_ptr<Session>> sessions, SharedPipelineOptions options)
    : options_(std::move(options)) {
  if (!options_.clock) options_.clock = host_clock;
  const int depth = std::max(1, options_.depth);
  places_.resize(sessions.size());
  int64_t at_once = 0;
  for (size_t i = 0; i < sessions.size(); ++i) {
    Place& place = places_[i];
    const Device& device = sessions[i]->backend()->device();
    place.name = i < options_.names.size() ? options_.names[i] : device.name;
    PipelineOptions own;
    own.depth = device.has_workgroups() || sessions[i]->backend()->can_be_lost() ? depth : 1;
    place.most = own.depth + 1;  // one more waits for its turn
    own.waiting = place.most;
    own.passes_on = [this, i](const Error& error) { return passes_on(i, error); };
    own.trace = options_.trace;
    own.name = place.name;
    place.session = std::move(sessions[i]);
    place.pipeline = std::make_unique<Pipeline>(place.session, own);
    at_once += place.most;
  }
  window_ = at_once + (options_.waiting > 0 ? options_.waiting : 4 * at_once);
  deliverer_ = std::thread([this] { deliver(); });
}

SharedPipeline::~SharedPipeline() { close(); }

void SharedPipeline::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    hand_out();  // how many are left is known now
  }
  room_.notify_all();
  to_deliver_.notify_one();
  if (deliverer_.joinable()) deliverer_.join();
  for (Place& place : places_) place.pipeline->close();
}

Status SharedPipeline::submit(std::vector<HostTensor> inputs, Done done) {
  settle(inputs);
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] { return closed_ || !full(); });
  return put(inputs, done);
}

Result<bool> SharedPipeline::try_submit(std::vector<HostTensor>& inputs, Done done) {
  settle(inputs);
  const std::lock_guard lock(mutex_);
  if (!closed_ && full()) return false;
  SPARKLE_CHECK(put(inputs, done));
  return true;
}

Result<std::future<SharedPipeline::Outputs>> SharedPipeline::submit(std::vector<HostTensor> inputs) {
  auto promise = std::make_shared<std::promise<Outputs>>();
  auto future = promise->get_future();
  SPARKLE_CHECK(submit(std::move(inputs), [promise](Outputs outputs) { promise->set_value(std::move(outputs)); }));
  return future;
}

Status SharedPipeline::put(std::vector<HostTensor>& inputs, Done& done) {
  if (closed_) return closed_error();
  items_.push_back({std::move(inputs), std::move(done), {}, 0});
  inputs.clear();
  ++submitted_;
  hand_out();
  return ok();
}

// Who works, by the plans for the first item that one of the devices can plan. What all refuse is the item's own fault.
void SharedPipeline::settle(const std::vector<HostTensor>& inputs) {
  const std::lock_guard settling(settling_);
  {
    const std::lock_guard lock(mutex_);
    if (settled_ || closed_) return;
  }
  std::vector<DeviceAlone> alone;
  bool usable = false;
  for (const Place& place : places_) {
    const std::shared_ptr<Backend> backend = place.session->backend();
    const Device& device = backend->device();
    DeviceAlone one{place.name, 0, !device.has_workgroups() || device.is_software(), {}};
    if (const auto plan = place.session->prepare(inputs); plan.ok())
      one.seconds = (*plan)->predicted_seconds() + predicted_transfers(**plan, device, inputs);
    else one.unusable = plan.error().message;
    usable = usable || one.unusable.empty();
    alone.push_back(std::move(one));
  }
  if (!usable) return;
  TogetherChoice choice = choose_together(alone);
  if (options_.split == Split::always) {
    choice.why.clear();
    for (size_t i = 0; i < alone.size(); ++i) {
      choice.used[i] = alone[i].unusable.empty();
      if (choice.used[i]) choice.why += (choice.why.empty() ? "" : " and ") + alone[i].name;
    }
    choice.why += ", as asked for";
    for (const DeviceAlone& one : alone)
      if (!one.unusable.empty()) choice.why += "; without " + one.name + ", " + one.unusable;
  }
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < places_.size(); ++i) {
    places_[i].worker.gone = places_[i].lost || !choice.used[i];
    places_[i].predicted = places_[i].worker.seconds = alone[i].seconds;
  }
  why_ = std::move(choice.why);
  settled_ = true;
}

// Gives out items for as long as somebody takes the next; mutex_ is held.
void SharedPipeline::hand_out() {
  for (;;) {
    const bool from_lost = !again_.empty();
    if (!from_lost && next_ >= submitted_) return;
    const int64_t number = from_lost ? *again_.begin() : next_;
    if (!begin(number)) return;
    if (from_lost) again_.erase(again_.begin());
    else ++next_;
  }
}

bool SharedPipeline::begin(int64_t number) {
  std::vector<Worker> workers;
  std::vector<size_t> order;
  const double time = now();
  for (size_t i = 0; i < places_.size(); ++i) {
    workers.push_back(places_[i].worker);
    // Who is at it for longer than was predicted or measured is slower than that.
    if (workers[i].under_way > 0) workers[i].seconds = std::max(workers[i].seconds, time - places_[i].busy_since);
    // One at first, which shows how fast it is.
    const int most = places_[i].items + places_[i].failed + places_[i].passed_on > 0 ? places_[i].most : 1;
    if (!workers[i].gone && workers[i].under_way < most) order.push_back(i);
  }
  // Who would be done with it first is asked first.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return (workers[a].under_way + 1) * workers[a].seconds < (workers[b].under_way + 1) * workers[b].seconds;
  });
  // No device may take an item so long that the others run out of room behind it.
  int64_t left = window_;
  const int64_t waiting = static_cast<int64_t>(again_.size()) + submitted_ - next_;
  if (closed_) left = std::min(left, waiting);
  else if (options_.items >= 0) left = std::min(left, std::max(waiting, options_.items - next_));
  for (const size_t i : order) {
    if (!takes_next(workers, i, left)) continue;
    Item& next = item(number);
    next.begun = time;
    if (places_[i].worker.under_way++ == 0) places_[i].busy_since = time;
    std::vector<HostTensor> inputs = next.inputs;  // kept, in case that the device is lost
    const auto taken = places_[i].pipeline->try_submit(
        inputs, [this, i, number](Outputs outputs) { finished(i, number, std::move(outputs)); }, number);
    if (taken.ok() && *taken) return true;
    --places_[i].worker.under_way;
  }
  return false;
}

// By a thread of the device's pipeline.
void SharedPipeline::finished(size_t index, int64_t number, Outputs outputs) {
  std::unique_lock lock(mutex_);
  Place& place = places_[index];
  Item& own = item(number);
  --place.worker.under_way;
  const double end = now();
  if (!outputs.ok() && place.lost && is_of_the_device(outputs.error()) && options_.fallback != Fallback::forbid) {
    ++place.passed_on;
    again_.insert(number);
  } else {
    if (outputs.ok()) {
      // Items lie one behind the other in the pipeline: what this one took begins where the one before ended.
      const double seconds = std::max(1e-9, end - std::max(own.begun, place.busy_since));  // 0 were unknown
      double& kept = place.worker.seconds;
      kept = place.measured++ < 2 ? seconds : kept + kNewest * (seconds - kept);  // the first may fill caches
      ++place.items;
    } else {
      ++place.failed;
    }
    own.inputs.clear();
    own.result = std::move(outputs);
  }
  place.busy_since = end;
  hand_out();
  if (!several()) return deliver_ready(lock);  // as its pipeline alone does, and no other thread is woken
  lock.unlock();
  to_deliver_.notify_one();
}

// Whether more than one device takes items; mutex_ is held.
bool SharedPipeline::several() const {
  return std::count_if(places_.begin(), places_.end(), [](const Place& place) { return !place.worker.gone; }) > 1;
}

// By a thread of the pipeline of a device that is lost or full: whether the others take over. The last one does not give up.
bool SharedPipeline::passes_on(size_t index, const Error& error) {
  std::string from, to;
  {
    const std::lock_guard lock(mutex_);
    Place& place = places_[index];
    if (place.lost) return true;
    // Those that work; else the fastest of those that rest.
    size_t best = places_.size();
    for (size_t i = 0; i < places_.size(); ++i) {
      const Place& other = places_[i];
      if (i == index || other.lost) continue;
      if (!other.worker.gone) to += (to.empty() ? "" : " and ") + other.name;
      if (best == places_.size() || other.predicted < places_[best].predicted) best = i;
    }
    if (best == places_.size()) return false;
    if (to.empty()) places_[best].worker.gone = false, to = places_[best].name;
    place.lost = place.worker.gone = true;
    from = place.name;
  }
  const bool forbidden = options_.fallback == Fallback::forbid;
  places_[index].session->add_event(
      {"device", from, to, error.reason, 0, "",
       error.message + (forbidden ? " Items that it had fail; the next go to " + to + "." : " Its items go to " + to + ".")});
  return true;
}

void SharedPipeline::deliver() {
  for (std::unique_lock lock(mutex_);;) {
    const auto ready = [&] { return !delivering_ && (items_.empty() ? closed_ : items_.front().result.has_value()); };
    // Who was passed over for one that turns out to be slow is asked again.
    while (!ready()) {
      if (several() && (next_ < submitted_ || !again_.empty())) to_deliver_.wait_for(lock, kAskAgain), hand_out();
      else to_deliver_.wait(lock);
    }
    if (items_.empty()) return;
    deliver_ready(lock);
  }
}

// What has its result, up to the first that has none; by one thread at a time.
void SharedPipeline::deliver_ready(std::unique_lock<std::mutex>& lock) {
  if (delivering_) return;  // who does sees what has come meanwhile
  delivering_ = true;
  while (!items_.empty() && items_.front().result) {
    Item first = std::move(items_.front());
    items_.pop_front();
    ++delivered_;
    // Who waits is woken for half of the queue at once, and where devices have all that there is.
    const bool room = 2 * static_cast<int64_t>(items_.size()) <= window_ || next_ >= submitted_;
    lock.unlock();
    if (room) room_.notify_all();
    first.done(std::move(*first.result));
    first = {};
    lock.lock();
  }
  delivering_ = false;
  if (closed_) to_deliver_.notify_one();
}

std::vector<DeviceShare> SharedPipeline::shares() const {
  std::vector<DeviceShare> shares;
  const std::lock_guard lock(mutex_);
  for (const Place& place : places_)
    shares.push_back({place.name, settled_ && !(place.worker.gone && !place.lost), place.lost, place.items, place.predicted,
                      place.measured > 0 ? place.worker.seconds : 0, place.pipeline->times()});
  return shares;
}

std::string SharedPipeline::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

PipelineTimes SharedPipeline::times() const {
  PipelineTimes sum;
  const std::lock_guard lock(mutex_);
  for (const Place& place : places_) {
    const PipelineTimes own = place.pipeline->times();
    sum.items += place.items + place.failed, sum.failed += place.failed, sum.again += own.again + place.passed_on;
    sum.handing += own.handing, sum.waiting += own.waiting, sum.bringing += own.bringing;
  }
  return sum;
}

}  // namespace sparkle
