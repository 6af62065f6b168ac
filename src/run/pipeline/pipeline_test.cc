// Items through a pipeline: in order, each with its own result or error, none lost or doubled, whatever fails and whenever it
// is closed.
#include "run/pipeline/pipeline.h"

#include <gtest/gtest.h>

#include <atomic>

#include "run/pipeline/pipelines_testing.h"
#include "run/pipeline/slow_backend_testing.h"

namespace sparkle {
namespace {

using testing::run_all;
using testing::SlowBackend;
using testing::work_for;
using Results = testing::PipelineResults;
using Work = testing::PipelineWork;
constexpr auto same = same_bytes;

std::shared_ptr<Session> open(std::shared_ptr<Backend> backend) { return testing::open_tiny(std::move(backend)); }
std::shared_ptr<Backend> cpu() { return testing::two_threads(); }
void expect_all_right(const Results& results, const Work& work) {
  results.expect_in_order(work.items.size());
  ASSERT_EQ(results.of.size(), work.items.size());
  for (size_t i = 0; i < work.items.size(); ++i) {
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

// Ten items through a pipeline whose session goes to the CPU where the device fails: all right, whatever call fails.
void expect_right_despite_a_fault(const std::shared_ptr<SlowBackend>& backend, const std::shared_ptr<Session>& session,
                                  const Work& work) {
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
  results.expect_in_order(work.items.size());
  ASSERT_EQ(results.of.size(), work.items.size());
  for (size_t i = 0; i < work.items.size(); ++i) {
    ASSERT_TRUE(results.of[i].ok()) << i << ": " << results.of[i].error().message;
    EXPECT_TRUE(testing::nearly_same(*results.of[i], work.wanted[i])) << i;
  }
  EXPECT_EQ(recoveries, backend->failed() ? 1 : 0);
}

TEST(Pipeline, FaultsLoseNothingAndChangeNothing) {
  const auto right = open(cpu());
  const Work work = work_for(*right, 10);
  // A fault at each of the calls that ten items make, one after another.
  for (const Reason reason : {Reason::device_lost, Reason::out_of_memory, Reason::device_unusable}) {
    for (int at = 0; at < 40; ++at) {
      SCOPED_TRACE(std::string(code_of(reason)) + " at call " + std::to_string(at));
      const auto backend = std::make_shared<SlowBackend>();
      const auto session = open(backend);
      ASSERT_TRUE(session->prepare(work.items[0]).ok());
      backend->fail_at(at, reason);
      expect_right_despite_a_fault(backend, session, work);
    }
  }
}

// What a step has to say of its data is told to who waits for it: not to who waits for the copy behind it.
TEST(Pipeline, AnIndexThatIsNoneIsItsItemsError) {
  const Work work = work_for(*open(cpu()), 6);
  const auto backend = std::make_shared<SlowBackend>();
  const auto session = open(backend);
  ASSERT_TRUE(session->prepare(work.items[0]).ok());
  backend->find_bad_index_at(2);
  Pipeline pipeline(session, {});
  const Results results = run_all(pipeline, work);
  results.expect_in_order(work.items.size());
  for (size_t i = 0; i < work.items.size(); ++i) {
    EXPECT_EQ(results.of[i].ok(), i != 2) << i;
    if (results.of[i].ok()) {
      EXPECT_TRUE(testing::nearly_same(*results.of[i], work.wanted[i])) << i;
    } else {
      EXPECT_EQ(results.of[i].error().message, "Index 9 is none.");
    }
  }
}

// The driver is another one than the device was opened with: from some call on it refuses everything. The calls are all of
// them, from the first kernel that is compiled to the last item that comes back.
TEST(Pipeline, AWrongDriverAtAnyCallLosesNothing) {
  const auto right = open(cpu());
  const Work work = work_for(*right, 4);
  bool failed = true;
  int at = 0;
  for (; failed && at < 500; ++at) {
    SCOPED_TRACE("at call " + std::to_string(at));
    const auto backend = std::make_shared<SlowBackend>();
    const auto session = open(backend);
    backend->fail_at(at, Reason::device_unusable);
    expect_right_despite_a_fault(backend, session, work);
    failed = backend->failed();
  }
  EXPECT_FALSE(failed);
  EXPECT_GT(at, 30);
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
  for (const auto& [at, reason] : {std::pair(0, Reason::device_lost), std::pair(3, Reason::device_unusable),
                                   std::pair(7, Reason::device_lost), std::pair(12, Reason::device_unusable)}) {
    const auto backend = std::make_shared<SlowBackend>();
    SessionOptions options;
    int asked = 0;
    options.next_device = [&](const Error&) -> Result<std::shared_ptr<Backend>> { return ++asked, cpu(); };
    auto opened =
        Session::open(std::move(*zoo_network("tiny_chain")), backend, options, [] { return zoo_network("tiny_chain"); });
    ASSERT_TRUE(opened.ok());
    const std::shared_ptr<Session> session(std::move(*opened));
    ASSERT_TRUE(session->prepare(work.items[0]).ok());
    backend->fail_at(at, reason);
    Pipeline pipeline(session, {});
    const Results results = run_all(pipeline, work);
    ASSERT_EQ(results.of.size(), work.items.size());
    for (const auto& result : results.of) EXPECT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(asked, 1);
    ASSERT_EQ(session->events().size(), 1u);
    EXPECT_EQ(session->events().at(0)->reason, reason);
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
