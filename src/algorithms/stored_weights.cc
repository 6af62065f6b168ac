#include "algorithms/stages.h"

namespace sparkle {

template <DType kStored>
Reason stored_applies(const AnchorCall& call) {
  const Problem& p = call.problem;
  if (p.kind == ProblemKind::conv_transpose || !call.fit) return Reason::not_this_family;  // weights that change come in f32
  if (!computed_in_f32(p) || call.inputs[1].dtype != DType::f32) return Reason::type_not_served;
  return fit_in<kStored>(call) == Fit::never ? Reason::too_inaccurate : Reason::none;
}

// The largest error of a rounded weight relative to it. Those of a sum's products add up at random, as the products themselves
// do, so that their share of an output does not depend on the length of the sum. src/measure/checks/stored_error_test.cc
// measures it.
template <DType kStored>
double stored_error(const AnchorCall& call) {
  if (fit_in<kStored>(call) == Fit::exact) return 0;
  return kStored == DType::f16 ? 0x1p-11 : 0x1p-8;
}

template Reason stored_applies<DType::f16>(const AnchorCall&);
template Reason stored_applies<DType::bf16>(const AnchorCall&);
template double stored_error<DType::f16>(const AnchorCall&);
template double stored_error<DType::bf16>(const AnchorCall&);

}  // namespace sparkle
