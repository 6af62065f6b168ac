// The definition of integer stages: plain loops, sums in 64 bits.
#include <cstring>

#include "families/values/element.h"
#include "families/integers/integers.h"
#include "families/loops/walk.h"

namespace sparkle {
namespace {

int64_t load(const TensorView& view, int64_t at) {
  const std::byte* place = view.data + (view.desc.layout.offset + at) * size_of(view.desc.dtype);
  if (view.desc.dtype == DType::u8) return static_cast<uint8_t>(*place);
  if (view.desc.dtype == DType::i8) return static_cast<int8_t>(*place);
  return static_cast<int64_t>(load_element(view.desc.dtype, place));
}

// What belongs to one output channel.
struct Channel {
  int64_t a_zero = 0, b_zero = 0, bias = 0;
  int32_t y_zero = 0;
  float scale = 0;
};

class Operands {
 public:
  Operands(const Epilogue& e, std::span<const TensorView> inputs, const TensorView& output)
      : inputs_(inputs), at_(integer_operands(e)), y_(output), range_(output_range(output.desc.dtype, e)) {}

  Channel channel(int64_t k) const {
    Channel c;
    c.a_zero = value(at_.a_zero, 0), c.b_zero = value(at_.b_zero, k), c.bias = value(at_.bias, k);
    if (at_.scale < 0) return c;
    const TensorView& scale = inputs_[static_cast<size_t>(at_.scale)];
    c.scale = scale.at_origin<float>()[k * stride(scale)];
    c.y_zero = static_cast<int32_t>(value(at_.y_zero, 0));
    return c;
  }
  void store(int64_t sum, const Channel& c, int64_t at) const {
    auto wrapped = static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint64_t>(sum + c.bias)));
    if (at_.scale >= 0) wrapped = requantized(wrapped, c.scale, c.y_zero, range_);
    const DType type = y_.desc.dtype;
    store_element(type, static_cast<double>(wrapped), y_.data + (y_.desc.layout.offset + at) * size_of(type));
  }

 private:
  static int64_t stride(const TensorView& view) {
    const Dims& shape = view.desc.shape;
    return shape.empty() || shape.back() == 1 ? 0 : view.desc.layout.strides.back();
  }
  int64_t value(int operand, int64_t k) const {
    if (operand < 0) return 0;
    const TensorView& view = inputs_[static_cast<size_t>(operand)];
    return load(view, k * stride(view));
  }
  std::span<const TensorView> inputs_;
  IntegerOperands at_;
  const TensorView& y_;
  IntegerRange range_;
};

}  // namespace

void integer_window_reference(const Window& f, int64_t groups, const Epilogue& e, std::span<const TensorView> inputs,
                              const TensorView& output) {
  const FeatureMap x = feature_map(inputs[0].desc), w = feature_map(inputs[1].desc), y = feature_map(output.desc);
  const int64_t group_c = x.c / groups, group_k = y.c / groups;
  const Operands operands(e, inputs, output);
  const auto inside = [](int64_t at, int64_t size) { return at >= 0 && at < size; };
  for (int64_t k = 0; k < y.c; ++k) {
    const Channel channel = operands.channel(k);
    for_each_index({y.n, y.d, y.h, y.w}, [&](const Dims& o) {
      int64_t sum = 0;
      for_each_index({f.filter[0], f.filter[1], f.filter[2]}, [&](const Dims& tap) {
        int64_t place[3];
        for (int i = 0; i < 3; ++i) {
          const auto s = static_cast<size_t>(i);
          place[i] = o[i + 1] * f.stride[s] - f.pad_begin[s] + tap[i] * f.dilation[s];
        }
        if (!inside(place[0], x.d) || !inside(place[1], x.h) || !inside(place[2], x.w)) return;
        const int64_t x_at = o[0] * x.image_stride + place[0] * x.plane_stride + place[1] * x.row_stride +
                             place[2] * x.pixel_stride + k / group_k * group_c * x.channel_stride;
        const int64_t w_at = k * w.image_stride + tap[0] * w.plane_stride + tap[1] * w.row_stride + tap[2] * w.pixel_stride;
        for (int64_t c = 0; c < group_c; ++c)
          sum += (load(inputs[0], x_at + c * x.channel_stride) - channel.a_zero) *
                 (load(inputs[1], w_at + c * w.channel_stride) - channel.b_zero);
      });
      operands.store(
          sum, channel,
          o[0] * y.image_stride + k * y.channel_stride + o[1] * y.plane_stride + o[2] * y.row_stride + o[3] * y.pixel_stride);
    });
  }
}

void integer_dense_reference(const Epilogue& e, std::span<const TensorView> inputs, const TensorView& output) {
  const Dims& shape = output.desc.shape;
  const int rank = shape.size();
  const int64_t depth = inputs[0].desc.shape.back();
  // Stride of `axis` counted from the end; 0 where the axis is missing or broadcast.
  const auto stride = [](const TensorDesc& desc, int axis) {
    const int at = desc.shape.size() - 1 - axis;
    return at < 0 || desc.shape[at] == 1 ? int64_t{0} : desc.layout.strides[at];
  };
  const TensorDesc &a = inputs[0].desc, &b = inputs[1].desc;
  const Operands operands(e, inputs, output);
  for_each_index(shape, [&](const Dims& index) {
    const Channel channel = operands.channel(index[rank - 1]);
    int64_t a_at = 0, b_at = 0, y_at = 0;
    for (int i = 0; i < rank; ++i) {
      const int axis = rank - 1 - i;
      if (axis != 0) a_at += index[i] * stride(a, axis);
      if (axis != 1) b_at += index[i] * stride(b, axis);
      y_at += index[i] * stride(output.desc, axis);
    }
    int64_t sum = 0;
    for (int64_t k = 0; k < depth; ++k)
      sum += (load(inputs[0], a_at + k * stride(a, 0)) - channel.a_zero) *
             (load(inputs[1], b_at + k * stride(b, 1)) - channel.b_zero);
    operands.store(sum, channel, y_at);
  });
}

}  // namespace sparkle
