// The stages by which element-wise kernels are tried (trial.h): programs on any types, and all that the quantize family does.
#pragma once

#include <random>

#include "backends/vulkan/trials/trial.h"

namespace sparkle::vulkan {

// Programs among integers as they are; others operation by operation, and where their result is no float the last operation
// alone behind the conversion too. With gaps between rows, and densely with one value for all among the operands.
std::vector<Stage> pointwise_stages(const Trial& trial);
// Small tensors with gaps and without; parameters for all, of blocks with a rest, or shaped like x, as the kind has them.
std::vector<Stage> quantize_stages(const Trial& trial);

// Whether a program gives the same on any device, to the bit: nothing but choices, comparisons and conversions, or integers.
bool is_exact(const Stage& pointwise);

// A value for the operand. Where results are exact they are of any size, with many that are equal.
double pointwise_value(const Stage& stage, size_t operand, std::mt19937& random);
double quantize_value(const Stage& stage, size_t operand, std::mt19937& random);

}  // namespace sparkle::vulkan
