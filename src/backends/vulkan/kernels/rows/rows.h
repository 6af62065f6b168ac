// Rows of elements that belong together, for the families that make something of whole rows: how axes are merged, which threads
// take what, and into how many parts rows are cut (glsl/rows.glsl has the same record).
#pragma once

#include <cstdint>

#include "backends/vulkan/kernels/vulkan_kernel.h"
#include "families/loops/row_groups.h"

namespace sparkle::vulkan {

struct RowsRecord {
  uint32_t rows = 1, elements = 1, lanes = 1, depth = 1, parts = 1, part_length = 1, lanes_first = 0;
  float epsilon = 0;
  uint32_t own[6] = {};           // the family's own numbers
  uint32_t axes[2] = {};          // of the rows, of the elements of one
  uint32_t divide[2][8][3] = {};  // innermost first
  int32_t strides[2][8][4] = {};  // of x, scale, bias, y
};

// x / by for x below 2^31 as (high word of x * multiplier + x) >> shift: by, multiplier, shift.
std::array<uint32_t, 3> divisor_of(uint32_t by);

// `operands`: x, scale, bias, y, nullptr where there is none; `within`: bit i tells that axis i runs within a row. `parts`:
// whether rows may be cut. Errors: layout_not_served where an operand spans more than 2^31 elements.
Result<RowsRecord> rows_of(const std::array<const TensorDesc*, 4>& operands, uint32_t within, bool parts);

// Groups for the rows along x and y, for the parts along z.
std::array<uint32_t, 3> groups_of(const RowsRecord& record);

// A dispatch of the shader with these constants behind the workgroup's size. Operands by number as in Address, -2 where there
// is none.
Result<Dispatch> rows_dispatch(const Workshop& shop, std::string_view shader, std::span<const uint32_t> constants,
                               const std::array<int, 4>& operands, const RowsRecord& record, VkDeviceAddress at);

// The steps of a kernel on rows by `add(step)`: rows that are cut are read in parts (1), which are joined (2); others are whole
// (0).
template <class F>
Status add_steps(VulkanKernel& kernel, const RowsRecord& record, F&& add) {
  if (record.parts <= 1) return add(0u);
  kernel.workspace = int64_t{8} * record.rows * record.parts;
  SPARKLE_CHECK(add(1u));
  return add(2u);
}

}  // namespace sparkle::vulkan
