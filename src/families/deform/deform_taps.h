// The elements around a place in the type that a layer is computed in; deform.h has them for single precision.
#pragma once

#include "families/deform/deform.h"

namespace sparkle {

template <class Real>
struct DeformTapsIn {
  std::array<int64_t, 4> h{}, w{};
  std::array<Real, 4> weight{};
  int count = 0;
};
template <class Real>
DeformTapsIn<Real> deform_taps_in(Real h, Real w, int64_t height, int64_t width);

}  // namespace sparkle
