// Shaders with fragments get real element types; others stay as they are, and so does what is no shader.
#include "backends/vulkan/fragment_types.h"

#include <gtest/gtest.h>

#include "backends/vulkan/shaders.h"

namespace sparkle::vulkan {
namespace {

TEST(FragmentTypes, PlaceholdersBecomeTypesDeclaredBefore) {
  const Shader* shader = shader_named("gemm_cooperative");
  ASSERT_NE(shader, nullptr);
  const auto words = with_fragment_types(shader->words);
  ASSERT_EQ(words.size(), shader->words.size());  // instructions move, none is added
  uint32_t half = 0, single = 0;
  int fragments = 0;
  for (size_t at = 5; at < words.size(); at += words[at] >> 16) {
    ASSERT_GT(words[at] >> 16, 0u);
    const uint32_t opcode = words[at] & 0xffff;
    if (opcode == 22 && words[at + 2] == 16) half = words[at + 1];
    if (opcode == 22 && words[at + 2] == 32) single = words[at + 1];
    if (opcode != 4456) continue;
    ++fragments;
    ASSERT_NE(half, 0u);  // declared by now
    ASSERT_NE(single, 0u);
    EXPECT_TRUE(words[at + 2] == half || words[at + 2] == single);
  }
  EXPECT_EQ(fragments, 3);
}

TEST(FragmentTypes, OtherWordsStayAsTheyAre) {
  const Shader* shader = shader_named("gemm_tile");
  ASSERT_NE(shader, nullptr);
  EXPECT_EQ(with_fragment_types(shader->words), std::vector<uint32_t>(shader->words.begin(), shader->words.end()));
  const std::vector<uint32_t> broken{0x07230203, 0x10600, 0, 9, 0, 4456, 0x7f16};  // an instruction of no words
  EXPECT_EQ(with_fragment_types(broken), broken);
  EXPECT_TRUE(with_fragment_types({}).empty());
}

}  // namespace
}  // namespace sparkle::vulkan
