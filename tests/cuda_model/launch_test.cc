// What launches in the model do before any matrix is multiplied: all threads run, memory is checked, hangs and races are told.
#include <gtest/gtest.h>

#include "backends/cuda/kernels/fill_record.h"
#include "cuda_model/model.h"

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

}  // namespace
}  // namespace cuda_model
