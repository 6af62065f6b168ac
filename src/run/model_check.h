// ModelCheck: whether a network's outputs are right, for those that time it. The same model, planned again for the reference
// backend - other algorithms, other fusions, plain loops in double precision that share no kernel with what is timed - says
// what they must be.
#pragma once

#include "run/open_model.h"

namespace sparkle {

class ModelCheck {
 public:
  // Takes as long as plain loops take: about a second for each three billion multiplications. A compiled file has no weights to
  // compute anything from by other means: possible() is false. Errors: those of opening and running.
  static Result<ModelCheck> make(ModelFile model, const std::vector<HostTensor>& inputs, const SessionOptions& options);
  bool possible() const { return possible_; }
  // All of all outputs: whole numbers the same, floats within a share of the largest that grows with the accuracy asked for.
  // `when`: "before it was timed". Errors: internal.
  Status accept(const std::vector<HostTensor>& outputs, const std::string& when);
  // "all 1000 values of 1 output within 1.0e-03 of the largest (found 2.1e-06) of plain loops, 3 times".
  std::string text() const;

 private:
  bool possible_ = false;
  double allowed_ = 0, largest_error_ = 0;
  std::vector<std::string> names_;
  std::vector<HostTensor> wanted_;
  int times_ = 0;
};

}  // namespace sparkle
