// A program behind the sums of a stage (Epilogue::post_op) on Vulkan: printed to GLSL in the place of glsl/post_op.glsl, so
// that the shader of its anchor is compiled once more with it inside. Sizes, strides and parameters stand in the record behind
// the stage's own: a text is one program, and neither a new shape nor other bounds compile anything.
#pragma once

#include "backends/vulkan/kernels/vulkan_kernel.h"
#include "families/pointwise/pointwise.h"

namespace sparkle::vulkan {

struct PostOp {
  PostOpText text;               // empty: there is no post-op
  std::vector<uint32_t> record;  // behind the stage's own
  std::vector<Address> operands;

  bool there() const { return !text.glsl.empty(); }
};

// The post-op of an anchor's stage. Errors: tail_not_served naming the operation.
Result<PostOp> post_op_of(const Stage& stage, const Context& context);

// The text that takes the place of glsl/post_op.glsl. `batches`: operands change from one instance of a product to the next.
Result<std::string> post_op_text(const PointwiseParams& post_op, bool batches, bool keeps_nan);

// A record with the post-op's behind it.
Result<std::shared_ptr<DeviceBuffer>> upload_with(const Workshop& shop, const void* record, size_t size, const PostOp& post_op);

}  // namespace sparkle::vulkan
