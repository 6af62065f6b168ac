// Shaders with fragments (glsl/fragments.glsl) after their compiler: GLSL names a fragment's element type and its sizes by
// placeholders, as its compiler takes neither types nor specialization constants there; a driver wants them themselves,
// declared before.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sparkle::vulkan {

// The words with every placeholder replaced; the types of 16- and 32-bit floats and the sizes' constants are declared before
// all others. The same words where there are no fragments. Words that are no SPIR-V come back as they are: the driver refuses
// them.
std::vector<uint32_t> with_fragment_types(std::span<const uint32_t> words);

}  // namespace sparkle::vulkan
