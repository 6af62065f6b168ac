// The pool family: maximum, mean or power mean over a sliding window.
// Operands: x [N,C,spatial] -> y [N,C,spatial]; with `indices` a second output of type i64, flat row-major positions in x.
#pragma once

#include "families/windows/window.h"

namespace sparkle {

enum class PoolKind : uint8_t { max, average, lp };
std::string_view name_of(PoolKind kind);
bool parse_name(std::string_view text, PoolKind& kind);

struct PoolParams {
  PoolKind kind = PoolKind::max;
  Window window;
  bool count_pad = false;  // average: padding counts as elements (never what lies beyond pad_end by rounding up)
  int64_t p = 2;           // lp: the power

  template <class V>
  void visit(V& v) {
    v("kind", kind), v("window", window), v("count_pad", count_pad), v("p", p);
  }
  friend bool operator==(const PoolParams&, const PoolParams&) = default;
};

// Whether the elements of a tensor's rows lie side by side.
inline bool columns_innermost(const TensorDesc& desc) {
  const FeatureMap m = feature_map(desc);
  return m.w <= 1 || m.pixel_stride == 1;
}

}  // namespace sparkle
