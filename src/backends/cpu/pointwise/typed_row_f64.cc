// Pointwise rows of doubles.
#include "backends/cpu/pointwise/typed_row-inl.h"

namespace sparkle::cpu {
template void typed_row<double>(const TypedRow&);
}  // namespace sparkle::cpu
