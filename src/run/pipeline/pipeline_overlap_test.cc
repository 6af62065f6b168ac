// What goes on at once in a pipeline, by the order of begins and ends alone: a device that computes an item comes to no end
// before the next item is there, the one before is back, and those behind are read. Without overlap none would come to an end.
#include <gtest/gtest.h>

#include <set>

#include "run/pipeline/ordered_work.h"
#include "run/pipeline/pipelines_testing.h"
#include "run/pipeline/two_queues_testing.h"

namespace sparkle {
namespace {

using testing::DeviceEvents;
using testing::DevicePiece;
using testing::has_ended;
using testing::open_tiny;
using testing::place_of;
using testing::TwoQueues;
using testing::work_for;

constexpr int kItems = 10;  // as many as wait in a pipeline: none has to be handed to it while the device waits

// Of each item: the next was uploaded, and the one before downloaded, while it was computed.
void expect_overlap(const DeviceEvents& events, int items) {
  for (int i = 0; i < items; ++i) {
    SCOPED_TRACE(i);
    const size_t begin = place_of(events, DevicePiece::compute, i, false),
                 end = place_of(events, DevicePiece::compute, i, true);
    ASSERT_LT(end, events.size());
    if (i + 1 < items) {
      EXPECT_LT(place_of(events, DevicePiece::upload, i + 1, true), end);
    }
    if (i == 0) continue;
    EXPECT_LT(place_of(events, DevicePiece::download, i - 1, true), end);
    EXPECT_LT(place_of(events, DevicePiece::compute, i - 1, true), begin);
    EXPECT_LT(place_of(events, DevicePiece::upload, i, true), begin);
  }
}

TEST(PipelineOverlap, TheNextComesAndTheOneBeforeGoesWhileAnItemIsComputed) {
  for (const int depth : {2, 3, 5}) {
    SCOPED_TRACE(depth);
    const auto backend = std::make_shared<TwoQueues>();
    const auto session = open_tiny(backend);
    const auto work = work_for(*session, kItems);
    backend->watch([](const DeviceEvents& events, DevicePiece piece, int item) {
      return piece != DevicePiece::compute || ((item + 1 == kItems || has_ended(events, DevicePiece::upload, item + 1)) &&
                                               (item == 0 || has_ended(events, DevicePiece::download, item - 1)));
    });
    testing::PipelineResults results;
    Pipeline pipeline(session, {depth, kItems, {}});
    for (int i = 0; i < kItems; ++i)
      ASSERT_TRUE(pipeline
                      .submit(work.items[static_cast<size_t>(i)],
                              [&results, i](Pipeline::Outputs outputs) {
                                results.order.push_back(i);
                                results.of.push_back(std::move(outputs));
                              })
                      .ok());
    backend->open();
    pipeline.close();
    EXPECT_FALSE(backend->late());
    results.expect_in_order(kItems);
    for (size_t i = 0; i < kItems; ++i) {
      ASSERT_TRUE(results.of[i].ok()) << results.of[i].error().message;
      EXPECT_TRUE(same_bytes(*results.of[i], work.wanted[i])) << i;
    }
    expect_overlap(backend->events(), kItems);
  }
}

// A lone item, and the last of many, wait for nobody.
TEST(PipelineOverlap, AnItemWithoutANextOneComesBack) {
  for (const int depth : {1, 3}) {
    const auto backend = std::make_shared<TwoQueues>();
    const auto session = open_tiny(backend);
    const auto work = work_for(*session, 4);
    Pipeline pipeline(session, {depth, 0, {}});
    for (size_t i = 0; i < work.items.size(); ++i) {
      auto future = pipeline.submit(work.items[i]);
      ASSERT_TRUE(future.ok());
      ASSERT_EQ(future->wait_for(TwoQueues::kLongest), std::future_status::ready) << i;
      const auto outputs = future->get();
      ASSERT_TRUE(outputs.ok()) << outputs.error().message;
      EXPECT_TRUE(same_bytes(*outputs, work.wanted[i])) << i;
    }
  }
}

// As a stream of files has it: items are read by threads of their own while the device computes those before.
TEST(PipelineOverlap, ItemsAreReadWhileOthersAreComputed) {
  constexpr int kAhead = 4;
  const auto backend = std::make_shared<TwoQueues>();
  const auto session = open_tiny(backend);
  const auto work = work_for(*session, kItems);
  std::mutex mutex;
  std::set<int64_t> read;
  backend->watch([&](const DeviceEvents&, DevicePiece piece, int item) {
    const std::lock_guard lock(mutex);
    for (int64_t next = item + 1; next < std::min(kItems, item + 1 + kAhead); ++next)
      if (piece == DevicePiece::compute && !read.contains(next)) return false;
    return true;
  });
  backend->open();
  OrderedWork<std::vector<HostTensor>> reader(0, kItems, 2, 2 * kAhead, [&](int64_t i) {
    // The first of them take until the device has begun to compute.
    while (i > 1 && backend->events().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    {
      const std::lock_guard lock(mutex);
      read.insert(i);
    }
    backend->look_again();
    return work.items[static_cast<size_t>(i)];
  });
  std::vector<std::future<Pipeline::Outputs>> futures;
  Pipeline pipeline(session, {3, 2, {}});
  for (int i = 0; i < kItems; ++i) {
    auto future = pipeline.submit(reader.take());
    ASSERT_TRUE(future.ok());
    futures.push_back(std::move(*future));
  }
  for (size_t i = 0; i < kItems; ++i) {
    const auto outputs = futures[i].get();
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    EXPECT_TRUE(same_bytes(*outputs, work.wanted[i])) << i;
  }
  EXPECT_FALSE(backend->late());
}

}  // namespace
}  // namespace sparkle
