// Which operations the programs printed for GPUs have in double precision: arithmetic, comparisons, roots, and the functions
// made of exponentials and logarithms. Shader languages have no other functions of doubles.
#pragma once

#include "families/pointwise/pointwise.h"

namespace sparkle {

constexpr bool has_double_on_gpus(PointwiseOp op) {
  switch (op) {
    case PointwiseOp::sin:
    case PointwiseOp::cos:
    case PointwiseOp::tan:
    case PointwiseOp::asin:
    case PointwiseOp::acos:
    case PointwiseOp::atan:
    case PointwiseOp::sinh:
    case PointwiseOp::cosh:
    case PointwiseOp::asinh:
    case PointwiseOp::acosh:
    case PointwiseOp::atanh:
    case PointwiseOp::erf:
    case PointwiseOp::gelu: return false;
    default: return true;
  }
}

}  // namespace sparkle
