// The pad family: x surrounded by a constant or by elements of x. y's size along an axis is x's + begin + end; begin and end
// may be negative (that much is cut off). Operands: x -> y, same type.
#pragma once

#include "base/record.h"
#include "base/tensor.h"

namespace sparkle {

enum class PadMode : uint8_t { constant, reflect, edge, wrap };
std::string_view name_of(PadMode mode);
bool parse_name(std::string_view text, PadMode& mode);

struct PadParams {
  PadMode mode = PadMode::constant;
  Dims begin, end;  // per axis of x
  double value = 0;

  template <class V>
  void visit(V& v) {
    v("mode", mode), v("begin", begin), v("end", end), v("value", value);
  }
  friend bool operator==(const PadParams&, const PadParams&) = default;
};

// Index in x, of `size` elements along the axis, that output index `out` shows, or -1 for the constant. What negative pads cut
// off goes first; the rest is then surrounded. reflect repeats without the edge element, edge
// repeats the edge element, wrap starts again at the other end, each for any number of elements; -1 too if nothing is left.
int64_t pad_source(PadMode mode, int64_t out, int64_t begin, int64_t end, int64_t size);

}  // namespace sparkle
