// The table of docs/nan_and_infinity.md on a Vulkan device.
#include <gtest/gtest.h>

#include "backends/vulkan/vulkan_testing.h"
#include "run/edge_cases_testing.h"
#include "run/session.h"

namespace sparkle {
namespace {

TEST(VulkanNonfinite, EveryFamilyKeepsTheTable) {
  vulkan::ContextOptions options;
  options.cache = false;
  std::string why;
  const std::shared_ptr<Backend> backend = vulkan::test_backend(options, why);
  if (!backend) GTEST_SKIP() << why;
  int refused = 0;
  for (const testing::EdgeCase& edge : testing::edge_cases()) {
    auto session = Session::open(edge.graph, backend, {});
    ASSERT_TRUE(session.ok()) << edge.name << ": " << session.error().message;
    auto got = (*session)->run(edge.inputs);
    if (!got.ok() && got.error().reason == Reason::type_not_served) {
      std::printf("SKIP: %s: %s\n", edge.name.c_str(), got.error().message.c_str());
      ++refused;
      continue;
    }
    ASSERT_TRUE(got.ok()) << edge.name << ": " << got.error().message;
    EXPECT_EQ(testing::edge_difference(edge, (*got)[0]), "");
  }
  EXPECT_LT(refused, 4) << "most of the table needs f32 alone";
}

}  // namespace
}  // namespace sparkle
