// A pipeline on a Vulkan device that a test holds still: computing an item comes to no end before the driver was given the
// upload of the next one, and the one before is back with its caller. The driver's own queue is what is looked at, and no
// clock.
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>

#include "backends/vulkan/vulkan_testing.h"
#include "run/pipeline/pipelines_testing.h"

namespace sparkle {
namespace {

using testing::open_tiny;
using testing::work_for;
using vulkan::ContextOptions;
using vulkan::VulkanBackend;

enum class Piece : uint8_t { upload, compute, download };
constexpr std::chrono::seconds kLongest{30};

// What stands between the backend and its driver: submissions are recorded in their order, and the n-th that computes waits for
// a gate to be opened n times.
struct Gate {
  VolkDeviceTable real;
  VkDevice device = VK_NULL_HANDLE;
  VkSemaphore gate = VK_NULL_HANDLE, copies = VK_NULL_HANDLE;  // the latter counts what is copied
  std::mutex mutex;                                            // of all below
  std::condition_variable changed;
  std::vector<Piece> pieces;
  bool learns = false, begun = true;  // begun: until then nothing is handed to the driver
  uint64_t computes = 0;

  // Whether so many of a kind come to the driver within the time.
  bool come(Piece piece, int64_t count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kLongest, [&] { return std::count(pieces.begin(), pieces.end(), piece) >= count; });
  }
  void open(uint64_t times) {
    VkSemaphoreSignalInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO;
    info.semaphore = gate, info.value = times;
    EXPECT_EQ(real.vkSignalSemaphore(device, &info), VK_SUCCESS);
  }
};
Gate* the_gate = nullptr;  // the driver's functions have no word for it

VKAPI_ATTR VkResult VKAPI_CALL gated_submit(VkQueue queue, uint32_t count, const VkSubmitInfo2* infos, VkFence fence) {
  Gate& gate = *the_gate;
  const VkSubmitInfo2& info = infos[0];
  std::unique_lock lock(gate.mutex);
  gate.changed.wait_for(lock, kLongest, [&] { return gate.begun; });
  const VkSemaphore signalled = info.pSignalSemaphoreInfos[0].semaphore;
  if (gate.learns) gate.copies = signalled;
  const bool copies = signalled == gate.copies;
  gate.pieces.push_back(!copies ? Piece::compute : info.waitSemaphoreInfoCount > 0 ? Piece::download : Piece::upload);
  gate.changed.notify_all();
  if (copies || !gate.gate) {
    lock.unlock();
    return gate.real.vkQueueSubmit2(queue, count, infos, fence);
  }
  std::vector<VkSemaphoreSubmitInfo> waits(info.pWaitSemaphoreInfos, info.pWaitSemaphoreInfos + info.waitSemaphoreInfoCount);
  VkSemaphoreSubmitInfo wait{};
  wait.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO;
  wait.semaphore = gate.gate, wait.value = ++gate.computes, wait.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  waits.push_back(wait);
  VkSubmitInfo2 held = info;
  held.waitSemaphoreInfoCount = static_cast<uint32_t>(waits.size()), held.pWaitSemaphoreInfos = waits.data();
  lock.unlock();
  return gate.real.vkQueueSubmit2(queue, 1, &held, fence);
}

TEST(VulkanOverlap, TheNextComesAndTheOneBeforeGoesWhileAnItemIsComputed) {
  constexpr int kItems = 8;
  ContextOptions options;
  options.cache = options.try_first = false;
  options.force_staging = options.two_queues = true;  // as cards of their own are
  std::string why;
  const std::shared_ptr<VulkanBackend> backend = vulkan::test_backend(options, why);
  if (!backend) GTEST_SKIP() << why;
  Gate gate;
  the_gate = &gate;
  auto& table = const_cast<VolkDeviceTable&>(backend->context().vk());
  gate.real = table, gate.device = backend->context().device();
  const auto session = open_tiny(backend);
  const auto work = work_for(*session, kItems);  // weights are there, and kernels compiled
  table.vkQueueSubmit2 = gated_submit;
  gate.learns = true;
  float value = 0;
  vulkan::uploaded(*backend, &value, sizeof value);
  {
    const std::lock_guard lock(gate.mutex);
    gate.learns = gate.begun = false, gate.pieces.clear();
  }
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, info.pNext = &type;
  ASSERT_EQ(gate.real.vkCreateSemaphore(gate.device, &info, nullptr, &gate.gate), VK_SUCCESS);

  std::vector<std::future<Pipeline::Outputs>> futures;
  bool overlaps = true;
  {
    Pipeline pipeline(session, {3, kItems, {}});
    for (const auto& item : work.items) futures.push_back(std::move(*pipeline.submit(item)));
    {
      const std::lock_guard lock(gate.mutex);
      gate.begun = true;
    }
    gate.changed.notify_all();
    for (int i = 0; i < kItems && overlaps; ++i) {
      overlaps = gate.come(Piece::compute, i + 1) && gate.come(Piece::upload, std::min(i + 2, kItems)) &&
                 (i == 0 || futures[static_cast<size_t>(i - 1)].wait_for(kLongest) == std::future_status::ready);
      EXPECT_TRUE(overlaps) << "item " << i;
      gate.open(static_cast<uint64_t>(i + 1));
    }
    if (!overlaps) gate.open(kItems);
  }
  for (size_t i = 0; i < futures.size(); ++i) {
    const auto outputs = futures[i].get();
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    EXPECT_TRUE(same_bytes(*outputs, work.wanted[i])) << i;
  }
  // The queue for copies takes one after another: an upload behind a download that waits for its item would wait with it.
  std::vector<Piece> copies;
  for (const Piece piece : gate.pieces)
    if (piece != Piece::compute) copies.push_back(piece);
  ASSERT_EQ(copies.size(), 2u * kItems);
  for (int i = 0; i + 1 < kItems; ++i) {
    const auto nth = [&](Piece piece, int number) {
      size_t at = 0;
      for (int seen = 0; at < copies.size(); ++at)
        if (copies[at] == piece && seen++ == number) break;
      return at;
    };
    EXPECT_LT(nth(Piece::upload, i + 1), nth(Piece::download, i)) << i;
  }
  table.vkQueueSubmit2 = gate.real.vkQueueSubmit2;
  gate.real.vkDestroySemaphore(gate.device, gate.gate, nullptr);
}

}  // namespace
}  // namespace sparkle
