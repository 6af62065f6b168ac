#include "backends/vulkan/fragment_types.h"

namespace sparkle::vulkan {
namespace {

// Numbers of the SPIR-V specification and of SPV_KHR_cooperative_matrix.
constexpr uint32_t kHeaderWords = 5, kTypeVoid = 19, kTypeFloat = 22, kTypeFragment = 4456;
constexpr uint32_t kHalf = 0x7f16, kFloat = 0x7f32;  // the placeholders

// Calls f(opcode, words) for each instruction; false where the words end within one.
template <class F>
bool for_each_instruction(std::span<const uint32_t> words, F&& f) {
  for (size_t at = kHeaderWords; at < words.size();) {
    const size_t count = words[at] >> 16;
    if (count == 0 || count > words.size() - at) return false;
    f(words[at] & 0xffff, words.subspan(at, count));
    at += count;
  }
  return true;
}

}  // namespace

std::vector<uint32_t> with_fragment_types(std::span<const uint32_t> words) {
  std::vector<uint32_t> same(words.begin(), words.end());
  if (words.size() < kHeaderWords) return same;
  uint32_t half = 0, single = 0;
  bool fragments = false;
  const bool whole = for_each_instruction(words, [&](uint32_t opcode, std::span<const uint32_t> w) {
    fragments |= opcode == kTypeFragment;
    if (opcode != kTypeFloat || w.size() != 3) return;
    if (w[2] == 16) half = w[1];
    if (w[2] == 32) single = w[1];
  });
  if (!whole || !fragments || !half || !single) return same;
  std::vector<uint32_t> out(words.begin(), words.begin() + kHeaderWords);
  bool declared = false;
  for_each_instruction(words, [&](uint32_t opcode, std::span<const uint32_t> w) {
    const bool moved = opcode == kTypeFloat && (w[1] == half || w[1] == single);
    if (opcode == kTypeVoid && !declared) {
      declared = true;
      for (const auto& [id, width] : {std::pair(half, 16u), std::pair(single, 32u)})
        out.insert(out.end(), {3u << 16 | kTypeFloat, id, width});
    }
    if (moved) return;
    const size_t at = out.size();
    out.insert(out.end(), w.begin(), w.end());
    if (opcode == kTypeFragment && w.size() >= 3) out[at + 2] = w[2] == kHalf ? half : w[2] == kFloat ? single : w[2];
  });
  return declared ? out : same;
}

}  // namespace sparkle::vulkan
