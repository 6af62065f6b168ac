// Epilogue: what happens to a sum of products before it is stored, a closed record that every anchor kernel carries:
//   y = post_op(activation(alpha * sum * scale[k] + bias[k] + residuals before) + residuals after)
// Operands follow the anchor's own in this order: scale, bias, residuals before, residuals after, the post-op's.
#pragma once

#include <algorithm>

#include "base/record.h"
#include "families/values/activation.h"
#include "families/pointwise/pointwise.h"

namespace sparkle {

struct Epilogue {
  double alpha = 1;          // factor of the sum
  bool scale = false;        // operand [K]: factor per output channel
  bool bias = false;         // operand [K]: summand per output channel
  int residuals_before = 0;  // 0..2 operands shaped like the output (stride 0 broadcasts), added before the activation
  int residuals_after = 0;   // 0..2 operands added after it; before + after <= 2
  Activation activation = Activation::none;
  double a = 0, b = 0;  // parameters of the activation
  // Any program of element-wise operations: operand 0 is the value so far, the others are shaped like the output (stride 0
  // broadcasts). No instruction: nothing follows. families/values/post_ops.h says which kernels take one.
  PointwiseParams post_op;

  bool has_post_op() const { return !post_op.program.empty(); }
  int post_op_operands() const { return has_post_op() ? std::max(0, post_op.inputs - 1) : 0; }
  int residuals() const { return residuals_before + residuals_after; }
  int operands() const { return scale + bias + residuals() + post_op_operands(); }
  template <class V>
  void visit(V& v) {
    v("alpha", alpha), v("scale", scale), v("bias", bias), v("before", residuals_before), v("after", residuals_after);
    v("act", activation), v("a", a), v("b", b);
    if (v.present("tail", has_post_op())) v("tail", post_op);
  }
  friend bool operator==(const Epilogue&, const Epilogue&) = default;
};

}  // namespace sparkle
