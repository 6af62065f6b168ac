// One queue over several devices: in order, each item its own result, none lost, doubled or wrong, whichever device dawdles or
// fails at whichever call; and shares as the devices are fast.
#include "run/pipeline/shared_pipeline.h"

#include <map>

#include "run/pipeline/pipelines_testing.h"
#include "run/pipeline/slow_backend_testing.h"

namespace sparkle {
namespace {

using testing::nearly_same;
using testing::open_tiny;
using testing::PipelineResults;
using testing::PipelineWork;
using testing::run_all;
using testing::SlowBackend;
using testing::work_for;

// So many devices of the tests' own.
struct Slow {
  explicit Slow(int count) {
    for (int i = 0; i < count; ++i) {
      backends.push_back(std::make_shared<SlowBackend>());
      sessions.push_back(open_tiny(backends.back()));
      names.push_back("slow:" + std::to_string(i));
    }
  }
  SharedPipelineOptions options() const {
    SharedPipelineOptions o;
    o.split = Split::always, o.names = names;
    return o;
  }
  std::vector<std::shared_ptr<SlowBackend>> backends;
  std::vector<std::shared_ptr<Session>> sessions;
  std::vector<std::string> names;
};

void expect_all_right(const PipelineResults& results, const PipelineWork& work) {
  results.expect_in_order(work.items.size());
  ASSERT_EQ(results.of.size(), work.items.size());
  for (size_t i = 0; i < work.items.size(); ++i) {
    ASSERT_TRUE(results.of[i].ok()) << i << ": " << results.of[i].error().message;
    EXPECT_TRUE(nearly_same(*results.of[i], work.wanted[i])) << i;
  }
}
uint64_t all_items(const SharedPipeline& pipeline) {
  uint64_t sum = 0;
  for (const DeviceShare& share : pipeline.shares()) sum += share.items;
  return sum;
}
// Hands so many items over; when it ends, whatever a test found, no device waits any more.
class Source {
 public:
  Source(const Slow& slow, SharedPipeline& pipeline, const std::vector<HostTensor>& inputs, int count)
      : slow_(slow), thread_([this, &pipeline, &inputs, count] {
          for (int i = 0; i < count; ++i)
            EXPECT_TRUE(pipeline.submit(inputs, [this](Pipeline::Outputs outputs) { delivered += outputs.ok(); }).ok());
        }) {}
  ~Source() { end(); }
  void end() {
    for (const auto& backend : slow_.backends) backend->permit(1000);
    if (thread_.joinable()) thread_.join();
  }
  std::atomic<int> delivered{0};

 private:
  const Slow& slow_;
  std::thread thread_;
};

// Waits for what other threads do next; false where it does not come about.
template <class Condition>
bool soon(Condition&& condition) {
  for (int i = 0; i < 20000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::microseconds(250));
  return condition();
}

TEST(SharedPipeline, KeepsTheOrderWhicheverDeviceDawdles) {
  const PipelineWork work = work_for(*open_tiny(testing::two_threads()), 40);
  for (const int devices : {1, 2, 3, 4}) {
    for (const unsigned seed : {1u, 2u}) {
      Slow slow(devices);
      for (int i = 0; i < devices; ++i)
        slow.backends[static_cast<size_t>(i)]->dawdle(100 << i, seed + static_cast<unsigned>(i));
      if (seed == 2) slow.sessions.push_back(open_tiny(testing::two_threads())), slow.names.push_back("cpu");
      SharedPipelineOptions options = slow.options();
      options.depth = 1 + devices % 3, options.items = seed == 2 ? 40 : -1;
      SharedPipeline pipeline(slow.sessions, options);
      expect_all_right(run_all(pipeline, work), work);
      EXPECT_EQ(all_items(pipeline), 40u);
      EXPECT_EQ(pipeline.times().items, 40u);
      EXPECT_EQ(pipeline.times().failed, 0u);
    }
  }
}

TEST(SharedPipeline, ErrorsBelongToTheirItems) {
  Slow slow(2);
  const PipelineWork work = work_for(*slow.sessions[0], 3);
  SharedPipeline pipeline(slow.sessions, slow.options());
  std::vector<std::future<Pipeline::Outputs>> futures;
  for (int i = 0; i < 12; ++i) {
    auto inputs = work.items[static_cast<size_t>(i % 3)];
    if (i % 3 != 2) inputs[0].bytes = nullptr;
    auto future = pipeline.submit(std::move(inputs));
    ASSERT_TRUE(future.ok());
    futures.push_back(std::move(*future));
  }
  for (int i = 0; i < 12; ++i) {
    auto outputs = futures[static_cast<size_t>(i)].get();
    ASSERT_EQ(outputs.ok(), i % 3 == 2) << i;
    if (outputs.ok()) {
      EXPECT_TRUE(nearly_same(*outputs, work.wanted[2]));
    } else {
      EXPECT_EQ(outputs.error().reason, Reason::bad_input);
    }
  }
  pipeline.close();
  EXPECT_EQ(pipeline.submit(work.items[0], {}).error().reason, Reason::bad_usage);
  EXPECT_EQ(pipeline.times().failed, 8u);
  for (const DeviceShare& share : pipeline.shares()) EXPECT_FALSE(share.lost);
}

// One device works three times as fast as the other, by permits instead of a clock: so are the items that they get.
TEST(SharedPipeline, DevicesGetItemsAsTheyAreFast) {
  Slow slow(2);
  const PipelineWork work = work_for(*slow.sessions[0], 1);
  ASSERT_TRUE(slow.sessions[1]->prepare(work.items[0]).ok());
  std::atomic<double> clock{0};
  SharedPipelineOptions options = slow.options();
  options.clock = [&] { return clock.load(); };
  options.items = 80;
  SharedPipeline pipeline(slow.sessions, options);
  for (const auto& backend : slow.backends) backend->meter();
  Source source(slow, pipeline, work.items[0], 80);
  const auto items_of = [&](size_t device) { return pipeline.shares()[device].items; };
  const auto step = [&](size_t device) {
    if (!soon([&] { return slow.backends[device]->under_way() > 0 || all_items(pipeline) == 80; })) return false;
    if (slow.backends[device]->under_way() == 0) return true;
    const uint64_t before = items_of(device);
    slow.backends[device]->permit(1);
    return soon([&] { return items_of(device) > before; });
  };
  for (int tick = 1; tick <= 70 && all_items(pipeline) < 80; ++tick) {
    clock = tick;
    ASSERT_TRUE(step(0)) << tick;
    // At the end the rule leaves the last items to the fast one.
    if (tick % 3 == 0 && slow.backends[1]->under_way() > 0) {
      ASSERT_TRUE(step(1)) << tick;
    }
  }
  source.end();
  pipeline.close();
  EXPECT_EQ(source.delivered, 80);
  EXPECT_NEAR(static_cast<double>(items_of(0)), 60, 4);
  EXPECT_NEAR(static_cast<double>(items_of(1)), 20, 4);
}

// A device that is far slower than was predicted has one item, and then none. Time is what the fast one has done.
TEST(SharedPipeline, TheSlowestDoesNotHoldUpTheOthers) {
  Slow slow(2);
  const PipelineWork work = work_for(*slow.sessions[0], 1);
  ASSERT_TRUE(slow.sessions[1]->prepare(work.items[0]).ok());
  std::atomic<double> more{0};
  SharedPipelineOptions options = slow.options();
  options.clock = [&] { return more + slow.backends[0]->completed(); };
  options.items = 200, options.waiting = 8;
  SharedPipeline pipeline(slow.sessions, options);
  slow.backends[1]->meter();
  Source source(slow, pipeline, work.items[0], 200);
  // The fast one goes on until the slow one's item is the next to be delivered and there is no more room behind it.
  const auto stands = [&] {
    const uint64_t before = pipeline.shares()[0].items;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return before >= 14 && pipeline.shares()[0].items == before && slow.backends[0]->under_way() == 0;
  };
  ASSERT_TRUE(soon(stands));
  EXPECT_EQ(pipeline.shares()[1].items, 0u);
  more = 10000;
  source.end();
  pipeline.close();
  EXPECT_EQ(source.delivered, 200);
  EXPECT_EQ(pipeline.shares()[1].items, 1u);
}

TEST(SharedPipeline, AFaultOfAnyDeviceAtAnyCallLosesNothing) {
  const auto right = open_tiny(testing::two_threads());
  const PipelineWork work = work_for(*right, 12);
  for (const Reason reason : {Reason::device_lost, Reason::out_of_memory, Reason::device_unusable}) {
    for (int device = 0; device < 3; ++device) {
      for (int at = 0; at < 24; ++at) {
        SCOPED_TRACE(std::string(code_of(reason)) + " of device " + std::to_string(device) + " at call " + std::to_string(at));
        Slow slow(3);
        for (const auto& session : slow.sessions) ASSERT_TRUE(session->prepare(work.items[0]).ok());
        const auto& failing = slow.backends[static_cast<size_t>(device)];
        failing->fail_at(at, reason);
        SharedPipeline pipeline(slow.sessions, slow.options());
        expect_all_right(run_all(pipeline, work), work);
        EXPECT_EQ(all_items(pipeline), 12u);
        const DeviceShare share = pipeline.shares()[static_cast<size_t>(device)];
        EXPECT_EQ(share.lost, failing->failed());
        const EventList& events = slow.sessions[static_cast<size_t>(device)]->events();
        ASSERT_EQ(events.size(), failing->failed() ? 1u : 0u);
        if (failing->failed()) {
          EXPECT_EQ(events.at(0)->what, "device");
          EXPECT_EQ(events.at(0)->from, share.name);
          EXPECT_EQ(events.at(0)->reason, reason);
        }
      }
    }
  }
}

TEST(SharedPipeline, OneAfterAnotherIsLostUntilNoneIsLeft) {
  const auto right = open_tiny(testing::two_threads());
  const PipelineWork work = work_for(*right, 30);
  for (const bool recovers : {false, true}) {
    Slow slow(3);
    if (recovers) {
      SessionOptions options;
      options.next_device = [](const Error&) -> Result<std::shared_ptr<Backend>> { return testing::two_threads(); };
      for (size_t i = 0; i < 3; ++i) slow.sessions[i] = open_tiny(slow.backends[i], options);
    }
    for (const auto& session : slow.sessions) ASSERT_TRUE(session->prepare(work.items[0]).ok());
    for (size_t i = 0; i < 3; ++i) slow.backends[i]->fail_at(static_cast<int>(6 + 7 * i), Reason::device_lost);
    SharedPipeline pipeline(slow.sessions, slow.options());
    const PipelineResults results = run_all(pipeline, work);
    results.expect_in_order(30);
    int wrong = 0;
    for (size_t i = 0; i < results.of.size(); ++i) {
      if (results.of[i].ok()) {
        EXPECT_TRUE(nearly_same(*results.of[i], work.wanted[i])) << i;
        continue;
      }
      ++wrong;
      EXPECT_EQ(results.of[i].error().reason, Reason::device_lost);
    }
    // The last one is not given up: its own session may go on elsewhere, else its errors are the items'.
    EXPECT_EQ(wrong > 0, !recovers);
    EXPECT_EQ(pipeline.shares()[0].lost + pipeline.shares()[1].lost + pipeline.shares()[2].lost, 2);
  }
}

TEST(SharedPipeline, UnderForbidErrorsStayWithTheItems) {
  Slow slow(2);
  const PipelineWork work = work_for(*slow.sessions[0], 20);
  ASSERT_TRUE(slow.sessions[1]->prepare(work.items[0]).ok());
  slow.backends[1]->fail_at(2, Reason::device_lost);
  SharedPipelineOptions options = slow.options();
  options.fallback = Fallback::forbid;
  SharedPipeline pipeline(slow.sessions, options);
  const PipelineResults results = run_all(pipeline, work);
  results.expect_in_order(20);
  int lost = 0;
  for (size_t i = 0; i < results.of.size(); ++i) {
    if (results.of[i].ok()) {
      EXPECT_TRUE(nearly_same(*results.of[i], work.wanted[i])) << i;
      continue;
    }
    ++lost;
    EXPECT_EQ(results.of[i].error().reason, Reason::device_lost);
  }
  EXPECT_GE(lost, 1);
  EXPECT_LE(lost, 4);  // what it had at once
  EXPECT_TRUE(pipeline.shares()[1].lost);
}

TEST(SharedPipeline, IsFullAtSomePointAndEndsWithAllItems) {
  Slow slow(2);
  const PipelineWork work = work_for(*slow.sessions[0], 1);
  ASSERT_TRUE(slow.sessions[1]->prepare(work.items[0]).ok());
  for (const auto& backend : slow.backends) backend->hold();
  std::atomic<int> done{0};
  int taken = 0;
  {
    SharedPipelineOptions options = slow.options();
    options.depth = 2, options.waiting = 3;
    SharedPipeline pipeline(slow.sessions, options);
    for (bool room = true; room;) {
      auto inputs = work.items[0];
      const auto offered = pipeline.try_submit(inputs, [&](Pipeline::Outputs outputs) { done += outputs.ok(); });
      ASSERT_TRUE(offered.ok());
      room = *offered;
      taken += room;
      EXPECT_EQ(inputs.empty(), room);  // what was not taken is as it was
    }
    EXPECT_EQ(taken, 2 * 3 + 3);
    EXPECT_EQ(done, 0);
    for (const auto& backend : slow.backends) backend->release();
  }
  EXPECT_EQ(done, taken);
}

TEST(SharedPipeline, OfDevicesOnTheSameCoresOneWorksAndTheLineSaysSo) {
  const auto cpu = open_tiny(testing::two_threads());
  const PipelineWork work = work_for(*cpu, 8);
  SharedPipelineOptions options;
  options.names = {"cpu", "other"};
  SharedPipeline pipeline({cpu, open_tiny(testing::two_threads())}, options);
  EXPECT_EQ(pipeline.why(), "");
  expect_all_right(run_all(pipeline, work), work);
  EXPECT_NE(pipeline.why().find("cpu alone"), std::string::npos) << pipeline.why();
  EXPECT_NE(pipeline.why().find("without other, whose cores are those of cpu"), std::string::npos) << pipeline.why();
  EXPECT_EQ(pipeline.shares()[0].items, 8u);
  EXPECT_FALSE(pipeline.shares()[1].used);
}

TEST(SharedPipeline, TheTraceHasTheStagesOfEachItemInOrder) {
  Slow slow(2);
  slow.sessions.push_back(open_tiny(testing::two_threads())), slow.names.push_back("cpu");
  const PipelineWork work = work_for(*slow.sessions[2], 20);
  const auto trace = std::make_shared<PipelineTrace>();
  SharedPipelineOptions options = slow.options();
  options.trace = trace;
  SharedPipeline pipeline(slow.sessions, options);
  expect_all_right(run_all(pipeline, work), work);
  EXPECT_EQ(trace->devices(), slow.names);
  std::map<int64_t, std::map<PipelineLane, PipelineSpan>> items;
  std::map<std::pair<int, PipelineLane>, double> ends;
  for (const PipelineSpan& span : trace->spans()) {
    EXPECT_TRUE(items[span.item].emplace(span.lane, span).second) << span.item;
    EXPECT_LE(span.begin, span.end);
    // A lane has one thing at a time.
    double& end = ends[{span.device, span.lane}];
    EXPECT_GE(span.begin, end);
    end = span.end;
  }
  ASSERT_EQ(items.size(), 20u);
  for (const auto& [item, lanes] : items) {
    const bool on_cpu = lanes.begin()->second.device == 2;
    EXPECT_EQ(lanes.size(), on_cpu ? 3u : 5u) << item;
    double before = lanes.at(PipelineLane::hand_over).begin;
    for (const auto& [lane, span] : lanes) {
      EXPECT_EQ(span.device, lanes.begin()->second.device);
      if (lane == PipelineLane::hand_over) continue;
      EXPECT_GE(span.begin, before) << item << " " << name_of(lane);
      before = span.end;
    }
  }
}

}  // namespace
}  // namespace sparkle
