#include "backends/vulkan/shaders/fragment_types.h"

#include <algorithm>
#include <array>

#include "backends/vulkan/shaders/gemm_constants.h"

namespace sparkle::vulkan {
namespace {

// Numbers of the SPIR-V specification and of SPV_KHR_cooperative_matrix.
constexpr uint32_t kHeaderWords = 5, kTypeVoid = 19, kTypeInt = 21, kTypeFloat = 22, kConstant = 43, kSpecConstant = 50,
                   kLoad = 61, kStore = 62, kMakeAvailable = 0x8, kMakeVisible = 0x10, kNonPrivate = 0x20, kDecorate = 71,
                   kSpecId = 1, kTypeFragment = 4456;
// The placeholders, and the specialization constants that stand for sizes: kFragmentM, kFragmentN, kFragmentK.
constexpr uint32_t kHalf = 0x7f16, kFloat = 0x7f32, kFirstSize = 0x7fa0, kSizes = 3,
                   kFirstSizeId = static_cast<uint32_t>(GemmConstant::kFragmentM);
static_assert(static_cast<uint32_t>(GemmConstant::kFragmentK) == kFirstSizeId + kSizes - 1);

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
  uint32_t half = 0, single = 0, integer = 0;
  std::array<uint32_t, kSizes> sizes{}, placeholders{};
  bool fragments = false;
  const bool whole = for_each_instruction(words, [&](uint32_t opcode, std::span<const uint32_t> w) {
    fragments |= opcode == kTypeFragment;
    if (opcode == kTypeFloat && w.size() == 3) {
      if (w[2] == 16) half = w[1];
      if (w[2] == 32) single = w[1];
    } else if (opcode == kDecorate && w.size() == 4 && w[2] == kSpecId && w[3] - kFirstSizeId < kSizes) {
      sizes[w[3] - kFirstSizeId] = w[1];
    } else if (opcode == kConstant && w.size() == 4 && w[3] - kFirstSize < kSizes) {
      placeholders[w[3] - kFirstSize] = w[2];
    } else if (opcode == kSpecConstant && w.size() == 4 && std::count(sizes.begin(), sizes.end(), w[2])) {
      integer = w[1];
    }
  });
  const bool complete = half && single && integer && !std::count(sizes.begin(), sizes.end(), 0u) &&
                        !std::count(placeholders.begin(), placeholders.end(), 0u);
  if (!whole || !fragments || !complete) return same;
  // What types of fragments are made of, in the order in which it is declared.
  std::vector<uint32_t> first;
  const auto moved = [&](uint32_t opcode, std::span<const uint32_t> w) {
    if (w.size() < 3) return false;
    return ((opcode == kTypeFloat || opcode == kTypeInt) && (w[1] == half || w[1] == single || w[1] == integer)) ||
           (opcode == kSpecConstant && std::count(sizes.begin(), sizes.end(), w[2]));
  };
  for (const bool types : {true, false})
    for_each_instruction(words, [&](uint32_t opcode, std::span<const uint32_t> w) {
      if (moved(opcode, w) && (opcode != kSpecConstant) == types) first.insert(first.end(), w.begin(), w.end());
    });
  std::vector<uint32_t> out(words.begin(), words.begin() + kHeaderWords);
  bool declared = false;
  for_each_instruction(words, [&](uint32_t opcode, std::span<const uint32_t> w) {
    if (opcode == kTypeVoid && !declared) {
      declared = true;
      out.insert(out.end(), first.begin(), first.end());
    }
    if (moved(opcode, w)) return;
    const size_t at = out.size();
    out.insert(out.end(), w.begin(), w.end());
    // Barriers make what was stored available and visible; where each access asks for it too, drivers wait at each.
    const size_t mask = opcode == kLoad ? 4 : 3;
    if ((opcode == kLoad && w.size() == 6 && w[mask] == (kMakeVisible | kNonPrivate)) ||
        (opcode == kStore && w.size() == 5 && w[mask] == (kMakeAvailable | kNonPrivate))) {
      out.pop_back();  // the scope
      out[at] = static_cast<uint32_t>((w.size() - 1) << 16) | opcode;
      out[at + mask] = kNonPrivate;
    }
    if (opcode != kTypeFragment || w.size() < 6) return;
    out[at + 2] = w[2] == kHalf ? half : w[2] == kFloat ? single : w[2];
    for (size_t i = 4; i < 6; ++i)
      for (size_t j = 0; j < kSizes; ++j)
        if (w[i] == placeholders[j]) out[at + i] = sizes[j];
  });
  return declared ? out : same;
}

}  // namespace sparkle::vulkan
