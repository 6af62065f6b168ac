// What of a model cannot run, all of it at once, as an Error: one sentence, and behind it a line for each operator with its
// nodes.
#pragma once

#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"

namespace sparkle {

struct Refusal {
  std::string name;  // of the node or tensor
  std::string type;  // the operator; empty for tensors
  Reason reason = Reason::operator_not_served;
  std::string why;  // half a sentence: "this operator is not supported"
};

// An output that the model declares with another type than its nodes compute.
Refusal wrongly_declared(const std::string& output, DType declared, DType computed);

// One refusal is one sentence. More are counted by operator; then follow lines of two blanks, "Foo x2: WHY: 'a', 'b'". The
// reason is the first refusal's, bad_model where any of them is that. `model`: what errors call it. There is at least one
// refusal.
Error refused(const std::string& model, const std::vector<Refusal>& refusals);

}  // namespace sparkle
