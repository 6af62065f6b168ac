// A program behind the sums of a stage (Epilogue::tail) on Vulkan: printed to GLSL in the place of glsl/tail.glsl, so that
// the shader of its anchor is compiled once more with it inside. Sizes, strides and parameters stand in the record behind the
// stage's own: a text is one program, and neither a new shape nor other bounds compile anything.
#pragma once

#include "backends/vulkan/kernels/vulkan_kernel.h"
#include "families/pointwise/pointwise.h"

namespace sparkle::vulkan {

struct Tail {
  TailText text;                 // empty: there is no tail
  std::vector<uint32_t> record;  // behind the stage's own
  std::vector<Address> operands;

  bool there() const { return !text.glsl.empty(); }
};

// The tail of an anchor's stage. Errors: tail_not_served naming the operation.
Result<Tail> tail_of(const Stage& stage, const Context& context);

// The text that takes the place of glsl/tail.glsl. `batches`: operands change from one instance of a product to the next.
Result<std::string> tail_text(const PointwiseParams& tail, bool batches, bool keeps_nan);

// A record with the tail's behind it.
Result<std::shared_ptr<DeviceBuffer>> upload_with(const Workshop& shop, const void* record, size_t size, const Tail& tail);

}  // namespace sparkle::vulkan
