// A product as dispatches: what the gemm family and others whose sums are products record.
#pragma once

#include "backends/vulkan/kernels/products/gemm_record.h"
#include "backends/vulkan/kernels/elements/post_op.h"
#include "families/values/epilogue.h"
#include "families/loops/tile_schedule.h"

namespace sparkle::vulkan {

struct Product {
  GemmRecord record{};
  TileSchedule tile;
  Epilogue epilogue;
  bool fp16 = false;  // operands are f16, and so are packed weights
  bool vectors =
      false;  // four channels of x are one aligned vector, and there is a multiple of four; eight of fragments' fp16 values
  bool stores = false;   // four of y
  bool scalar = false;   // weights are loaded one at a time, for an ablation
  bool packed = false;   // w is packed as packed_product() says
  bool complex = false;  // packed rows hold complex numbers, each for two rows: those that meet real and imaginary parts of x
  // x, w, y, scale, bias, residuals: those that are not there stand for x.
  std::array<Address, 7> operands;
  PostOp post_op;
};

// The record with the sizes of packed weights for this tile: [matrix][k_padded / run][n_padded][run], zeros beyond k and n.
struct PackedProduct {
  GemmRecord record{};
  int64_t k_padded = 0, matrices = 1;
  int64_t run = 1;  // of k side by side
  int64_t elements() const { return matrices * k_padded * record.n_padded; }
};
// Errors: layout_not_served where they are more than 2^31 elements.
Result<PackedProduct> packed_product(const GemmRecord& record, const TileSchedule& tile);

// Appends the product's dispatches; sums of parts take workspace of the kernel's. Errors: layout_not_served where these are
// more than 2^31 elements, and what the driver says.
Status add_product(VulkanKernel& kernel, const Workshop& shop, const Product& product);

}  // namespace sparkle::vulkan
