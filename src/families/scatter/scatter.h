// The scatter family: updates put into a copy of a tensor at places that integer indices name (negative ones count from the
// end). Updates of one place are taken in row-major order of the indices; without a reduction the last one stays. Forms:
//   elements  data, indices, updates -> y: updates[i] goes to y[i with its entry at `axis` replaced by indices[i]]
//   tuples    data, indices, updates -> y: the last axis of the indices holds tuples that point into data's first axes;
//             each tuple's slice of the updates goes there
//   one_hot   indices (any type), values (off, on) -> y: off everywhere, on where the place along `axis` is the index; an
//             index outside of [-size, size) sets nothing
#pragma once

#include "base/record.h"
#include "base/tensor.h"

namespace sparkle {

enum class ScatterForm : uint8_t { elements, tuples, one_hot };
std::string_view name_of(ScatterForm form);
bool parse_name(std::string_view text, ScatterForm& form);
enum class ScatterReduction : uint8_t { none, add, mul, max, min };
std::string_view name_of(ScatterReduction reduction);
bool parse_name(std::string_view text, ScatterReduction& reduction);

struct ScatterParams {
  ScatterForm form = ScatterForm::elements;
  ScatterReduction reduction = ScatterReduction::none;
  int axis = 0;  // elements and one_hot

  template <class V>
  void visit(V& v) {
    v("form", form), v("reduction", reduction), v("axis", axis);
  }
  friend bool operator==(const ScatterParams&, const ScatterParams&) = default;
};

}  // namespace sparkle
