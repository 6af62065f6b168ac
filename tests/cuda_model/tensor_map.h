// Tensor maps, read: boxes of a tensor as they go to shared memory, before any swizzle.
#pragma once

#include <array>
#include <vector>

#include "cuda_model/model.h"

namespace cuda_model {

MapShape decode(const void* map);
uint32_t box_bytes(const MapShape& shape);
std::vector<unsigned char> read_box(const MapShape& shape, const std::array<int32_t, 5>& at,
                                    const std::array<uint16_t, 3>& tap);
void write_box(const MapShape& shape, const std::array<int32_t, 5>& at, const std::vector<unsigned char>& box);

}  // namespace cuda_model
