// Shaders with fragments get real element types; others stay as they are, and so does what is no shader.
#include "backends/vulkan/shaders/fragment_types.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "backends/vulkan/shaders/gemm_constants.h"
#include "backends/vulkan/shaders/shaders.h"

namespace sparkle::vulkan {
namespace {

// What the words say of their fragments, each id declared before it is used.
struct Declared {
  int fragments = 0, accesses = 0, shared = 0, barriers = 0;
  uint32_t scope = 0;
  std::set<std::string> extensions;
};
constexpr uint32_t kNonPrivate = 0x20;
Declared declared_by(std::span<const uint32_t> words) {
  Declared d;
  std::map<uint32_t, uint32_t> floats, constants, spec_ids, sizes;  // by id: width, value, SpecId, SpecId of what is declared
  for (size_t at = 5; at < words.size(); at += words[at] >> 16) {
    const auto w = words.subspan(at, words[at] >> 16);
    switch (words[at] & 0xffff) {
      case 10: d.extensions.insert(reinterpret_cast<const char*>(&w[1])); break;
      case 22: floats[w[1]] = w[2]; break;
      case 43: constants[w[2]] = w[3]; break;
      case 50: sizes[w[2]] = spec_ids[w[2]]; break;
      case 71:
        if (w[2] == 1) spec_ids[w[1]] = w[3];
        break;
      case 4456: {
        ++d.fragments;
        const uint32_t use = constants.at(w[6]);  // 0: left, 1: right, 2: sums
        EXPECT_EQ(floats[w[2]], use == 2 ? 32u : 16u);
        EXPECT_EQ(GemmConstant{sizes[w[4]]}, use == 1 ? GemmConstant::kFragmentK : GemmConstant::kFragmentM);  // rows
        EXPECT_EQ(GemmConstant{sizes[w[5]]}, use == 0 ? GemmConstant::kFragmentK : GemmConstant::kFragmentN);  // columns
        d.scope = constants.at(w[3]);
        break;
      }
      // Shared memory is read and written so that barriers order it, and only they: no access is private, none waits by itself.
      case 4457:
        ++d.accesses;
        EXPECT_EQ(w.size(), 7u);
        EXPECT_EQ(w[6], kNonPrivate);
        break;
      case 4458:
        ++d.accesses;
        EXPECT_EQ(w.size(), 6u);
        EXPECT_EQ(w[5], kNonPrivate);
        break;
      case 61:  // loads and stores of others: of shared memory, or of memory by its address
        if (w.size() > 4) {
          d.shared += w[4] == kNonPrivate;
          EXPECT_FALSE(w[4] & 0x18u);
        }
        break;
      case 62:
        if (w.size() > 3) {
          d.shared += w[3] == kNonPrivate;
          EXPECT_FALSE(w[3] & 0x18u);
        }
        break;
      case 224:
        ++d.barriers;
        EXPECT_EQ(constants.at(w[2]), 2u);                                 // of the workgroup's memory
        EXPECT_EQ(constants.at(w[3]), 0x8u | 0x100u | 0x2000u | 0x4000u);  // acquire and release, shared, available, visible
        break;
      default: break;
    }
  }
  return d;
}

TEST(FragmentTypes, PlaceholdersBecomeTypesAndSizesDeclaredBefore) {
  const Shader *shader = shader_named("gemm_cooperative"), *group = shader_named("gemm_cooperative_group");
  ASSERT_TRUE(shader && group);
  for (const Shader* s : {shader, group}) {
    const auto words = with_fragment_types(s->words);
    EXPECT_EQ(words.size() + static_cast<size_t>(declared_by(words).shared), s->words.size());  // instructions move, scopes go
    const Declared d = declared_by(words);
    EXPECT_EQ(d.fragments, 3);
    EXPECT_GE(d.accesses, 3);
    EXPECT_GE(d.shared, 3);
    EXPECT_GE(d.barriers, 1);
    EXPECT_EQ(d.scope, s == group ? 2u : 3u);  // workgroup, subgroup
    EXPECT_TRUE(d.extensions.count("SPV_KHR_cooperative_matrix"));
    EXPECT_EQ(d.extensions.count("SPV_NV_cooperative_matrix2"), s == group ? 1u : 0u);
  }
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
