// WindowRecord of stages that slide a window over each channel alone.
#pragma once

#include "backends/cuda/cuda_kernel.h"
#include "backends/cuda/kernels/windows/window_record.h"
#include "families/windows/window.h"

namespace sparkle::cuda {

// `width`: channels of a thread. Errors: layout_not_served where an operand spans more than 2^31 elements.
Result<WindowRecord> window_record(const Stage& stage, const Window& window, int width);
// Strides of a feature map along n,d,h,w.
void set_strides(int32_t (&to)[4], const FeatureMap& m);

}  // namespace sparkle::cuda
