// Pointwise rows of 64-bit integers.
#include "backends/cpu/pointwise/typed_row-inl.h"

namespace sparkle::cpu {
template void typed_row<int64_t>(const TypedRow&);
template void typed_row<uint64_t>(const TypedRow&);
}  // namespace sparkle::cpu
