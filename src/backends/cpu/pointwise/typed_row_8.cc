// Pointwise rows of 8-bit integers.
#include "backends/cpu/pointwise/typed_row-inl.h"

namespace sparkle::cpu {
template void typed_row<int8_t>(const TypedRow&);
template void typed_row<uint8_t>(const TypedRow&);
}  // namespace sparkle::cpu
