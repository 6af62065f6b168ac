// Whether the compiler of the shaders lays records out as the host does: offsets are read from the shaders' own words.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "backends/vulkan/kernels/products/gemm_record.h"
#include "backends/vulkan/shaders/shaders.h"

namespace sparkle::vulkan {
namespace {

using Offsets = std::map<std::string, uint32_t>;

std::string text_at(std::span<const uint32_t> words, size_t at) {
  const auto* text = reinterpret_cast<const char*>(&words[at]);
  return std::string(text, strnlen(text, (words.size() - at) * 4));
}

// Where members of structures of this name lie, by their names; empty where the shader has none.
Offsets offsets_in(std::span<const uint32_t> words, const std::string& structure) {
  constexpr uint32_t kOpName = 5, kOpMemberName = 6, kOpMemberDecorate = 72, kOffset = 35, kHeader = 5;
  std::set<uint32_t> ids;
  std::map<std::pair<uint32_t, uint32_t>, std::string> names;
  Offsets offsets;
  for (size_t at = kHeader; at < words.size() && words[at] >> 16; at += words[at] >> 16) {
    const uint32_t op = words[at] & 0xffff;
    if (op == kOpName && text_at(words, at + 2) == structure) ids.insert(words[at + 1]);
    if (op == kOpMemberName) names[{words[at + 1], words[at + 2]}] = text_at(words, at + 3);
    if (op == kOpMemberDecorate && words[at + 3] == kOffset && ids.contains(words[at + 1]))
      offsets[names[{words[at + 1], words[at + 2]}]] = words[at + 4];
  }
  return offsets;
}

Offsets offsets_of_gemm_record() {
  Offsets offsets;
#define VECTOR(name) offsets[#name] = offsetof(GemmRecord, name);
#define VECTORS(name, count) VECTOR(name)
#define INTEGER(name) VECTOR(name)
#define DIVISORS(name, count) VECTOR(name)
#define REAL(name) VECTOR(name)
#include "backends/vulkan/glsl/gemm_record.inc"
  return offsets;
}

TEST(GemmRecord, LiesAsShadersReadIt) {
  const Offsets expected = offsets_of_gemm_record();
  int seen = 0;
  for (const Shader& shader : shaders()) {
    const Offsets found = offsets_in(shader.words, "GemmRecord");
    if (found.empty()) continue;
    EXPECT_EQ(found, expected) << shader.name;
    ++seen;
  }
  EXPECT_GT(seen, 20);
}

// Factors in double precision lie behind the record at the next multiple of their size (native_type_gemm.cc).
TEST(GemmRecord, HasDoublesBehindIt) {
  const Shader* shader = shader_named("gemm_doubles");
  ASSERT_NE(shader, nullptr);
  const auto first = static_cast<uint32_t>((sizeof(GemmRecord) + 7) / 8 * 8);
  const Offsets expected{{"v", 0}, {"alpha", first}, {"a", first + 8}, {"b", first + 16}};
  EXPECT_EQ(offsets_in(shader->words, "Records"), expected);
}

}  // namespace
}  // namespace sparkle::vulkan
