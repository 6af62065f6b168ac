// The number that a top_k stage ranks elements by: higher is better.
#pragma once

#include "families/top_k/top_k.h"
#include "families/values/typed.h"

namespace sparkle {

template <class T>
using RankKey = decltype(order_key(T{}));

template <bool largest, class T>
RankKey<T> rank_key(T value, bool nan_first) {
  const RankKey<T> key = order_key(value);
  if constexpr (largest) {
    return key;
  } else {
    if constexpr (is_float_type<T>)
      if (nan_first && key == std::numeric_limits<RankKey<T>>::max()) return key;
    return ~key;
  }
}

}  // namespace sparkle
