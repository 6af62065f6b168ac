#include "families/gather/gather.h"

#include <algorithm>

namespace sparkle {

int64_t gather_index(int64_t index, int64_t size) { return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size - 1); }

}  // namespace sparkle
