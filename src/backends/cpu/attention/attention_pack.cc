#include "backends/cpu/attention/attention_pack.h"

namespace sparkle::cpu {

void pack_panel(const PackedMatrix& m, const float* from, int64_t panel, float* packed) {
  const int64_t width = m.panels.width_of(panel), columns = m.panels.columns_of(panel);
  float* to = packed + panel * m.panels.width * m.rows;
  from += panel * m.panels.width * m.column_stride;
  if (m.column_stride == 1) {
    for (int64_t i = 0; i < m.rows; ++i, to += width, from += m.row_stride) {
      std::copy(from, from + columns, to);
      std::fill(to + columns, to + width, 0.0f);
    }
    return;
  }
  // Transposed: 16 rows at a time use whole cache lines of the source.
  constexpr int64_t kBlock = 16;
  for (int64_t first = 0; first < m.rows; first += kBlock) {
    const int64_t last = std::min(m.rows, first + kBlock);
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = first; i < last; ++i) to[i * width + j] = from[j * m.column_stride + i * m.row_stride];
    for (int64_t i = first; i < last; ++i) std::fill(to + i * width + columns, to + (i + 1) * width, 0.0f);
  }
}

}  // namespace sparkle::cpu
