// The definition of the gemm family: plain loops, sums in double precision, any layout and pitch. Types: f32, f16 and f64;
// whole numbers lie in gemm_integers.cc, 8-bit ones with an epilogue in families/integers.h.
#include <bit>

#include "families/element.h"
#include "families/gemm/gemm_family.h"
#include "families/gemm/gemm_shape.h"
#include "families/integers.h"

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
  if (t.desc.dtype == DType::f16)
    return load_element(DType::f16, reinterpret_cast<const std::byte*>(t.at_origin<uint16_t>() + at));
  return static_cast<double>(t.at_origin<float>()[at]);
}
// An operand of the products.
double factor(const TensorView& t, int64_t at, OperandType type) { return rounded_to(type, load(t, at)); }
void store(const TensorView& t, int64_t at, double value) {
  if (t.desc.dtype == DType::f64) {
    t.at_origin<double>()[at] = value;
  } else if (t.desc.dtype == DType::f16) {
    store_element(DType::f16, value, reinterpret_cast<std::byte*>(t.at_origin<uint16_t>() + at));
  } else {
    t.at_origin<float>()[at] = static_cast<float>(value);
  }
}

// Adds `count` products of two operands' elements, each at its pitch, to a sum, one after the other.
double add_products(double sum, const TensorView& a, int64_t a_at, int64_t a_pitch, const TensorView& b, int64_t b_at,
                    int64_t b_pitch, int64_t count, OperandType type) {
  if (a.desc.dtype == DType::f32 && b.desc.dtype == DType::f32 && type == OperandType::own) {
    const float *x = a.at_origin<float>() + a_at, *w = b.at_origin<float>() + b_at;
    for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i * a_pitch]) * static_cast<double>(w[i * b_pitch]);
    return sum;
  }
  for (int64_t i = 0; i < count; ++i) sum += factor(a, a_at + i * a_pitch, type) * factor(b, b_at + i * b_pitch, type);
  return sum;
}

// Finishes one sum: `channel` indexes scale and bias, `place(view)` is the element of a residual that belongs to it.
template <class Place>
double finish(const Epilogue& e, std::span<const TensorView> operands, double sum, int64_t channel, Place&& place) {
  size_t next = 0;
  const auto per_channel = [&] {
    const TensorView& t = operands[next++];
    return load(t, channel * pitch_from_end(t.desc, 0));
  };
  double v = e.alpha * sum;
  if (e.scale) v *= per_channel();
  if (e.bias) v += per_channel();
  for (int i = 0; i < e.residuals_before; ++i, ++next) v += load(operands[next], place(operands[next]));
  v = activate(e.activation, e.a, e.b, v);
  for (int i = 0; i < e.residuals_after; ++i, ++next) v += load(operands[next], place(operands[next]));
  if (!e.has_tail()) return v;
  std::vector<double> values{v};
  for (int i = 0; i < e.tail_operands(); ++i, ++next) values.push_back(load(operands[next], place(operands[next])));
  return evaluate(e.tail, values);
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
                  const int64_t xat = n * x.pitch_n + d * x.pitch_d + h * x.pitch_h + v * x.pitch_w;
                  const int64_t wat = k * w.pitch_n + t0 * w.pitch_d + t1 * w.pitch_h + t2 * w.pitch_w;
                  sum = add_products(sum, inputs[0], xat + k / group_k * group_c * x.pitch_c, x.pitch_c, inputs[1], wat,
                                     w.pitch_c, group_c, p.operands);
                }
            const auto place = [&](const TensorView& t) {
              const FeatureMap map = feature_map(t.desc);
              // An axis of size 1 broadcasts whatever its pitch.
              return (map.n > 1 ? n * map.pitch_n : 0) + (map.c > 1 ? k * map.pitch_c : 0) + (map.d > 1 ? z * map.pitch_d : 0) +
                     (map.h > 1 ? r * map.pitch_h : 0) + (map.w > 1 ? q * map.pitch_w : 0);
            };
            const double value = finish(p.epilogue, inputs.subspan(2), sum, k, place);
            store(output, n * y.pitch_n + k * y.pitch_c + z * y.pitch_d + r * y.pitch_h + q * y.pitch_w, value);
          }
}

void dense_reference(const GemmParams& p, std::span<const TensorView> inputs, const TensorView& output) {
  const TensorDesc& y = output.desc;
  const int rank = y.shape.size();
  const int64_t depth = inputs[0].desc.shape.back();
  const int64_t a_k = pitch_from_end(inputs[0].desc, 0), b_k = pitch_from_end(inputs[1].desc, 1);
  Dims index = Dims::filled(rank, 0);
  for (int64_t i = 0; i < y.shape.product(); ++i) {
    // The place of the current index in an operand, its last `skip` axes left out.
    const auto place = [&](const TensorDesc& desc, int skip_axis) {
      int64_t at = 0;
      for (int axis = 0; axis < rank; ++axis)
        if (rank - 1 - axis != skip_axis) at += index[axis] * pitch_from_end(desc, rank - 1 - axis);
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
