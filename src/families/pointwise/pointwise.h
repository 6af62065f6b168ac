// The pointwise family: any expression over tensors with broadcasting, as a straight-line program. Value i < inputs is operand
// i; value inputs + j is the result of instruction j; the last instruction is the output. All operands have the output's rank
// and broadcast by stride 0 (their desc's shape is the output's shape).
#pragma once

#include <span>
#include <vector>

#include "base/record.h"
#include "base/tensor.h"

namespace sparkle {

enum class PointwiseOp : uint8_t {
#define POINTWISE(op, arity, formula) op,
#include "families/pointwise/ops.inc"
#undef POINTWISE
};
std::string_view name_of(PointwiseOp op);
bool parse_name(std::string_view text, PointwiseOp& op);
int arity_of(PointwiseOp op);

// One operation on x, y, z with parameters a and b, in double precision: the definition.
double evaluate(PointwiseOp op, double x, double y, double z, double a, double b);

struct PointwiseInstruction {
  PointwiseOp op = PointwiseOp::identity;
  int x = 0, y = 0, z = 0;  // values; those beyond the arity are 0
  double a = 0, b = 0;      // parameters

  template <class V>
  void visit(V& v) {
    v("op", op), v("x", x), v("y", y), v("z", z), v("a", a), v("b", b);
  }
  friend bool operator==(const PointwiseInstruction&, const PointwiseInstruction&) = default;
};

struct PointwiseParams {
  int inputs = 1;
  std::vector<PointwiseInstruction> program;

  template <class V>
  void visit(V& v) {
    v("inputs", inputs), v("program", program);
  }
  friend bool operator==(const PointwiseParams&, const PointwiseParams&) = default;
};

// The program's result for these values of its operands, in double precision.
double evaluate(const PointwiseParams& params, std::span<const double> operands);

// "silu(add(x0,x1))": the program as an expression, for people.
std::string expression(const PointwiseParams& params);

}  // namespace sparkle
