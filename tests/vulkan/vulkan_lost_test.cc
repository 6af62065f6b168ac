// A Vulkan device that is lost or out of memory: errors of the run, and the same session goes on where its caller moves it.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <thread>

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "backends/vulkan/vulkan_testing.h"
#include "base/folder_testing.h"
#include "device/probe_cpu.h"
#include "networks/zoo.h"
#include "prepare/compile_model.h"
#include "run/opening/open_model.h"
#include "run/session_testing.h"

namespace sparkle {
namespace {

using vulkan::ContextOptions;
using vulkan::VulkanBackend;

constexpr const char* kNetwork = "tiny_chain";

std::shared_ptr<Backend> cpu() { return cpu::make_cpu_backend(probe_cpu(), std::make_shared<ThreadPool>(2)); }

void expect_numbers(Session& session, const char* what) {
  const auto inputs = testing::random_inputs(session);
  const auto wanted =
      std::move(*(*Session::open(std::move(*zoo_network(kNetwork)), make_reference_backend(), {}))->run(inputs));
  const auto got = session.run(inputs);
  ASSERT_TRUE(got.ok()) << what << ": " << got.error().message;
  for (size_t o = 0; o < wanted.size(); ++o) {
    float largest = 1e-20f;
    for (int64_t i = 0; i < wanted[o].elements(); ++i) largest = std::max(largest, std::abs(wanted[o].data<float>()[i]));
    for (int64_t i = 0; i < wanted[o].elements(); ++i)
      ASSERT_LE(std::abs((*got)[o].data<float>()[i] - wanted[o].data<float>()[i]), 1e-4f * largest) << what << " at " << i;
  }
}

// Runs until one fails.
Error first_failure(Session& session) {
  const auto inputs = testing::random_inputs(session);
  for (int i = 0; i < 20; ++i)
    if (const auto got = session.run(inputs); !got.ok()) return got.error();
  return {Reason::none, "no run has failed"};
}

class VulkanLost : public testing::FolderTest {
 protected:
  std::shared_ptr<VulkanBackend> backend(int lost_at_submit = 0, int64_t memory_bytes = 0,
                                         VkResult says = VK_ERROR_DEVICE_LOST) {
    ContextOptions options;
    options.cache = options.try_first = false;
    return vulkan::test_backend(options, why_,
                                {.memory_bytes = memory_bytes, .lost_at_submit = lost_at_submit, .submit_says = says});
  }
  std::string why_;
};

#define SPARKLE_OPENED(name, ...)         \
  auto name = this->backend(__VA_ARGS__); \
  if (!name) GTEST_SKIP() << why_

// Lost while weights go up, and later in some run: the model is in memory alone, the device's copy of its weights is gone.
TEST_F(VulkanLost, SessionsGoOnOnTheCpu) {
  for (const int at : {1, 7, 12}) {
    SPARKLE_OPENED(device, at);
    auto session = std::move(*Session::open(std::move(*zoo_network(kNetwork)), device, {}));
    const std::weak_ptr<Backend> gone = device;
    device.reset();
    const auto inputs = testing::random_inputs(*session);
    const Error failed = first_failure(*session);
    ASSERT_EQ(failed.reason, Reason::device_lost) << failed.message;
    EXPECT_EQ(session->run(inputs).error().reason, Reason::device_lost);  // no fallback of its own
    const Status moved = session->move_to(cpu());
    ASSERT_TRUE(moved.ok()) << moved.error().message;
    EXPECT_TRUE(gone.expired());
    for (int i = 0; i < 2; ++i) expect_numbers(*session, "after a lost device");
  }
}

// A driver that refuses what it is given from some submission on: the session goes to the next device within the run.
TEST_F(VulkanLost, AWrongDriverGivesWayWhereItMay) {
  for (const VkResult says : {VK_ERROR_UNKNOWN, VK_ERROR_INCOMPATIBLE_DRIVER}) {
    for (const int at : {1, 2, 7, 12}) {
      SPARKLE_OPENED(device, at, 0, says);
      SessionOptions options;
      options.next_device = [](const Error&) -> Result<std::shared_ptr<Backend>> { return cpu(); };
      auto session = std::move(*Session::open(std::move(*zoo_network(kNetwork)), device, options));
      for (int i = 0; i < 12; ++i) expect_numbers(*session, "by a wrong driver");
      ASSERT_EQ(session->events().size(), 1u) << at;
      EXPECT_EQ(session->events().at(0)->what, "device");
      EXPECT_EQ(session->events().at(0)->reason, Reason::device_unusable);
      EXPECT_NE(session->backend(), device);
    }
  }
}

TEST_F(VulkanLost, OutOfMemoryIsAnErrorAndSessionsGoOn) {
  int refused = 0;
  for (const int64_t bytes : {int64_t{1} << 10, int64_t{1} << 12, int64_t{1} << 14}) {
    SPARKLE_OPENED(device, 0, bytes);
    auto session = std::move(*Session::open(std::move(*zoo_network(kNetwork)), device, {}));
    const auto got = session->run(testing::random_inputs(*session));
    if (got.ok()) continue;  // enough for this network
    ++refused;
    EXPECT_EQ(got.error().reason, Reason::out_of_memory) << got.error().message;
    const Status moved = session->move_to(cpu());
    ASSERT_TRUE(moved.ok()) << moved.error().message;
    expect_numbers(*session, "after out of memory");
  }
  EXPECT_GT(refused, 0);
}

TEST_F(VulkanLost, RunsOfOtherThreadsAreErrorsOrRight) {
  SPARKLE_OPENED(device, 25);
  auto session = std::move(*Session::open(std::move(*zoo_network(kNetwork)), device, {}));
  device.reset();
  const auto inputs = testing::random_inputs(*session);
  std::atomic<int> lost{0}, other{0}, good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000 && good < 60; ++i) {
        const auto got = session->run(inputs);
        if (got.ok()) ++good;
        else if (got.error().reason == Reason::device_lost) ++lost;
        else ++other;
        if (!got.ok()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  while (lost == 0 && good < 60) std::this_thread::yield();
  EXPECT_TRUE(session->move_to(cpu()).ok());
  for (std::thread& t : threads) t.join();
  EXPECT_GT(lost, 0);
  EXPECT_EQ(other, 0);
  EXPECT_GE(good, 60);
  expect_numbers(*session, "after a lost device");
}

// A file compiled for the device goes to that device opened again, and nowhere else.
TEST_F(VulkanLost, CompiledModelsGoToTheDeviceOpenedAgain) {
  SPARKLE_OPENED(device, 7);
  const Graph graph = std::move(*zoo_network(kNetwork));
  const auto compiled = compile_model(graph, device, {}, {graph.tensor(graph.inputs[0]).shape}, path("model.sparkle"));
  ASSERT_TRUE(compiled.ok()) << compiled.error().message;
  auto session = std::move(*open_session(std::move(*read_model(path("model.sparkle"))), device, {}));
  std::filesystem::remove(path("model.sparkle"));  // it stays mapped
  const auto inputs = testing::random_inputs(*session);
  const Error failed = first_failure(*session);
  ASSERT_EQ(failed.reason, Reason::device_lost) << failed.message;
  const Status elsewhere = session->move_to(cpu());
  ASSERT_FALSE(elsewhere.ok());
  EXPECT_EQ(elsewhere.error().reason, Reason::device_unusable);
  EXPECT_EQ(session->run(inputs).error().reason, Reason::device_lost);
  SPARKLE_OPENED(again);
  const Status moved = session->move_to(again);
  ASSERT_TRUE(moved.ok()) << moved.error().message;
  expect_numbers(*session, "on the device opened again");
}

}  // namespace
}  // namespace sparkle
