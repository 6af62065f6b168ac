// ModelCheck: whether a network's outputs are right, for those that time it. The same model, planned again for the reference
// backend - other algorithms, other fusions, plain loops in double precision that share no kernel with what is timed - says
// what they must be. For GPUs and networks that take plain loops many minutes the CPU's kernels do.
#pragma once

#include "run/opening/open_model.h"

namespace sparkle {

class ModelCheck {
 public:
  // Of what gives its outputs by `plan`. Takes as long as plain loops take: about a second for each three billion
  // multiplications. A compiled file has no weights to compute anything from by other means: possible() is false. `judge`: a
  // backend in the place of plain loops, of another device than the one that is judged. Errors: those of opening and running.
  static Result<ModelCheck> make(ModelFile model, const Plan& plan, const std::vector<HostTensor>& inputs,
                                 const SessionOptions& options, std::shared_ptr<Backend> judge = nullptr);
  bool possible() const { return possible_; }
  // All of all outputs: floats within the errors of both plans' steps (error_of_plan), whole numbers the same. Of 8 bits and
  // fewer they may be one step away where floats come before: a value may lie so near to the middle between two that rounding
  // errors take it to either. What is NaN here must be NaN there: who calls sees to it that NaN is not what memory was wiped
  // to, by a run on each of run/wipe.h's bytes. `when`: "before it was timed". Errors: internal.
  Status accept(const std::vector<HostTensor>& outputs, const std::string& when);
  // "all 1000 values of 1 output within 1.0e-03 of the largest (found 2.1e-06) of plain loops, 3 times".
  std::string text() const;

 private:
  bool possible_ = false;
  const char* judge_ = "plain loops";
  bool rounds_to_steps_ = false;  // floats become numbers of 8 bits on the way
  double allowed_ = 0, largest_error_ = 0;
  std::vector<std::string> names_;
  std::vector<HostTensor> wanted_;
  int times_ = 0;
};

// How far a plan's outputs may lie from exact ones, as a share of the largest: the sum of what each of its steps may add. A
// step hands on the errors of what it reads as the same share of its own largest value, and at worst all errors have one sign.
// Of its own it adds the bound that its algorithm was chosen by, the roundings of a sum in f32, and half a last place of a
// result in 16 bits. Where floats become numbers of 8 bits or fewer, one that changes sides is off by a whole step: once.
// docs/decisions/0019.
double error_of_plan(const Plan& plan);

}  // namespace sparkle
