// The stages by which kernels that move elements, and attention, are tried (trial.h).
#pragma once

#include <random>

#include "backends/vulkan/trials/trial.h"

namespace sparkle::vulkan {

// A tensor with `gap` elements more than it has between the neighbours along every axis but the innermost.
TensorDesc described(DType type, const Dims& shape, bool channels_innermost, int64_t gap);

// References of families that move elements read x as they write y: any type, bit by bit.
bool moves(Family family);

// Planes to pixels and back: what goes through shared memory where it can.
std::vector<Stage> copy_stages(const Trial& trial);
// The same kind of padding by a few elements, whatever the trial's.
std::vector<Stage> pad_stages(const Trial& trial);
std::vector<Stage> scatter_stages(const Trial& trial);
std::vector<Stage> triangle_stages(const Trial& trial);
std::vector<Stage> gather_stages(const Trial& trial);
// The same scales on small tensors, channels in whole vectors and not.
std::vector<Stage> resize_stages(const Trial& trial);
// One to three spatial axes, channels or columns innermost.
std::vector<Stage> sample_stages(const Trial& trial);
// The same filter on few channels: two of each group for each group of offsets.
std::vector<Stage> deform_stages(const Trial& trial);
// More queries and keys than a block, and columns in whole vectors and not.
std::vector<Stage> attention_stages(const Trial& trial);
std::vector<Stage> non_max_stages(const Trial& trial);

// A value for the operand: indices lie within their axis, lengths within the keys, integers take most values of a byte.
double trial_value(const Stage& stage, size_t operand, std::mt19937& random);

}  // namespace sparkle::vulkan
