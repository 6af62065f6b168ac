#include "backends/cuda/stages/products/channel_operand.h"

#include "backends/cuda/stages/pointwise_launch.h"
#include "families/pointwise/pointwise.h"
#include "families/values/element.h"

namespace sparkle::cuda {

Element element_of(DType type) {
  switch (type) {
    case DType::f16: return Element::f16;
    case DType::bf16: return Element::bf16;
    case DType::i8: return Element::i8;
    case DType::u8: return Element::u8;
    case DType::i32: return Element::i32;
    default: return Element::f32;
  }
}

Status add_channel_operand(CudaKernel& kernel, KernelLaunch& product, const Workshop& shop, int operand, size_t place,
                           bool constant, int64_t& at) {
  const TensorDesc& d = kernel.stage.inputs[static_cast<size_t>(operand)];
  const int64_t count = d.elements(), stride = d.shape.size() > 0 && count > 1 ? d.layout.strides[d.shape.size() - 1] : 1;
  if (d.dtype == DType::f32 && stride == 1) {
    product.addresses.push_back({place, operand, 0});
    return ok();
  }
  if (constant) {
    const DType type = d.dtype;
    const int64_t offset = d.layout.offset;
    kernel.packings.push_back({operand, 4 * count,
                               "cuda.channels:" + std::string(name_of(type)) + ":" + std::to_string(count) + "@" +
                                   std::to_string(stride) + "+" + std::to_string(offset),
                               [=](const std::byte* from, std::byte* to, Executor&) {
                                 for (int64_t i = 0; i < count; ++i)
                                   store_element(DType::f32, load_element(type, from + (offset + i * stride) * size_of(type)),
                                                 to + 4 * i);
                               }});
    product.addresses.push_back({place, operand, 0});
    return ok();
  }
  TensorDesc wide{DType::f32, d.shape, {}};
  wide.layout = row_major(d.shape);
  Stage convert;
  convert.params = PointwiseParams{1, {{}}};
  convert.inputs = {d}, convert.outputs = {wide};
  SPARKLE_TRY(launch, pointwise_launch(convert, shop, {operand}, kWorkspace, at));
  kernel.launches.push_back(std::move(launch));
  product.addresses.push_back({place, kWorkspace, at});
  at += rounded_up(4 * count, 256);
  return ok();
}

}  // namespace sparkle::cuda
