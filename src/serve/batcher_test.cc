// Requests through the batcher: each gets its own rows or its own error, whatever is put together, full, late or closed.
#include "serve/batcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <random>

#include "base/log.h"
#include "run/pipeline/slow_backend_testing.h"
#include "run/session_testing.h"
#include "serve/rows.h"
#include "serve/serve_testing.h"

namespace sparkle::serve {
namespace {

using ::sparkle::testing::open_rows;
using ::sparkle::testing::random_tensor;
using ::sparkle::testing::SlowBackend;
using namespace std::chrono_literals;

std::vector<HostTensor> request(int64_t rows, uint64_t seed) { return {random_tensor(DType::f32, {rows, 4}, seed)}; }

void expect_as_alone(Session& session, const std::vector<HostTensor>& inputs, const Outcome& outcome) {
  ASSERT_FALSE(outcome.refused) << outcome.refused->message;
  const auto alone = session.run(inputs);
  ASSERT_TRUE(alone.ok());
  EXPECT_TRUE(agree(*alone, outcome.outputs));
  EXPECT_EQ(outcome.outputs[0].shape, (*alone)[0].shape);
}

// Threads that each ask once; results in their order.
std::vector<Outcome> ask_all(Batcher& batcher, const std::vector<std::vector<HostTensor>>& requests,
                             const std::function<void()>& meanwhile = {}) {
  std::vector<Outcome> outcomes(requests.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < requests.size(); ++i) threads.emplace_back([&, i] { outcomes[i] = batcher.run(requests[i]); });
  if (meanwhile) meanwhile();
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

void wait_for(const std::function<bool()>& condition) {
  for (int i = 0; i < 60000 && !condition(); ++i) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(condition());
}

TEST(Batcher, EachRequestGetsItsRows) {
  const auto session = open_rows();
  for (const int64_t most : {1, 2, 5, 64}) {
    ModelMetrics metrics;
    Batcher batcher("m", session, {most, 2ms, 64}, metrics);
    std::vector<std::vector<HostTensor>> requests;
    std::mt19937 random(static_cast<unsigned>(most));
    for (uint64_t i = 0; i < 40; ++i) requests.push_back(request(1 + random() % 3, i + 1));
    const auto outcomes = ask_all(batcher, requests);
    for (size_t i = 0; i < requests.size(); ++i) expect_as_alone(*session, requests[i], outcomes[i]);
    EXPECT_EQ(metrics.batched_requests, 40u);
    if (most == 1) {
      EXPECT_EQ(metrics.batches, 40u);
    } else if (most == 64) {
      EXPECT_LT(metrics.batches, 40u);
    }
  }
}

TEST(Batcher, ABatchWaitsForOthersAndNoLonger) {
  const auto session = open_rows();
  ModelMetrics metrics;
  Batcher batcher("m", session, {3, 10min, 64}, metrics);
  ask_all(batcher, {request(1, 1), request(1, 2), request(1, 3)});  // full: does not wait ten minutes
  ask_all(batcher, {request(2, 4), request(1, 5)});
  EXPECT_EQ(metrics.batches, 2u);
  ModelMetrics few;
  Batcher impatient("m", session, {3, 20ms, 64}, few);
  const auto begin = Clock::now();
  expect_as_alone(*session, request(1, 9), impatient.run(request(1, 9)));
  EXPECT_GE(Clock::now() - begin, 20ms);
}

TEST(Batcher, ShapesThatDifferAreNotPutTogether) {
  // C is fixed, so the rows differ in what fits: more than there is room for runs alone.
  const auto session = open_rows();
  ModelMetrics metrics;
  Batcher batcher("m", session, {4, 1ms, 64}, metrics);
  const std::vector<std::vector<HostTensor>> requests = {request(9, 1), request(3, 2), request(3, 3), request(1, 4),
                                                         request(0, 5)};
  const auto outcomes = ask_all(batcher, requests);
  for (size_t i = 0; i < 4; ++i) expect_as_alone(*session, requests[i], outcomes[i]);
  EXPECT_TRUE(same_but_rows(requests[0], requests[1]));
  EXPECT_FALSE(same_but_rows(requests[0], {random_tensor(DType::f32, {3, 5}, 1)}));
  EXPECT_FALSE(same_but_rows(requests[0], {random_tensor(DType::i64, {3, 4}, 1)}));
  EXPECT_FALSE(same_but_rows(requests[0], {random_tensor(DType::f32, {3, 4, 1}, 1)}));
}

TEST(Batcher, ErrorsBelongToTheirRequests) {
  const auto session = open_rows();
  ModelMetrics metrics;
  Batcher batcher("m", session, {8, 20ms, 64}, metrics);
  std::vector<std::vector<HostTensor>> requests = {request(1, 1), {random_tensor(DType::f32, {1, 5}, 2)}, request(2, 3), {}};
  const auto outcomes = ask_all(batcher, requests);
  expect_as_alone(*session, requests[0], outcomes[0]);
  expect_as_alone(*session, requests[2], outcomes[2]);
  for (const size_t wrong : {1u, 3u}) {
    ASSERT_TRUE(outcomes[wrong].refused);
    EXPECT_EQ(outcomes[wrong].refused->failure, Failure::invalid);
  }
}

// A batch that fails on the device is run request by request, so those that can be answered are.
TEST(Batcher, ABatchThatFailsIsRunApart) {
  auto backend = std::make_shared<SlowBackend>();
  const auto session = open_rows(false, backend);
  ModelMetrics metrics;
  Batcher batcher("m", session, {8, 50ms, 64}, metrics);
  const std::vector<std::vector<HostTensor>> first = {request(1, 1), request(1, 2)};
  ask_all(batcher, first);  // the rows are tried
  for (int call = 0; call < 12; ++call) {
    backend->fail_at(call, Reason::out_of_memory);
    const auto outcomes = ask_all(batcher, first);
    int right = 0;
    for (size_t i = 0; i < 2; ++i) {
      if (outcomes[i].refused) EXPECT_EQ(outcomes[i].refused->failure, Failure::unavailable);
      else ++right;
    }
    backend->fail_at(-1, Reason::none);
    for (size_t i = 0; i < 2; ++i)
      if (!outcomes[i].refused) expect_as_alone(*session, first[i], outcomes[i]);
    EXPECT_GE(right, 1) << call;
  }
}

TEST(Batcher, RowsThatDependOnEachOtherRunApart) {
  static std::atomic<int> warned{0};
  set_log([](void*, LogLevel,
             const char* sentence) { warned += std::string(sentence).find("rows depend on each other") != std::string::npos; },
          nullptr);
  const auto session = open_rows(true);
  ModelMetrics metrics;
  Batcher batcher("m", session, {8, 20ms, 64}, metrics);
  std::vector<std::vector<HostTensor>> requests;
  for (uint64_t i = 0; i < 12; ++i) requests.push_back(request(1 + static_cast<int64_t>(i % 2), i + 1));
  for (int round = 0; round < 2; ++round) {
    const auto outcomes = ask_all(batcher, requests);
    for (size_t i = 0; i < requests.size(); ++i) expect_as_alone(*session, requests[i], outcomes[i]);
  }
  EXPECT_EQ(warned, 1);
  set_log(nullptr, nullptr);
  // Equal values tell nothing, so they decide nothing.
  const auto apart = open_rows();
  ModelMetrics equal;
  Batcher undecided("m", apart, {8, 20ms, 64}, equal);
  const std::vector<HostTensor> zeros{HostTensor::zeros(DType::f32, {1, 4})};
  for (const Outcome& outcome : ask_all(undecided, {zeros, zeros, zeros})) expect_as_alone(*apart, zeros, outcome);
  EXPECT_EQ(equal.batches, 3u);
}

TEST(Batcher, AFullQueueRefusesAtOnce) {
  auto backend = std::make_shared<SlowBackend>();
  const auto session = open_rows(false, backend);
  ASSERT_TRUE(session->run(request(1, 1)).ok());
  ModelMetrics metrics;
  Batcher batcher("m", session, {1, 0us, 2}, metrics);
  backend->hold();
  std::vector<std::vector<HostTensor>> requests;
  for (uint64_t i = 0; i < 24; ++i) requests.push_back(request(1, i + 1));
  std::vector<Outcome> outcomes(requests.size());
  std::vector<std::thread> threads;
  std::atomic<size_t> refused{0};
  // Three are on the device, one waits behind them, one is in the worker's hand, two wait.
  for (size_t i = 0; i < requests.size(); ++i) {
    threads.emplace_back([&, i] {
      outcomes[i] = batcher.run(requests[i]);
      refused += outcomes[i].refused.has_value();
    });
    if (i < 5) wait_for([&] { return metrics.batches == i + 1; });
    else if (i < 7) wait_for([&] { return batcher.waiting() == static_cast<int>(i) - 4; });
  }
  wait_for([&] { return refused == requests.size() - 7; });
  EXPECT_EQ(batcher.waiting(), 2);
  EXPECT_TRUE(batcher.full());
  backend->release();
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < requests.size(); ++i) {
    if (!outcomes[i].refused) expect_as_alone(*session, requests[i], outcomes[i]);
    else EXPECT_EQ(outcomes[i].refused->failure, Failure::queue_full);
  }
  EXPECT_EQ(refused, requests.size() - 7);
}

TEST(Batcher, WhatIsLateIsToldSoAndNotRun) {
  auto backend = std::make_shared<SlowBackend>();
  const auto session = open_rows(false, backend);
  ASSERT_TRUE(session->run(request(1, 1)).ok());
  ModelMetrics metrics;
  Batcher batcher("m", session, {1, 0us, 64}, metrics);
  backend->hold();
  std::vector<std::thread> busy;
  std::atomic<int> answered{0};
  for (int i = 0; i < 5; ++i) busy.emplace_back([&] { answered += !batcher.run(request(1, 3)).refused; });
  wait_for([&] { return metrics.batches == 5; });
  const auto begin = Clock::now();
  const Outcome late = batcher.run(request(1, 4), begin + 30ms);
  EXPECT_GE(Clock::now() - begin, 30ms);
  ASSERT_TRUE(late.refused);
  EXPECT_EQ(late.refused->failure, Failure::too_late);
  EXPECT_EQ(batcher.waiting(), 0);
  // One that is on the device already is answered so too, and leaves nothing behind.
  const Outcome never = batcher.run(request(1, 5), Clock::now() - 1s);
  ASSERT_TRUE(never.refused);
  backend->release();
  for (std::thread& thread : busy) thread.join();
  EXPECT_EQ(answered, 5);
  EXPECT_EQ(metrics.batched_requests, 5u);
  EXPECT_FALSE(batcher.run(request(1, 6), Clock::now() + 60s).refused);
}

TEST(Batcher, ClosingAnswersAllThatWait) {
  auto backend = std::make_shared<SlowBackend>();
  const auto session = open_rows(false, backend);
  ASSERT_TRUE(session->run(request(1, 1)).ok());
  ModelMetrics metrics;
  Batcher batcher("m", session, {1, 0us, 64}, metrics);
  backend->hold();
  std::vector<std::vector<HostTensor>> requests;
  for (uint64_t i = 0; i < 16; ++i) requests.push_back(request(1, i + 1));
  const auto outcomes = ask_all(batcher, requests, [&] {
    wait_for([&] { return metrics.batches == 5 && batcher.waiting() == 11; });  // all have come
    std::thread closing([&] { batcher.close(); });
    std::this_thread::sleep_for(5ms);
    backend->release();
    closing.join();
  });
  for (size_t i = 0; i < requests.size(); ++i) expect_as_alone(*session, requests[i], outcomes[i]);
  const Outcome after = batcher.run(request(1, 1));
  ASSERT_TRUE(after.refused);
  EXPECT_EQ(after.refused->failure, Failure::unavailable);
}

TEST(Batcher, AgreementIsOfTheTypesWidth) {
  const auto of = [](std::vector<float> values) {
    return std::vector<HostTensor>{HostTensor::of<float>(DType::f32, {3}, values)};
  };
  const float nan = std::nanf(""), inf = INFINITY;
  EXPECT_TRUE(agree(of({1, 2, 100}), of({1.01f, 2, 100})));
  EXPECT_FALSE(agree(of({1, 2, 100}), of({1.2f, 2, 100})));
  EXPECT_TRUE(agree(of({nan, inf, 1}), of({nan, inf, 1})));
  EXPECT_FALSE(agree(of({nan, inf, 1}), of({1, inf, 1})));
  EXPECT_FALSE(agree(of({1, inf, 1}), of({1, -inf, 1})));
  const std::vector<HostTensor> whole{HostTensor::of<int64_t>(DType::i64, {2}, {1, 2})};
  EXPECT_TRUE(agree(whole, whole));
  EXPECT_FALSE(agree(whole, {HostTensor::of<int64_t>(DType::i64, {2}, {1, 3})}));
  EXPECT_FALSE(agree(whole, {HostTensor::of<int64_t>(DType::i64, {1, 2}, {1, 2})}));
}

}  // namespace
}  // namespace sparkle::serve
