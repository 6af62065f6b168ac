// The definition of the gemm family: plain loops, sums in double precision, any layout and stride. Types: f32, f16, f64, and
// 8-bit floats as factors;
// whole numbers lie in gemm_integers.cc, 8-bit ones with an epilogue in families/integers/integers.h.
#include <bit>

#include "families/values/element.h"
#include "families/gemm/gemm_family.h"
#include "families/gemm/gemm_shape.h"
#include "families/integers/integers.h"

namespace sparkle {

double rounded_to(OperandType type, double value) {
  if (type == OperandType::own) return value;
  if (type == OperandType::tf32) {
    // The 13 bits of f32's mantissa that tf32 lacks are rounded away; a carry is the next exponent, past the largest infinity.
    const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value));
    if ((bits & 0x7f800000) == 0x7f800000) return value;  // infinities and NaN
    return std::bit_cast<float>((bits + 0xfff + (bits >> 13 & 1)) & ~uint32_t{0x1fff});
  }
  const DType narrow = type == OperandType::f16 ? DType::f16 : DType::bf16;
  std::byte bytes[2];
  store_element(narrow, value, bytes);
  return load_element(narrow, bytes);
}

namespace {

double load(const TensorView& t, int64_t at) {
  if (t.desc.dtype == DType::f64) return t.at_origin<double>()[at];
  if (size_of(t.desc.dtype) == 2)
    return load_element(t.desc.dtype, reinterpret_cast<const std::byte*>(t.at_origin<uint16_t>() + at));
  if (size_of(t.desc.dtype) == 1) return load_element(t.desc.dtype, t.at_origin<std::byte>() + at);  // 8-bit floats
  return static_cast<double>(t.at_origin<float>()[at]);
}
// An operand of the products.
double factor(const TensorView& t, int64_t at, OperandType type) { return rounded_to(type, load(t, at)); }
void store(const TensorView& t, int64_t at, double value) {
  if (t.desc.dtype == DType::f64) {
    t.at_origin<double>()[at] = value;
  } else if (size_of(t.desc.dtype) == 2) {
    store_element(t.desc.dtype, value, reinterpret_cast<std::byte*>(t.at_origin<uint16_t>() + at));
  } else {
    t.at_origin<float>()[at] = static_cast<float>(value);
  }
}

// Adds `count` products of two operands' elements, each at its stride, to a sum, one after the other.
double add_products(double sum, const TensorView& a, int64_t a_at, int64_t a_stride, const TensorView& b, int64_t b_at,
                    int64_t b_stride, int64_t count, OperandType type) {
  if (a.desc.dtype == DType::f32 && b.desc.dtype == DType::f32 && type == OperandType::own) {
    const float *x = a.at_origin<float>() + a_at, *w = b.at_origin<float>() + b_at;
    for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i * a_stride]) * static_cast<double>(w[i * b_stride]);
    return sum;
  }
  for (int64_t i = 0; i < count; ++i) sum += factor(a, a_at + i * a_stride, type) * factor(b, b_at + i * b_stride, type);
  return sum;
}

// Finishes one sum: `channel` indexes scale and bias, `place(view)` is the element of a residual that belongs to it.
template <class Place>
double finish(const Epilogue& e, std::span<const TensorView> operands, double sum, int64_t channel, Place&& place) {
  size_t next = 0;
  const auto per_channel = [&] {
    const TensorView& t = operands[next++];
    return load(t, channel * stride_from_end(t.desc, 0));
  };
  double v = e.alpha * sum;
  if (e.scale) v *= per_channel();
  if (e.bias) v += per_channel();
  for (int i = 0; i < e.residuals_before; ++i, ++next) v += load(operands[next], place(operands[next]));
  v = activate(e.activation, e.a, e.b, v);
  for (int i = 0; i < e.residuals_after; ++i, ++next) v += load(operands[next], place(operands[next]));
  if (!e.has_post_op()) return v;
  std::vector<double> values{v};
  for (int i = 0; i < e.post_op_operands(); ++i, ++next) values.push_back(load(operands[next], place(operands[next])));
  return evaluate(e.post_op, values);
}

void window_reference(const GemmParams& p, std::span<const TensorView> inputs, const TensorView& output) {
  const FeatureMap x = feature_map(inputs[0].desc), y = feature_map(output.desc), w = feature_map(inputs[1].desc);
  const int64_t group_c = x.c / p.groups, group_k = y.c / p.groups;
  const Window& f = p.window;
  const auto inside = [](int64_t at, int64_t size) { return at >= 0 && at < size; };
  for (int64_t n = 0; n < y.n; ++n)
    for (int64_t k = 0; k < y.c; ++k)
      for (int64_t z = 0; z < y.d; ++z)
        for (int64_t r = 0; r < y.h; ++r)
          for (int64_t q = 0; q < y.w; ++q) {
            double sum = 0;
            for (int64_t t0 = 0; t0 < f.filter[0]; ++t0)
              for (int64_t t1 = 0; t1 < f.filter[1]; ++t1)
                for (int64_t t2 = 0; t2 < f.filter[2]; ++t2) {
                  const int64_t d = z * f.stride[0] - f.pad_begin[0] + t0 * f.dilation[0];
                  const int64_t h = r * f.stride[1] - f.pad_begin[1] + t1 * f.dilation[1];
                  const int64_t v = q * f.stride[2] - f.pad_begin[2] + t2 * f.dilation[2];
                  if (!inside(d, x.d) || !inside(h, x.h) || !inside(v, x.w)) continue;
                  const int64_t xat = n * x.image_stride + d * x.plane_stride + h * x.row_stride + v * x.pixel_stride;
                  const int64_t wat = k * w.image_stride + t0 * w.plane_stride + t1 * w.row_stride + t2 * w.pixel_stride;
                  sum = add_products(sum, inputs[0], xat + k / group_k * group_c * x.channel_stride, x.channel_stride,
                                     inputs[1], wat, w.channel_stride, group_c, p.operands);
                }
            const auto place = [&](const TensorView& t) {
              const FeatureMap map = feature_map(t.desc);
              // An axis of size 1 broadcasts whatever its stride.
              return (map.n > 1 ? n * map.image_stride : 0) + (map.c > 1 ? k * map.channel_stride : 0) +
                     (map.d > 1 ? z * map.plane_stride : 0) + (map.h > 1 ? r * map.row_stride : 0) +
                     (map.w > 1 ? q * map.pixel_stride : 0);
            };
            const double value = finish(p.epilogue, inputs.subspan(2), sum, k, place);
            store(output,
                  n * y.image_stride + k * y.channel_stride + z * y.plane_stride + r * y.row_stride + q * y.pixel_stride,
                  value);
          }
}

void dense_reference(const GemmParams& p, std::span<const TensorView> inputs, const TensorView& output) {
  const TensorDesc& y = output.desc;
  const int rank = y.shape.size();
  const int64_t depth = inputs[0].desc.shape.back();
  const int64_t a_k = stride_from_end(inputs[0].desc, 0), b_k = stride_from_end(inputs[1].desc, 1);
  Dims index = Dims::filled(rank, 0);
  for (int64_t i = 0; i < y.shape.product(); ++i) {
    // The place of the current index in an operand, its last `skip` axes left out.
    const auto place = [&](const TensorDesc& desc, int skip_axis) {
      int64_t at = 0;
      for (int axis = 0; axis < rank; ++axis)
        if (rank - 1 - axis != skip_axis) at += index[axis] * stride_from_end(desc, rank - 1 - axis);
      return at;
    };
    const int64_t a_at = place(inputs[0].desc, 0), b_at = place(inputs[1].desc, 1);
    const double sum = add_products(0, inputs[0], a_at, a_k, inputs[1], b_at, b_k, depth, p.operands);
    const double value =
        finish(p.epilogue, inputs.subspan(2), sum, index[rank - 1], [&](const TensorView& t) { return place(t.desc, -1); });
    store(output, place(y, -1), value);
    for (int axis = rank - 1; axis >= 0 && ++index[axis] == y.shape[axis]; --axis) index[axis] = 0;
  }
}

}  // namespace

void gemm_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const auto& p = get<GemmParams>(params);
  if (inputs[0].desc.dtype == DType::u8 || inputs[0].desc.dtype == DType::i8) {
    if (p.loader == Loader::dense) return integer_dense_reference(p.epilogue, inputs, outputs[0]);
    return integer_window_reference(p.window, p.groups, p.epilogue, inputs, outputs[0]);
  }
  const bool whole = !is_float(inputs[0].desc.dtype) && inputs[0].desc.dtype == outputs[0].desc.dtype;
  if (p.loader == Loader::dense && whole) return gemm_integers(p, inputs, outputs[0]);
  if (p.loader == Loader::dense) return dense_reference(p, inputs, outputs[0]);
  window_reference(p, inputs, outputs[0]);
}

}  // namespace sparkle
