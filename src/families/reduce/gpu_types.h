// Which reductions of doubles, integers and truth values GPUs have kernels for.
#pragma once

#include "families/reduce/reduce.h"
#include "families/type_set.h"

namespace sparkle {

// Integers have no roots and logarithms on GPUs, truth values extrema alone.
constexpr bool reduces_on_gpus(ReduceKind kind, DType type) {
  if (type == DType::f64) return true;
  if (kind == ReduceKind::max || kind == ReduceKind::min) return kIntegers.has(type) || type == DType::boolean;
  return kIntegers.has(type) && kind != ReduceKind::l2 && kind != ReduceKind::log_sum && kind != ReduceKind::log_sum_exp;
}

}  // namespace sparkle
