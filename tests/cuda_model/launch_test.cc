// What launches in the model do before any matrix is multiplied: all threads run, memory is checked, hangs and races are told.
#include <gtest/gtest.h>

#include "backends/cuda/kernels/fill_record.h"
#include "backends/cuda/ptx/memory.cuh"
#include "backends/cuda/ptx/threads.cuh"
#include "cuda_model/model.h"

using namespace sparkle::cuda;

// A kernel that does what it is told before it waits, or never waits.
SPARKLE_KERNEL_WITH_PROLOGUE(test_of_waiting, FillRecord, 32, 1) {
  if (record.value == 1) store_global(record.to, 1u);
  if (record.value == 2 && thread_id() == 7) return;
  wait_for_prerequisites();
  store_global(record.to + thread_id(), 3u);
}
SPARKLE_KERNEL(test_of_the_usual, FillRecord, 32, 1) { store_global(record.to + thread_id(), 4u); }

namespace cuda_model {
namespace {

TEST(CudaModelLaunch, FillsWords) {
  std::vector<uint32_t> words(1000, 7);
  const sparkle::cuda::FillRecord record{words.data() + 1, 998, 3};
  const Kernel* kernel = find_kernel("sparkle_fill_words");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->record_bytes, sizeof(record));
  EXPECT_EQ(launch(*kernel, {{3}, {256}, {}, 0, 5}, &record), "");
  EXPECT_EQ(words.front(), 7u);
  EXPECT_EQ(words.back(), 7u);
  for (size_t i = 1; i < 999; ++i) EXPECT_EQ(words[i], 3u);
}

TEST(CudaModelLaunch, StoresBehindMemoryAreFaults) {
  std::vector<uint32_t> words(100);
  allow_memory(words.data(), 99 * 4);
  const sparkle::cuda::FillRecord record{words.data(), 100, 3};
  const std::string error = launch(*find_kernel("sparkle_fill_words"), {{1}, {256}, {}, 0, 5}, &record);
  forget_memory(words.data());
  EXPECT_NE(error.find("thread 99 of block 0,0,0: st.global 4 bytes behind the end of memory"), std::string::npos) << error;
}

// What begins early finds device memory closed until it has waited; what does not is not asked to wait.
TEST(CudaModelLaunch, KernelsThatBeginEarlyWaitBeforeTheyTouchDeviceMemory) {
  uint32_t words[32] = {};
  const auto run = [&](const char* name, uint32_t how, bool early) {
    FillRecord record{words, 32, how};
    Launch of{{1}, {32}, {}, 0, 5};
    of.early = early;
    return launch(*find_kernel(name), of, &record);
  };
  EXPECT_EQ(run("test_of_waiting", 0, true), "");
  EXPECT_EQ(words[31], 3u);
  EXPECT_EQ(blocks_without_leave(), 1u);
  EXPECT_EQ(run("test_of_the_usual", 0, true), "");
  EXPECT_EQ(words[31], 4u);
  EXPECT_EQ(blocks_without_leave(), 0u);
  const std::string touches = run("test_of_waiting", 1, true), never = run("test_of_waiting", 2, true);
  EXPECT_NE(touches.find("st.global before griddepcontrol.wait"), std::string::npos) << touches;
  EXPECT_NE(never.find("thread 7 of block 0,0,0: ends without griddepcontrol.wait"), std::string::npos) << never;
  for (const uint32_t how : {1u, 2u}) EXPECT_EQ(run("test_of_waiting", how, false), "");
}

}  // namespace
}  // namespace cuda_model
