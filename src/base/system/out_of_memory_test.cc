// Memory that runs out, and sizes that overflow, come back as errors.
#include "base/system/out_of_memory.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "base/system/sanitized.h"

namespace sparkle {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST(OutOfMemory, BytesOfShapes) {
  EXPECT_EQ(tensor_bytes(DType::f32, {2, 3}), 24);
  EXPECT_EQ(tensor_bytes(DType::f32, {}), 4);
  EXPECT_EQ(tensor_bytes(DType::f32, {kMost, 0, kMost}), 0);
  EXPECT_EQ(tensor_bytes(DType::u8, {kMost}), kMost);
  EXPECT_EQ(tensor_bytes(DType::f32, {kMost}), std::nullopt);
  EXPECT_EQ(tensor_bytes(DType::f32, {int64_t{1} << 40, int64_t{1} << 40}), std::nullopt);
  EXPECT_EQ(tensor_bytes(DType::f32, {2, -1}), std::nullopt);
}

TEST(OutOfMemory, TensorsThatCannotBe) {
  const auto overflow = allocate_tensor(DType::f32, {int64_t{1} << 40, int64_t{1} << 40}, "Input 'x'");
  ASSERT_FALSE(overflow.ok());
  EXPECT_EQ(overflow.error().reason, Reason::size_overflow);
  EXPECT_EQ(overflow.error().message, "Input 'x' of shape 1099511627776x1099511627776 is more than can be addressed.");
  EXPECT_THROW((void)HostTensor::uninitialized(DType::f64, {kMost}), std::bad_alloc);
  if (kSanitized) GTEST_SKIP() << "sanitizers end the program where memory runs out";
  const auto large = allocate_tensor(DType::u8, {int64_t{1} << 60}, "Input 'x'");
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().reason, Reason::out_of_memory);
  EXPECT_NE(large.error().message.find("needs 1152921504606846976 bytes"), std::string::npos) << large.error().message;
}

TEST(OutOfMemory, TheGuardTurnsExceptionsIntoErrors) {
  const auto failing = guard_memory("The test", []() -> Status { throw std::bad_alloc(); });
  ASSERT_FALSE(failing.ok());
  EXPECT_EQ(failing.error().reason, Reason::out_of_memory);
  EXPECT_EQ(failing.error().message, "The test needs more memory than there is; give smaller inputs.");
  const auto too_long = guard_memory("The test", []() -> Result<size_t> {
    std::vector<double> values;
    values.reserve(values.max_size() + 1);
    return values.size();
  });
  ASSERT_FALSE(too_long.ok());
  EXPECT_EQ(*guard_memory("The test", []() -> Result<int> { return 3; }), 3);
}

}  // namespace
}  // namespace sparkle
