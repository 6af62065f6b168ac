// The gather family: elements of x picked by integer indices (negative ones count from the end).
// Operands: x, indices (i32 or i64) -> y. Forms:
//   slices    y is x with `axis` replaced by the indices' axes: one slice of x per index
//   elements  y has the shape of the indices: y[i] = x[i with its entry at `axis` replaced by indices[i]]
//   tuples    the last axis of the indices holds tuples that point into x's axes from `batch_axes` on; x and the indices share
//             the axes before; y is the indices' outer axes, then what remains of x
#pragma once

#include "base/record.h"
#include "base/tensor.h"

namespace sparkle {

enum class GatherForm : uint8_t { slices, elements, tuples };
std::string_view name_of(GatherForm form);
bool parse_name(std::string_view text, GatherForm& form);

struct GatherParams {
  int axis = 0;
  GatherForm form = GatherForm::slices;
  int batch_axes = 0;  // tuples only

  template <class V>
  void visit(V& v) {
    v("axis", axis), v("form", form), v("batch_axes", batch_axes);
  }
  friend bool operator==(const GatherParams&, const GatherParams&) = default;
};

}  // namespace sparkle
