// Pointwise rows of 32-bit integers.
#include "backends/cpu/pointwise/typed_row-inl.h"

namespace sparkle::cpu {
template void typed_row<int32_t>(const TypedRow&);
template void typed_row<uint32_t>(const TypedRow&);
}  // namespace sparkle::cpu
