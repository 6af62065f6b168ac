// Encoding refuses what cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col say they refuse (cuda.h of CUDA 13.0). A map holds
// where a MapShape of the process lies and a mark: only the model reads it.
#include "cuda_model/tensor_map.h"

#include <cstring>
#include <deque>

#include "cuda_model/machine.h"

namespace cuda_model {
namespace {

constexpr uint64_t kMark = 0x70616d726f736e74u;
constexpr size_t kPlace = 15;  // programs write to none of the words but the second
std::deque<MapShape>& shapes() {
  static std::deque<MapShape> all;
  return all;
}
uint32_t element_bytes(MapType type) {
  return type == MapType::u8 ? 1 : type == MapType::u16 || type == MapType::f16 || type == MapType::bf16 ? 2 : 4;
}
// What the engine does to floats on their way by a map of tf32: to nearest, ties to even.
void round_to_tf32(unsigned char* at) {
  uint32_t bits = 0;
  std::memcpy(&bits, at, 4);
  bits = (bits & 0x7f800000u) == 0x7f800000u ? bits & ~0x1fffu : (bits + 0xfffu + (bits >> 13 & 1)) & ~0x1fffu;
  std::memcpy(at, &bits, 4);
}
// `stored`: stores end at whole 16 bytes of the innermost axis, not at its last element (seen on Hopper; loads end there).
unsigned char* element_at(const MapShape& shape, const std::array<int64_t, 5>& at, bool stored) {
  auto* p = static_cast<unsigned char*>(const_cast<void*>(shape.address));
  const auto whole = static_cast<int64_t>(16 / element_bytes(shape.type));
  for (uint32_t axis = 0; axis < shape.rank; ++axis) {
    auto size = static_cast<int64_t>(shape.size[axis]);
    if (axis == 0 && stored) size = (size + whole - 1) / whole * whole;
    if (at[axis] < 0 || at[axis] >= size) return nullptr;
    p += at[axis] * static_cast<int64_t>(axis == 0 ? element_bytes(shape.type) : shape.strides[axis]);
  }
  return p;
}
// Calls visit(element of the box, place in the tensor) for each element, in the order in which they lie in shared memory.
template <class Visit>
void walk(const MapShape& shape, const std::array<int32_t, 5>& at, const std::array<uint16_t, 3>& tap, Visit visit) {
  uint64_t element = 0;
  if (!shape.im2col) {
    std::array<uint32_t, 5> i{};
    for (;; ++element) {
      std::array<int64_t, 5> place{};
      for (uint32_t axis = 0; axis < shape.rank; ++axis)
        place[axis] = at[axis] + int64_t{i[axis]} * shape.element_strides[axis];
      visit(element, place);
      uint32_t axis = 0;
      while (axis < shape.rank && ++i[axis] == shape.box[axis]) i[axis++] = 0;
      if (axis == shape.rank) return;
    }
  }
  // Pixels go through the box of first taps: from its lower corner to the image's last pixel and the upper corner.
  const uint32_t spatial = shape.rank - 2;
  std::array<int64_t, 5> base{};
  for (uint32_t axis = 0; axis < shape.rank; ++axis) base[axis] = at[axis];
  for (uint32_t pixel = 0; pixel < shape.pixels; ++pixel) {
    std::array<int64_t, 5> place = base;
    for (uint32_t axis = 0; axis < spatial; ++axis) place[axis + 1] += tap[axis];
    for (uint32_t c = 0; c < shape.channels; ++c, ++element) {
      place[0] = base[0] + c;
      visit(element, place);
    }
    uint32_t axis = 0;
    for (; axis < spatial; ++axis) {
      base[axis + 1] += shape.element_strides[axis + 1];
      if (base[axis + 1] <= static_cast<int64_t>(shape.size[axis + 1]) - 1 + shape.upper[axis]) break;
      base[axis + 1] = shape.lower[axis];
    }
    if (axis == spatial) ++base[shape.rank - 1];
  }
}

}  // namespace

std::string encode(const MapShape& shape, TensorMap& map) {
  const uint32_t element = element_bytes(shape.type);
  if (shape.rank < (shape.im2col ? 3u : 1u) || shape.rank > 5) return "the rank of a tensor map is 1 to 5, with im2col 3 to 5";
  if (reinterpret_cast<uintptr_t>(shape.address) % 16) return "the tensor's address is no multiple of 16";
  for (uint32_t axis = 0; axis < shape.rank; ++axis) {
    if (shape.size[axis] == 0 || shape.size[axis] > uint64_t{1} << 32) return "a size of the tensor is not 1 to 2^32";
    const std::string stride =
        "the stride of axis " + std::to_string(axis) + ", " + std::to_string(shape.strides[axis]) + ", is ";
    if (axis > 0 && (shape.strides[axis] == 0 || shape.strides[axis] % 16 != 0)) return stride + "no positive multiple of 16";
    if (axis > 0 && shape.strides[axis] >= uint64_t{1} << 40) return stride + "2^40 or more";
    if (axis > 1 && shape.size[axis] > 1 && shape.strides[axis] < shape.strides[axis - 1] * shape.size[axis - 1])
      return stride + "less than what the axis before it takes";
    if (shape.element_strides[axis] == 0 || shape.element_strides[axis] > 8) return "an element stride is not 1 to 8";
    if (!shape.im2col && shape.element_strides[axis] != 1) return "the model has no tiled maps by steps";
    if (!shape.im2col && (shape.box[axis] == 0 || shape.box[axis] > 256)) return "a box's side is not 1 to 256";
  }
  const uint32_t inner = (shape.im2col ? shape.channels : shape.box[0]) * element;
  if (inner % 16) return "the inner side of a box is no multiple of 16 bytes";
  if (shape.swizzle != 0 && shape.swizzle != 32 && shape.swizzle != 64 && shape.swizzle != 128) return "no such swizzle";
  if (shape.swizzle != 0 && inner > shape.swizzle) return "the inner side of a box is more than its swizzle";
  if (shape.im2col) {
    if (shape.channels > 256) return "a column has at most 256 channels";
    if (shape.pixels == 0 || shape.pixels > 1024) return "a column has 1 to 1024 pixels";
    const int32_t low = shape.rank == 3 ? -32768 : shape.rank == 4 ? -128 : -16, high = -low - 1;
    for (uint32_t axis = 0; axis + 2 < shape.rank; ++axis) {
      if (shape.lower[axis] < low || shape.lower[axis] > high || shape.upper[axis] < low || shape.upper[axis] > high) {
        return "a corner of the box is outside of what a map can hold";
      }
      if (static_cast<int64_t>(shape.size[axis + 1]) + shape.upper[axis] - shape.lower[axis] <= 0)
        return "the box of axis " + std::to_string(axis + 1) + " has no pixels";
    }
  }
  shapes().push_back(shape);
  map = {};
  map.words[0] = kMark;
  map.words[kPlace] = reinterpret_cast<uint64_t>(&shapes().back());
  return {};
}

MapShape decode(const void* map) {
  if (reinterpret_cast<uintptr_t>(map) % 64) fault("a tensor map at an address that is no multiple of 64");
  TensorMap copy;
  std::memcpy(&copy, map, sizeof(copy));
  if (copy.words[0] != kMark) fault("a tensor map that was never encoded");
  if (copy.words[1] & kWrongBit) fault("a map of a small tensor with the bit that drivers up to CUDA 13.1 set wrongly");
  return *reinterpret_cast<const MapShape*>(copy.words[kPlace]);
}
uint32_t box_bytes(const MapShape& shape) {
  uint32_t elements = 1;
  if (shape.im2col) {
    elements = shape.channels * shape.pixels;
  } else {
    for (uint32_t axis = 0; axis < shape.rank; ++axis) elements *= shape.box[axis];
  }
  return elements * element_bytes(shape.type);
}
std::vector<unsigned char> read_box(const MapShape& shape, const std::array<int32_t, 5>& at,
                                    const std::array<uint16_t, 3>& tap) {
  std::vector<unsigned char> box(box_bytes(shape));
  const uint32_t bytes = element_bytes(shape.type);
  walk(shape, at, tap, [&](uint64_t element, const std::array<int64_t, 5>& place) {
    const unsigned char* from = element_at(shape, place, false);
    if (from == nullptr) return;
    check_global(from, bytes, "a tensor copy");
    std::memcpy(box.data() + element * bytes, from, bytes);
    if (shape.type == MapType::tf32) round_to_tf32(box.data() + element * bytes);
  });
  return box;
}
void write_box(const MapShape& shape, const std::array<int32_t, 5>& at, const std::vector<unsigned char>& box) {
  const uint32_t bytes = element_bytes(shape.type);
  walk(shape, at, {}, [&](uint64_t element, const std::array<int64_t, 5>& place) {
    unsigned char* to = element_at(shape, place, true);
    if (to == nullptr) return;
    check_global(to, bytes, "a tensor store");
    std::memcpy(to, box.data() + element * bytes, bytes);
  });
}

}  // namespace cuda_model
