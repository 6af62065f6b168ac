// The taps of a coordinate in the type that a layer is computed in; sample.h has them for single precision.
#pragma once

#include "families/sample/sample.h"

namespace sparkle {

template <class Real>
struct SampleTapsIn {
  int count = 0;
  std::array<int64_t, 4> index{};
  std::array<Real, 4> weight{};
};
template <class Real>
SampleTapsIn<Real> sample_taps_in(const SampleParams& params, Real coordinate, int64_t size);

}  // namespace sparkle
