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

}  // namespace sparkle
