#include "run/overlap.h"

namespace sparkle {

Status check_overlap(const Plan& plan, std::span<Buffer* const> places) {
  const size_t inputs = plan.inputs.size();
  const auto tensor = [&](size_t i) -> const PlanTensor& {
    return plan.tensors[static_cast<size_t>(i < inputs ? plan.inputs[i] : plan.outputs[i - inputs])];
  };
  const auto overlap = [&](size_t i, size_t o) {
    const uint64_t a = places[i]->address(), b = places[o]->address();
    if (places[i] == places[o]) return true;
    return a != 0 && b != 0 && a < b + static_cast<uint64_t>(tensor(o).desc.bytes()) &&
           b < a + static_cast<uint64_t>(tensor(i).desc.bytes());
  };
  for (size_t o = inputs; o < places.size(); ++o)
    for (size_t i = 0; i < o; ++i)
      if (overlap(i, o))
        return Error{Reason::bad_usage, "The buffers of '" + tensor(i).name + "' and '" + tensor(o).name +
                                            "' share memory; give the output memory of its own."};
  return ok();
}

}  // namespace sparkle
