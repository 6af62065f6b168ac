// The copy family: moves elements from one layout to another. Transposition, change between channels-first and channels-last,
// a part of a concatenation, a slice, expansion and depth-to-space are all this: x and y have one shape and any two layouts
// (stride 0 in x repeats; rank up to 8). Operands: x -> y, same type of any kind.
#pragma once

#include "base/record.h"
#include "base/tensor.h"

namespace sparkle {

struct CopyParams {
  std::string why = "layout";  // what asked for it: "layout", "concat", "transpose" ... one word, for reports

  template <class V>
  void visit(V& v) {
    v("why", why);
  }
  friend bool operator==(const CopyParams&, const CopyParams&) = default;
};

}  // namespace sparkle
