// Items through a pipeline: in order, each with its own result or error, none lost or doubled, whatever fails and whenever it
// is closed.
#include "run/pipeline/pipeline.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "base/system/thread_pool.h"
#include "device/probe_cpu.h"
#include "networks/zoo.h"
#include "run/pipeline/slow_backend_testing.h"
#include "run/session_testing.h"

namespace sparkle {
namespace {

using testing::SlowBackend;

std::shared_ptr<Session> open(std::shared_ptr<Backend> backend, const char* name = "tiny_chain") {
  auto session = Session::open(std::move(*zoo_network(name)), std::move(backend), {}, [name] { return zoo_network(name); });
  EXPECT_TRUE(session.ok()) << (session.ok() ? "" : session.error().message);
  return session.ok() ? std::shared_ptr<Session>(std::move(*session)) : nullptr;
}
std::shared_ptr<Backend> cpu() { return cpu::make_cpu_backend(probe_cpu(), std::make_shared<ThreadPool>(2)); }

bool same(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!(a[i].shape == b[i].shape) ||
        std::memcmp(a[i].bytes.get(), b[i].bytes.get(), static_cast<size_t>(a[i].size_bytes())) != 0)
      return false;
  return true;
}

struct Work {
  std::vector<std::vector<HostTensor>> items, wanted;
};
Work work_for(Session& session, int count) {
  Work work;
  for (int i = 0; i < count; ++i) {
    work.items.push_back(testing::random_inputs(session, static_cast<uint64_t>(100 * i + 1)));
    auto wanted = session.run(work.items.back());
    EXPECT_TRUE(wanted.ok()) << wanted.error().message;
    work.wanted.push_back(std::move(*wanted));
  }
  return work;
}

// What each item got, in the order in which results came.
struct Results {
  std::vector<int> order;
  std::vector<Result<std::vector<HostTensor>>> of;
};
Results run_all(Pipeline& pipeline, const Work& work) {
  Results results;
  for (size_t i = 0; i < work.items.size(); ++i)
    EXPECT_TRUE(pipeline
                    .submit(work.items[i],
                            [&results, i](Pipeline::Outputs outputs) {
                              results.order.push_back(static_cast<int>(i));
                              results.of.push_back(std::move(outputs));
                            })
                    .ok());
  pipeline.close();
  return results;
}
void expect_all_right(const Results& results, const Work& work) {
  ASSERT_EQ(results.order.size(), work.items.size());
  for (size_t i = 0; i < work.items.size(); ++i) {
    EXPECT_EQ(results.order[i], static_cast<int>(i));
    ASSERT_TRUE(results.of[i].ok()) << results.of[i].error().message;
    EXPECT_TRUE(same(*results.of[i], work.wanted[i])) << i;
  }
}

TEST(Pipeline, GivesEachItemItsResultInOrder) {
  for (const int depth : {1, 2, 5}) {
    for (const auto& backend : {cpu(), std::static_pointer_cast<Backend>(std::make_shared<SlowBackend>())}) {
      const auto session = open(backend);
      const Work work = work_for(*session, 12);
      Pipeline pipeline(session, {depth, 0, {}});
      expect_all_right(run_all(pipeline, work), work);
      EXPECT_EQ(pipeline.times().items, 12u);
      EXPECT_EQ(pipeline.times().failed, 0u);
    }
  }
}

TEST(Pipeline, FuturesAndErrorsBelongToTheirItems) {
  const auto session = open(std::make_shared<SlowBackend>());
  const Work work = work_for(*session, 3);
  Pipeline pipeline(session, {});
  std::vector<std::future<Pipeline::Outputs>> futures;
  for (int i = 0; i < 9; ++i) {
    auto inputs = work.items[static_cast<size_t>(i / 3)];
    if (i % 3 == 1) inputs[0] = HostTensor::zeros(DType::f64, {1, 2});
    if (i % 3 == 2) inputs[0].bytes = nullptr;
    auto future = pipeline.submit(std::move(inputs));
    ASSERT_TRUE(future.ok());
    futures.push_back(std::move(*future));
  }
  for (int i = 0; i < 9; ++i) {
    auto outputs = futures[static_cast<size_t>(i)].get();
    if (i % 3 == 0) {
      ASSERT_TRUE(outputs.ok()) << outputs.error().message;
      EXPECT_TRUE(same(*outputs, work.wanted[static_cast<size_t>(i / 3)]));
    } else {
      ASSERT_FALSE(outputs.ok());
      EXPECT_EQ(outputs.error().reason, Reason::bad_input) << outputs.error().message;
    }
  }
  pipeline.close();
  EXPECT_EQ(pipeline.submit(work.items[0], {}).error().reason, Reason::bad_usage);
  EXPECT_EQ(pipeline.times().failed, 6u);
}

TEST(Pipeline, IsFullAtSomePointAndTakesItemsAgain) {
  const auto backend = std::make_shared<SlowBackend>();
  const auto session = open(backend);
  const Work work = work_for(*session, 1);
  backend->hold();  // nothing completes
  std::atomic<int> done{0};
  Pipeline pipeline(session, {2, 3, {}});
  const auto offer = [&] {
    auto inputs = work.items[0];
    auto taken = pipeline.try_submit(inputs, [&](Pipeline::Outputs outputs) { done += outputs.ok(); });
    EXPECT_TRUE(taken.ok());
    EXPECT_EQ(inputs.empty(), *taken);  // what was not taken is as it was
    return *taken;
  };
  int taken = 0;
  // Two are with the device, one may be in the feeder's hands, three wait.
  for (int i = 0; i < 200 && taken < 6; ++i)
    if (offer()) ++taken;
    else std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GE(taken, 5);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  while (taken < 6 && offer()) ++taken;
  EXPECT_FALSE(offer());
  EXPECT_EQ(done, 0);
  backend->release();
  pipeline.close();
  EXPECT_EQ(done, taken);
}

// The next item is handed over while the device still computes the one before.
TEST(Pipeline, TheDeviceHasSeveralItemsAtOnce) {
  const auto backend = std::make_shared<SlowBackend>();
  const auto session = open(backend);
  const Work work = work_for(*session, 8);
  backend->hold();
  Pipeline pipeline(session, {3, 0, {}});
  std::vector<std::future<Pipeline::Outputs>> futures;
  for (int i = 0; i < 3; ++i) futures.push_back(std::move(*pipeline.submit(work.items[static_cast<size_t>(i)])));
  for (int i = 0; i < 2000 && backend->under_way() < 3; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(backend->under_way(), 3);
  backend->release();
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(same(*futures[i].get(), work.wanted[i]));
}

TEST(Pipeline, FaultsLoseNothingAndChangeNothing) {
  const auto right = open(cpu());
  const Work work = work_for(*right, 10);
  // A fault at each of the calls that ten items make, one after another.
  for (const Reason reason : {Reason::device_lost, Reason::out_of_memory}) {
    for (int at = 0; at < 40; ++at) {
      SCOPED_TRACE(std::string(reason == Reason::device_lost ? "lost" : "out of memory") + " at call " + std::to_string(at));
      const auto backend = std::make_shared<SlowBackend>();
      const auto session = open(backend);
      ASSERT_TRUE(session->prepare(work.items[0]).ok());
      backend->fail_at(at, reason);
      int recoveries = 0;
      PipelineOptions options;
      options.recover = [&](const Error&) -> Status {
        // Once: who comes later finds the session moved.
        if (session->backend() != backend) return ok();
        ++recoveries;
        return session->move_to(cpu());
      };
      Pipeline pipeline(session, options);
      const Results results = run_all(pipeline, work);
      ASSERT_EQ(results.order.size(), work.items.size());
      for (size_t i = 0; i < work.items.size(); ++i) {
        EXPECT_EQ(results.order[i], static_cast<int>(i));
        ASSERT_TRUE(results.of[i].ok()) << i << ": " << results.of[i].error().message;
        EXPECT_EQ((*results.of[i])[0].shape, work.wanted[i][0].shape);
        for (int64_t e = 0; e < work.wanted[i][0].elements(); ++e)
          ASSERT_NEAR((*results.of[i])[0].data<float>()[e], work.wanted[i][0].data<float>()[e], 1e-3) << i;
      }
      EXPECT_EQ(recoveries, backend->failed() ? 1 : 0);
    }
  }
}

// The session goes to another device between an item's upload, which is still under way, and its run.
TEST(Pipeline, BuffersOutliveAnUploadThatASessionMovesAwayFrom) {
  const auto backend = std::make_shared<SlowBackend>();
  const auto session = open(backend);
  const Work work = work_for(*session, 3);
  Pipeline pipeline(session, {1, 0, {}});
  backend->hold();
  backend->at_copy([&] { ASSERT_TRUE(session->move_to(cpu()).ok()); });
  std::vector<std::future<Pipeline::Outputs>> futures;
  for (const auto& inputs : work.items) futures.push_back(std::move(*pipeline.submit(inputs)));
  // An item that did not wait for its upload would be done by now, its buffers freed.
  (void)futures[0].wait_for(std::chrono::milliseconds(50));
  backend->release();
  for (size_t i = 0; i < futures.size(); ++i) {
    const auto outputs = futures[i].get();
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    for (int64_t e = 0; e < work.wanted[i][0].elements(); ++e)
      ASSERT_NEAR((*outputs)[0].data<float>()[e], work.wanted[i][0].data<float>()[e], 1e-3) << i;
  }
  pipeline.close();
  EXPECT_FALSE(backend->touched_freed());
}

// Without a word of the caller's but that it may: the pipeline asks the session.
TEST(Pipeline, GoesOnWithTheNextDeviceOfItsSession) {
  const auto right = open(cpu());
  const Work work = work_for(*right, 6);
  for (const int at : {0, 3, 7, 12}) {
    const auto backend = std::make_shared<SlowBackend>();
    SessionOptions options;
    int asked = 0;
    options.next_device = [&](const Error&) -> Result<std::shared_ptr<Backend>> { return ++asked, cpu(); };
    auto opened =
        Session::open(std::move(*zoo_network("tiny_chain")), backend, options, [] { return zoo_network("tiny_chain"); });
    ASSERT_TRUE(opened.ok());
    const std::shared_ptr<Session> session(std::move(*opened));
    ASSERT_TRUE(session->prepare(work.items[0]).ok());
    backend->fail_at(at, Reason::device_lost);
    Pipeline pipeline(session, {});
    const Results results = run_all(pipeline, work);
    ASSERT_EQ(results.of.size(), work.items.size());
    for (const auto& result : results.of) EXPECT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(asked, 1);
    ASSERT_EQ(session->events().size(), 1u);
    EXPECT_EQ(session->events().at(0)->reason, Reason::device_lost);
  }
}

TEST(Pipeline, WithoutRecoveryErrorsStay) {
  const auto backend = std::make_shared<SlowBackend>();
  const auto session = open(backend);
  const Work work = work_for(*session, 4);
  backend->fail_at(0, Reason::device_lost);
  Pipeline pipeline(session, {});
  const Results results = run_all(pipeline, work);
  ASSERT_EQ(results.of.size(), 4u);
  for (const auto& result : results.of) EXPECT_EQ(result.error().reason, Reason::device_lost);
}

}  // namespace
}  // namespace sparkle
