// Pointwise rows of 16-bit integers.
#include "backends/cpu/pointwise/typed_row-inl.h"

namespace sparkle::cpu {
template void typed_row<int16_t>(const TypedRow&);
template void typed_row<uint16_t>(const TypedRow&);
}  // namespace sparkle::cpu
