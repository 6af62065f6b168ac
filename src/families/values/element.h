// One element of any type as a double and back: for plain loops and for constants such as a padding value.
#pragma once

#include <cstddef>

#include "base/dtype.h"

namespace sparkle {

double load_element(DType type, const std::byte* from);
// Floats round to nearest even; integers round to nearest even and saturate (NaN gives 0); bool is value != 0. Narrow floats as
// families/values/narrow.h says of encoded().
void store_element(DType type, double value, std::byte* to);

}  // namespace sparkle
