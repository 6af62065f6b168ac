// The fields of every operator, listed once each, for its text form (graph_text.cc): fields(v, op) calls v("name", field) as
// the visit() of a record does. Operators that bind() leaves in no graph (Shape, Range, Einsum ...) have none.
#pragma once

#include "base/record.h"
#include "graph/ops.h"

namespace sparkle {

std::string_view name_of(AutoPad pad);
bool parse_name(std::string_view text, AutoPad& pad);
std::string_view name_of(ReshapeOp::Form form);
bool parse_name(std::string_view text, ReshapeOp::Form& form);
std::string_view name_of(ResizeOp::Keep keep);
bool parse_name(std::string_view text, ResizeOp::Keep& keep);
bool parse_name(std::string_view text, DType& type);

// A field that may be absent: whether it is given, then its value.
template <class V, class T>
void optional_field(V& v, std::string_view given_name, std::string_view name, std::optional<T>& field) {
  bool given = field.has_value();
  T value = field.value_or(T{});
  v(given_name, given), v(name, value);
  field = given ? std::optional<T>(value) : std::nullopt;
}

template <class V, class Op>
void window_fields(V& v, Op& o) {
  v("kernel", o.kernel), v("strides", o.strides), v("dilations", o.dilations);
  v("pads_begin", o.pads_begin), v("pads_end", o.pads_end);
}
template <class V>
void range_fields(V& v, std::optional<QuantizedRange>& clip) {
  bool given = clip.has_value();
  QuantizedRange range = clip.value_or(QuantizedRange{});
  v("clips", given), v("low", range.low), v("high", range.high);
  clip = given ? std::optional<QuantizedRange>(range) : std::nullopt;
}

template <class V>
void fields(V& v, ConvOp& o) {
  window_fields(v, o);
  v("auto_pad", o.auto_pad), v("groups", o.groups), v("transposed", o.transposed);
  v("output_padding", o.output_padding), v("output_shape", o.output_shape);
}
template <class V>
void fields(V& v, PoolOp& o) {
  v("kind", o.kind);
  window_fields(v, o);
  v("auto_pad", o.auto_pad), v("ceil_mode", o.ceil_mode), v("count_pad", o.count_pad), v("p", o.p);
  v("storage_order", o.storage_order);
}
template <class V>
void fields(V& v, MatMulOp& o) {
  v("gemm", o.gemm), v("transpose_a", o.transpose_a), v("transpose_b", o.transpose_b), v("alpha", o.alpha), v("beta", o.beta);
}
template <class V>
void fields(V& v, PointwiseNode& o) {
  v("op", o.op), v("a", o.a), v("b", o.b);
}
template <class V>
void fields(V& v, CastOp& o) {
  v("to", o.to), v("saturate", o.saturate), v("rounding", o.rounding);
}
template <class V>
void fields(V& v, BatchNormalizationOp& o) {
  v("epsilon", o.epsilon);
}
template <class V>
void fields(V& v, InstanceNormalizationOp& o) {
  v("epsilon", o.epsilon);
}
template <class V>
void fields(V& v, LayerNormalizationOp& o) {
  v("axis", o.axis), v("epsilon", o.epsilon), v("centred", o.centred);
}
template <class V>
void fields(V& v, GroupNormalizationOp& o) {
  v("groups", o.groups), v("epsilon", o.epsilon);
}
template <class V>
void fields(V& v, MeanVarianceNormalizationOp& o) {
  v("axes", o.axes);
}
template <class V>
void fields(V& v, LpNormalizationOp& o) {
  v("axis", o.axis), v("p", o.p);
}
template <class V>
void fields(V& v, LocalResponseOp& o) {
  v("size", o.size), v("alpha", o.alpha), v("beta", o.beta), v("bias", o.bias);
}
template <class V>
void fields(V& v, ReduceOp& o) {
  v("kind", o.kind), v("axes", o.axes), v("keep_dims", o.keep_dims), v("noop_if_no_axes", o.noop_if_no_axes);
  v("all_spatial", o.all_spatial);
}
template <class V>
void fields(V& v, SoftmaxOp& o) {
  v("axis", o.axis), v("logarithm", o.logarithm), v("to_the_end", o.to_the_end);
}
template <class V>
void fields(V& v, AttentionOp& o) {
  v("query_heads", o.query_heads), v("key_heads", o.key_heads), v("causal", o.causal);
  optional_field(v, "scaled", "scale", o.scale);
  v("softcap", o.softcap), v("left", o.left), v("right", o.right), v("scores", o.scores);
  v("unseen_is_nan", o.unseen_is_nan);
}
template <class V>
void fields(V& v, RotaryEmbeddingOp& o) {
  v("interleaved", o.interleaved), v("heads", o.heads), v("turned", o.turned);
}
template <class V>
void fields(V& v, ConcatOp& o) {
  v("axis", o.axis);
}
template <class V>
void fields(V& v, SplitOp& o) {
  v("axis", o.axis), v("sizes", o.sizes);
}
template <class V>
void fields(V& v, SliceOp& o) {
  v("starts", o.starts), v("ends", o.ends), v("axes", o.axes), v("steps", o.steps);
}
template <class V>
void fields(V& v, ReshapeOp& o) {
  v("form", o.form), v("target", o.target), v("allow_zero", o.allow_zero), v("target_given", o.target_given);
}
template <class V>
void fields(V& v, TransposeOp& o) {
  v("permutation", o.permutation);
}
template <class V>
void fields(V& v, ExpandOp& o) {
  v("target", o.target);
}
template <class V>
void fields(V& v, TileOp& o) {
  v("repeats", o.repeats);
}
template <class V>
void fields(V& v, PadOp& o) {
  v("mode", o.mode), v("begin", o.begin), v("end", o.end), v("value", o.value), v("given", o.given);
}
template <class V>
void fields(V& v, ResizeOp& o) {
  v("params", o.params), v("given_scales", o.given_scales), v("axes", o.axes), v("keep", o.keep), v("antialias", o.antialias);
}
template <class V>
void fields(V& v, GridSampleOp& o) {
  v("params", o.params);
}
template <class V>
void fields(V& v, DeformConvOp& o) {
  window_fields(v, o);
  v("groups", o.groups), v("offset_groups", o.offset_groups);
}
template <class V>
void fields(V& v, DepthToSpaceOp& o) {
  v("block", o.block), v("columns_first", o.columns_first);
}
template <class V>
void fields(V& v, SpaceToDepthOp& o) {
  v("block", o.block), v("columns_first", o.columns_first);
}
template <class V>
void fields(V& v, GatherOp& o) {
  v("axis", o.axis);
}
template <class V>
void fields(V& v, ArgOp& o) {
  v("smallest", o.smallest), v("axis", o.axis), v("keep_dims", o.keep_dims), v("last", o.last);
}
template <class V>
void fields(V& v, TopKOp& o) {
  v("axis", o.axis), v("k", o.k), v("largest", o.largest);
}
template <class V>
void fields(V& v, CumSumOp& o) {
  v("axis", o.axis), v("exclusive", o.exclusive), v("reverse", o.reverse);
}
template <class V>
void fields(V& v, TriluOp& o) {
  v("upper", o.upper), v("diagonal", o.diagonal);
}
template <class V>
void fields(V& v, GatherElementsOp& o) {
  v("axis", o.axis);
}
template <class V>
void fields(V& v, GatherNDOp& o) {
  v("batch_axes", o.batch_axes);
}
template <class V>
void fields(V& v, ScatterElementsOp& o) {
  v("axis", o.axis), v("reduction", o.reduction);
}
template <class V>
void fields(V& v, ScatterNDOp& o) {
  v("reduction", o.reduction);
}
template <class V>
void fields(V& v, OneHotOp& o) {
  v("axis", o.axis), v("depth", o.depth);
}
template <class V>
void fields(V& v, CenterCropPadOp& o) {
  v("axes", o.axes), v("target", o.target), v("given", o.given);
}
template <class V>
void fields(V& v, NonMaxSuppressionOp& o) {
  v("centers", o.centers), v("most", o.most), v("overlap", o.overlap), v("threshold", o.threshold);
  v("has_threshold", o.has_threshold);
}
template <class V>
void fields(V& v, QuantizeOp& o) {
  v("axis", o.axis), v("block", o.block), v("to", o.to), v("saturate", o.saturate);
}
template <class V>
void fields(V& v, DequantizeOp& o) {
  v("axis", o.axis), v("block", o.block);
  optional_field(v, "typed", "to", o.to);
}
template <class V>
void fields(V&, DynamicQuantizeOp&) {}
template <class V>
void fields(V& v, QuantizedConvOp& o) {
  fields(v, o.conv);
  range_fields(v, o.clip);
}
template <class V>
void fields(V& v, QuantizedMatMulOp& o) {
  fields(v, o.matmul);
  range_fields(v, o.clip);
}
template <class V>
void fields(V& v, QuantizedAddOp& o) {
  range_fields(v, o.clip);
}
template <class V>
void fields(V& v, QuantizedAverageOp& o) {
  v("channels_last", o.channels_last);
}

}  // namespace sparkle
