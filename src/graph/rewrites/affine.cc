// A factor and a summand per channel after Conv, ConvTranspose, Gemm or MatMul go into its weights and bias, computed in
// double and rounded once:  s * (w * x + b) + t = (s w) * x + (s b + t).  BatchNormalization with constants is s = scale /
// sqrt(variance + epsilon), t = bias - s mean; where nothing takes it up it becomes fma(x, s, t).
#include <cmath>

#include "base/half_floats.h"
#include "graph/rewrites/rewrites.h"
#include "graph/evaluate/values.h"

namespace sparkle {
namespace {

struct Affine {
  std::vector<double> factor, summand;  // per output channel
};

// An operator with constant weights that can take an affine up.
struct Anchor {
  int64_t channels = 0;
  int rank = 0;  // of its output; 0: not known, channels are the last axis
  int channel_axis = 1;
};

bool find_anchor(Editor& e, int i, Anchor& anchor) {
  const Op& op = e.op(i);
  const HostTensor* w = e.constant_input(op, 1);
  if (!w || !is_float(w->dtype)) return false;
  const bool has_bias = op.inputs.size() > 2 && op.inputs[2] != kAbsent;
  const HostTensor* bias = has_bias ? e.constant(op.inputs[2]) : nullptr;
  if (has_bias && (!bias || bias->dtype != w->dtype)) return false;
  if (const auto* conv = std::get_if<ConvOp>(&op.params)) {
    if (w->shape.size() < 3 || conv->groups < 1 || w->shape[0] % conv->groups != 0 || w->elements() == 0) return false;
    anchor = {conv->transposed ? w->shape[1] * conv->groups : w->shape[0], w->shape.size(), 1};
  } else if (const auto* matmul = std::get_if<MatMulOp>(&op.params)) {
    if (w->shape.size() != 2 || w->elements() == 0) return false;
    anchor = {w->shape[matmul->gemm && matmul->transpose_b ? 0 : 1], matmul->gemm ? 2 : 0, 1};
    if (bias && !(bias->elements() == 1 || (bias->elements() == anchor.channels && bias->shape.back() == anchor.channels)))
      return false;
    if (bias && bias->shape.size() > (matmul->gemm ? 2 : 1)) return false;
    return true;
  } else {
    return false;
  }
  return !bias || bias->shape == Dims{anchor.channels};
}

// A constant that broadcasts as one value per channel, or one for all.
bool per_channel(const HostTensor* c, const Anchor& anchor, std::vector<double>& values) {
  if (!c || !is_float(c->dtype)) return false;
  const int rank = anchor.rank ? anchor.rank : 1, axis = anchor.rank ? anchor.channel_axis : 0;
  if (c->shape.size() > rank) return false;
  const int at = axis - (rank - c->shape.size());
  if (c->elements() != 1 && (at < 0 || c->shape[at] != anchor.channels || c->elements() != anchor.channels)) return false;
  values = as_doubles(*c);
  if (c->elements() == 1) values.assign(static_cast<size_t>(anchor.channels), values[0]);
  return true;
}

bool batch_affine(Editor& e, const Op& op, double epsilon, int64_t channels, Affine& f) {
  std::vector<double> p[4];
  for (size_t k = 0; k < 4; ++k) {
    const HostTensor* c = e.constant_input(op, k + 1);
    if (!c || c->shape != Dims{channels} || !is_float(c->dtype)) return false;
    p[k] = as_doubles(*c);
  }
  for (size_t k = 0; k < static_cast<size_t>(channels); ++k) {
    f.factor.push_back(p[0][k] / std::sqrt(p[3][k] + epsilon));
    f.summand.push_back(p[1][k] - f.factor[k] * p[2][k]);
  }
  return true;
}

// The affine that operator i applies to its input `x`.
bool read_affine(Editor& e, int i, TensorId x, const Anchor& anchor, Affine& f) {
  const Op& op = e.op(i);
  const auto channels = static_cast<size_t>(anchor.channels);
  if (const auto* batch = std::get_if<BatchNormalizationOp>(&op.params))
    return anchor.rank > 0 && op.inputs[0] == x && op.outputs.size() == 1 &&
           batch_affine(e, op, batch->epsilon, anchor.channels, f);
  const auto* node = std::get_if<PointwiseNode>(&op.params);
  if (!node) return false;
  f.factor.assign(channels, 1);
  f.summand.assign(channels, 0);
  if (node->op == PointwiseOp::affine || node->op == PointwiseOp::neg) {
    const bool negative = node->op == PointwiseOp::neg;
    f.factor.assign(channels, negative ? -1 : node->a);
    f.summand.assign(channels, negative ? 0 : node->b);
    return true;
  }
  if (op.inputs.size() == 3 && node->op == PointwiseOp::fma && op.inputs[0] == x)
    return per_channel(e.constant(op.inputs[1]), anchor, f.factor) && per_channel(e.constant(op.inputs[2]), anchor, f.summand);
  if (op.inputs.size() != 2) return false;
  const bool first = op.inputs[0] == x;
  std::vector<double> c;
  if (!per_channel(e.constant(op.inputs[first ? 1 : 0]), anchor, c)) return false;
  switch (node->op) {
    case PointwiseOp::add: f.summand = c; return true;
    case PointwiseOp::mul: f.factor = c; return true;
    case PointwiseOp::sub:
      f.summand = c;
      if (first)
        for (double& v : f.summand) v = -v;
      else f.factor.assign(channels, -1);
      return true;
    case PointwiseOp::div:
      if (!first) return false;
      for (size_t k = 0; k < channels; ++k) f.factor[k] = 1 / c[k];
      return true;
    default: return false;
  }
}

// y[o][k][i] = x[o][k][i] * factor[k]
template <class T>
void scale_block(const T* x, T* y, int64_t outer, const double* factor, int64_t channels, int64_t inner) {
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t k = 0; k < channels; ++k, x += inner, y += inner)
      for (int64_t i = 0; i < inner; ++i) y[i] = static_cast<T>(static_cast<double>(x[i]) * factor[k * (inner > 0)]);
}

bool scale(const HostTensor& x, HostTensor& y, int64_t offset, int64_t outer, const double* factor, int64_t channels,
           int64_t inner) {
  if (x.dtype == DType::f32) {
    scale_block(x.data<float>() + offset, y.data<float>() + offset, outer, factor, channels, inner);
  } else if (x.dtype == DType::f64) {
    scale_block(x.data<double>() + offset, y.data<double>() + offset, outer, factor, channels, inner);
  } else {
    const bool half = x.dtype == DType::f16;
    const int64_t count = outer * channels * inner;
    for (int64_t i = 0; i < count; ++i) {
      const uint16_t bits = x.data<uint16_t>()[offset + i];
      const float v = half ? half_to_float(bits) : bfloat16_to_float(bits);
      const auto scaled = static_cast<float>(static_cast<double>(v) * factor[i / inner % channels]);
      const uint16_t rounded = half ? float_to_half(scaled) : float_to_bfloat16(scaled);
      if (!std::isfinite(half ? half_to_float(rounded) : bfloat16_to_float(rounded))) return false;
      y.data<uint16_t>()[offset + i] = rounded;
    }
  }
  return true;
}

bool scaled_weights(const Op& op, const HostTensor& w, const std::vector<double>& factor, HostTensor& out) {
  out = HostTensor::zeros(w.dtype, w.shape);
  const auto channels = static_cast<int64_t>(factor.size());
  if (const auto* conv = std::get_if<ConvOp>(&op.params)) {
    const int64_t taps = w.elements() / (w.shape[0] * w.shape[1]);
    if (!conv->transposed) return scale(w, out, 0, 1, factor.data(), channels, w.shape[1] * taps);
    const int64_t rows = w.shape[0] / conv->groups, filters = w.shape[1];
    for (int64_t g = 0; g < conv->groups; ++g)
      if (!scale(w, out, g * rows * filters * taps, rows, factor.data() + g * filters, filters, taps)) return false;
    return true;
  }
  const auto& matmul = std::get<MatMulOp>(op.params);
  return matmul.gemm && matmul.transpose_b ? scale(w, out, 0, 1, factor.data(), channels, w.shape[1])
                                           : scale(w, out, 0, w.shape[0], factor.data(), channels, 1);
}

bool all_are(const std::vector<double>& values, double v) {
  for (double x : values)
    if (x != v) return false;
  return true;
}

bool all_finite(const HostTensor& t) {
  for (double v : as_doubles(t))
    if (!std::isfinite(v)) return false;
  return true;
}

// Puts `f` into the weights and bias of anchor operator `at`; false and nothing done where a value overflows.
bool absorb(Editor& e, int at, const Anchor& anchor, const Affine& f) {
  const HostTensor w = *e.constant_input(e.op(at), 1);
  for (size_t k = 0; k < f.factor.size(); ++k)
    if (!(std::abs(f.factor[k]) < 1e18) || !std::isfinite(f.summand[k])) return false;
  auto* matmul = std::get_if<MatMulOp>(&e.op(at).params);
  std::vector<double> bias(f.summand.size(), 0);
  const HostTensor* old = e.constant_input(e.op(at), 2);
  if (old) {
    const std::vector<double> values = as_doubles(*old);
    const double beta = matmul && matmul->gemm ? matmul->beta : 1;
    for (size_t k = 0; k < bias.size(); ++k) bias[k] = beta * values[values.size() == 1 ? 0 : k];
  }
  for (size_t k = 0; k < bias.size(); ++k) bias[k] = bias[k] * f.factor[k] + f.summand[k];
  HostTensor bias_tensor = from_doubles(w.dtype, {anchor.channels}, bias);
  if (!all_finite(bias_tensor)) return false;
  if (!all_are(f.factor, 1)) {
    HostTensor weights;
    if (!scaled_weights(e.op(at), w, f.factor, weights)) return false;
    const std::string name = e.tensor(e.op(at).inputs[1]).name;
    e.set_input(at, 1, e.add_constant(name, std::move(weights)));
  }
  if (old || !all_are(bias, 0)) {
    const std::string name = old ? e.tensor(e.op(at).inputs[2]).name : e.op(at).name + "_bias";
    e.set_input(at, 2, e.add_constant(name, std::move(bias_tensor)));
  }
  matmul = std::get_if<MatMulOp>(&e.op(at).params);
  if (matmul) matmul->beta = 1;
  return true;
}

bool fold_into_anchor(Editor& e, int i) {
  for (TensorId x : e.op(i).inputs) {
    const int at = e.producer(x);
    Anchor anchor;
    Affine f;
    if (at < 0 || !e.single_use(x) || !find_anchor(e, at, anchor) || !read_affine(e, i, x, anchor, f)) continue;
    return absorb(e, at, anchor, f) && e.bypass(i, x);
  }
  return false;
}

// BatchNormalization alone, once the rank is known.
bool batch_to_fma(Editor& e, int i) {
  const auto* batch = std::get_if<BatchNormalizationOp>(&e.op(i).params);
  const TensorId x = e.op(i).inputs[0];
  const GraphTensor& t = e.tensor(x);
  if (!batch || !t.known || !is_float(t.dtype) || e.op(i).outputs.size() != 1) return false;
  const HostTensor* scale = e.constant_input(e.op(i), 1);
  Affine f;
  if (!scale || scale->shape.size() != 1 || !batch_affine(e, e.op(i), batch->epsilon, scale->shape[0], f)) return false;
  Dims shape{scale->shape[0]};
  const DType type = t.dtype;
  for (int axis = 2; axis < t.shape.size(); ++axis) shape.push_back(1);
  HostTensor factor = from_doubles(type, shape, f.factor), summand = from_doubles(type, shape, f.summand);
  if (!all_finite(factor) || !all_finite(summand)) return false;
  const std::string name = e.op(i).name;
  const TensorId factor_id = e.add_constant(name + "_factor", std::move(factor));
  const TensorId summand_id = e.add_constant(name + "_summand", std::move(summand));
  e.op(i).params = PointwiseNode{PointwiseOp::fma};
  e.set_inputs(i, {x, factor_id, summand_id});
  return true;
}

}  // namespace

bool fold_affine(Editor& e) {
  bool changed = false;
  for (int i = 0; i < e.count(); ++i) {
    if (e.erased(i) || e.op(i).inputs.empty() || e.op(i).outputs.empty()) continue;
    const bool pointwise = std::holds_alternative<PointwiseNode>(e.op(i).params);
    const bool batch = std::holds_alternative<BatchNormalizationOp>(e.op(i).params);
    if (!pointwise && !batch) continue;
    if (fold_into_anchor(e, i) || (batch && batch_to_fma(e, i))) changed = true;
  }
  return changed;
}

}  // namespace sparkle
