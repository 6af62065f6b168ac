// How an update meets the element that it falls on.
#pragma once

#include "families/scatter/scatter.h"
#include "families/values/typed.h"

namespace sparkle {

// In the element's own type; integers wrap around, NaN stays NaN.
template <ScatterReduction reduction, class T>
T combined(T old, T update) {
  if constexpr (reduction == ScatterReduction::none) {
    return update;
  } else {
    const Computed<T> a = to_computed(old), b = to_computed(update);
    if constexpr (reduction == ScatterReduction::add) return from_computed<T>(wrapped_sum(a, b));
    if constexpr (reduction == ScatterReduction::mul) return from_computed<T>(wrapped_product(a, b));
    if (a != a) return old;
    if (b != b) return update;
    return (reduction == ScatterReduction::max ? a < b : b < a) ? update : old;
  }
}

// f.operator()<reduction>()
template <class F>
void with_reduction(ScatterReduction reduction, F&& f) {
  switch (reduction) {
    case ScatterReduction::none: return f.template operator()<ScatterReduction::none>();
    case ScatterReduction::add: return f.template operator()<ScatterReduction::add>();
    case ScatterReduction::mul: return f.template operator()<ScatterReduction::mul>();
    case ScatterReduction::max: return f.template operator()<ScatterReduction::max>();
    case ScatterReduction::min: return f.template operator()<ScatterReduction::min>();
  }
}

}  // namespace sparkle
