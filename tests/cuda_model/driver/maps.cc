// Tensor maps, as libcuda.so.1 exports them.
#include "calls.h"

using namespace cuda_model::driver;
using cuda_model::kSmallTensor, cuda_model::kWrongBit;

namespace {

// What the driver knows of and the model has: nothing interleaved, and zeros outside.
std::string unknown(CuTensorType type, int interleave, CuTensorSwizzle swizzle, CuTensorPromotion promotion, int fill) {
  using T = CuTensorType;
  const auto is_any = [](auto value, auto... of) { return ((value == of) || ...); };
  if (!is_any(type, T::u8, T::f16, T::f32, T::bf16, T::tf32)) return "no type " + std::to_string(static_cast<int>(type));
  if (interleave != 0) return "no interleaving " + std::to_string(interleave);
  if (!is_any(swizzle, CuTensorSwizzle::none, CuTensorSwizzle::bytes_128))
    return "no swizzle " + std::to_string(static_cast<int>(swizzle));
  if (!is_any(promotion, CuTensorPromotion::none, CuTensorPromotion::bytes_256))
    return "no promotion " + std::to_string(static_cast<int>(promotion));
  if (fill != 0) return "no filling " + std::to_string(fill);
  return {};
}
cuda_model::MapShape map_shape(CuTensorType type, uint32_t rank, void* address, const uint64_t* sizes, const uint64_t* strides,
                               const uint32_t* element_strides, CuTensorSwizzle swizzle) {
  cuda_model::MapShape shape;
  shape.type = type == CuTensorType::f16    ? cuda_model::MapType::f16
               : type == CuTensorType::bf16 ? cuda_model::MapType::bf16
               : type == CuTensorType::f32  ? cuda_model::MapType::f32
               : type == CuTensorType::tf32 ? cuda_model::MapType::tf32
                                            : cuda_model::MapType::u8;
  const uint64_t element = type == CuTensorType::u8 ? 1 : type == CuTensorType::f32 || type == CuTensorType::tf32 ? 4 : 2;
  shape.rank = rank, shape.address = address;
  shape.swizzle = swizzle == CuTensorSwizzle::bytes_128 ? 128 : 0;
  for (uint32_t i = 0; i < rank && i < 5; ++i) {
    shape.size[i] = sizes[i], shape.element_strides[i] = element_strides[i];
    shape.strides[i] = i == 0 ? element : strides[i - 1];
  }
  return shape;
}
CuResult encode(const cuda_model::MapShape& shape, CuTensorMap* map) {
  if (reinterpret_cast<uintptr_t>(map) % 64) {
    tell("a tensor map at an address that is no multiple of 64");
    return CuResult::invalid_value;
  }
  const std::string refused = cuda_model::encode(shape, *reinterpret_cast<cuda_model::TensorMap*>(map));
  if (!refused.empty()) tell(refused);
  return refused.empty() ? CuResult::success : CuResult::invalid_value;
}

}  // namespace
EXPORT cuTensorMapEncodeTiled(CuTensorMap* map, CuTensorType type, uint32_t rank, void* address, const uint64_t* sizes,
                              const uint64_t* strides, const uint32_t* box, const uint32_t* element_strides, int interleave,
                              CuTensorSwizzle swizzle, CuTensorPromotion promotion, int fill) {
  MODEL_CALL("cuTensorMapEncodeTiled", false);
  if (const std::string what = unknown(type, interleave, swizzle, promotion, fill); !what.empty()) {
    tell("a tensor map of what the model has none of: " + what);
    return CuResult::invalid_value;
  }
  auto shape = map_shape(type, rank, address, sizes, strides, element_strides, swizzle);
  for (uint32_t i = 0; i < rank && i < 5; ++i) shape.box[i] = box[i];
  return encode(shape, map);
}
EXPORT cuTensorMapEncodeIm2col(CuTensorMap* map, CuTensorType type, uint32_t rank, void* address, const uint64_t* sizes,
                               const uint64_t* strides, const int* lower, const int* upper, uint32_t channels, uint32_t pixels,
                               const uint32_t* element_strides, int interleave, CuTensorSwizzle swizzle,
                               CuTensorPromotion promotion, int fill) {
  MODEL_CALL("cuTensorMapEncodeIm2col", false);
  if (const std::string what = unknown(type, interleave, swizzle, promotion, fill); !what.empty()) {
    tell("a tensor map of what the model has none of: " + what);
    return CuResult::invalid_value;
  }
  auto shape = map_shape(type, rank, address, sizes, strides, element_strides, swizzle);
  shape.im2col = true, shape.channels = channels, shape.pixels = pixels;
  for (uint32_t i = 0; i + 2 < rank && i < 3; ++i) shape.lower[i] = lower[i], shape.upper[i] = upper[i];
  const CuResult r = encode(shape, map);
  // So the libraries that clear it say; on sm_90 the bit means nothing, and the model tests that it is cleared.
  if (r == CuResult::success && driver_version() <= 13010 && shape.strides[rank - 1] * shape.size[rank - 1] < kSmallTensor)
    map->words[1] |= kWrongBit;
  return r;
}
