// Operators of a Graph: one small struct of resolved attributes each. What ONNX gives as an attribute in one opset and as a
// constant input in another lies here after inference has resolved it; fields marked [resolved] are empty before that.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/dims.h"
#include "base/dtype.h"
#include "families/values/narrow.h"
#include "families/pad/pad.h"
#include "families/pointwise/pointwise.h"
#include "families/pool/pool.h"
#include "families/reduce/reduce.h"
#include "families/resize/resize.h"
#include "families/sample/sample.h"
#include "graph/composed/composed_ops.h"
#include "graph/index_ops.h"

namespace sparkle {

enum class AutoPad : uint8_t { notset, valid, same_upper, same_lower };

// Inputs: x, w, b?. Window fields are per spatial axis, in the model's order and number. Transposed: ConvTranspose.
struct ConvOp {
  Dims kernel, strides, dilations, pads_begin, pads_end;  // empty fields take their defaults in inference [resolved]
  AutoPad auto_pad = AutoPad::notset;
  int64_t groups = 1;
  bool transposed = false;
  Dims output_padding, output_shape;  // transposed only
};

// Inputs: x. Global pooling is a ReduceOp. Outputs: y, indices?.
struct PoolOp {
  PoolKind kind = PoolKind::max;
  Dims kernel, strides, dilations, pads_begin, pads_end;  // [resolved]
  AutoPad auto_pad = AutoPad::notset;
  bool ceil_mode = false;
  bool count_pad = false;
  int64_t p = 2;
  int storage_order = 0;
};

// Inputs: a, b, c?. MatMul: numpy rules. Gemm: rank 2 with transposition, alpha, beta and an optional broadcast c.
struct MatMulOp {
  bool gemm = false;
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 1;
  bool whole_c = false;  // c has the product's shape (opset 6 without 'broadcast') [resolved] false, once that is checked
};

// How the inputs of an element-wise operator may differ in shape. Before opset 7 (Sum, Max ...: 8) not at all, or with the
// attribute 'broadcast' the second alone is repeated; numpy's rule since.
enum class Repeats : uint8_t { any, none, second };
// Inputs: 1 to 3 by the op's arity, broadcast. Sum, Mean, Min, Max of many inputs are read as chains. Clip since opset 11 has
// the inputs x, min?, max? (constants that replace a and b) until they are resolved.
struct PointwiseNode {
  PointwiseOp op = PointwiseOp::identity;
  double a = 0, b = 0;
  Repeats repeats = Repeats::any;  // [resolved] any, once inference has checked it
};

// Inputs: x, like? (whose type it is where `to` is not known). The other fields speak of 8-bit floats.
struct CastOp {
  DType to = DType::f32;  // [resolved]
  bool saturate = true;
  PowerRounding rounding = PowerRounding::up;
};

// Inputs: x, scale, bias, mean, variance (inference form only).
struct BatchNormalizationOp {
  double epsilon = 1e-5;
};
// Inputs: x, scale, bias.
struct InstanceNormalizationOp {
  double epsilon = 1e-5;
};
// Inputs: x, scale, bias?. Not centred: RMSNormalization, which takes no mean off.
struct LayerNormalizationOp {
  int64_t axis = -1;
  double epsilon = 1e-5;
  bool centred = true;
};
// Inputs: x, scale, bias. Scale and bias per channel (opset 21) or per group (opset 18).
struct GroupNormalizationOp {
  int64_t groups = 1;
  double epsilon = 1e-5;
};
// (x - mean) / (standard deviation + 1e-9) over the axes.
struct MeanVarianceNormalizationOp {
  Dims axes;  // [resolved] not negative
};
// x / norm along one axis: the sum of |x| (p = 1) or the root of the sum of squares (p = 2).
struct LpNormalizationOp {
  int64_t axis = -1;
  int64_t p = 2;
};
// y = x / (bias + alpha / size * sum of squares over neighbouring channels) ^ beta
struct LocalResponseOp {
  int64_t size = 1;
  double alpha = 1e-4, beta = 0.75, bias = 1;
};

// Inputs: x, axes? (constant).
struct ReduceOp {
  ReduceKind kind = ReduceKind::sum;
  Dims axes;  // [resolved] not negative
  bool keep_dims = true;
  bool noop_if_no_axes = false;
  bool all_spatial = false;  // global pooling: axes 2..rank-1
  bool to_the_end = false;   // all axes from the one in `axes` on [resolved] false
};

struct SoftmaxOp {
  int64_t axis = -1;
  bool logarithm = false;
  bool to_the_end = false;  // before opset 13: over all axes from `axis` on
};

// Inputs: q, k, v, mask?, past key?, past value?, lengths? (valid keys per batch). Rank 4: [batch, heads, rows, size]; rank 3:
// [batch, rows, heads * size]. Outputs: y, present key?, present value?, scores?.
struct AttentionOp {
  int64_t query_heads = 0, key_heads = 0;  // rank 3 only
  bool causal = false;
  bool unseen_is_nan = false;   // a query that sees no key: NaN, as of a Softmax, where ONNX's Attention has zeros
  std::optional<double> scale;  // [resolved]
  double softcap = 0;
  int64_t left = -1, right = -1;  // sliding window (opset 25); negative: no bound
  int64_t scores = 0;             // what the fourth output holds: ONNX's qk_matmul_output_mode
};
// Inputs: x, cosine, sine, positions?. x as Attention's q.
struct RotaryEmbeddingOp {
  bool interleaved = false;
  int64_t heads = 0;   // rank 3 only
  int64_t turned = 0;  // elements of a row that turn; 0: all
};

struct ConcatOp {
  int64_t axis = 0;
};
// Inputs: x, sizes? (constant). Outputs: the parts.
struct SplitOp {
  int64_t axis = 0;
  Dims sizes;
};  // sizes [resolved]
// Inputs: x, starts, ends, axes?, steps? (constants). One entry per axis of x after resolution.
struct SliceOp {
  Dims starts, ends, axes, steps;
};  // [resolved] starts, steps per axis of x; sizes are the output's
// Inputs: x, shape/axes? (constant): Reshape, Flatten, Squeeze, Unsqueeze, all the same once shapes are known.
struct ReshapeOp {
  enum class Form : uint8_t { reshape, flatten, squeeze, unsqueeze } form = Form::reshape;
  Dims target;  // the shape, the axes, or {axis}
  bool allow_zero = false;
  bool target_given = false;  // from an attribute
};
struct TransposeOp {
  Dims permutation;
};  // empty: reversed [resolved]
// Inputs: x, shape (constant).
struct ExpandOp {
  Dims target;
};  // [resolved] the output's shape
// Inputs: x, repeats (constant); opset 1: x, tiles, axis (scalars).
struct TileOp {
  Dims repeats;
};  // [resolved]
// Inputs: x, pads?, value?, axes? (constants).
struct PadOp {
  PadMode mode = PadMode::constant;
  Dims begin, end;
  double value = 0;
  bool given = false;
};  // [resolved]
// Inputs: x, roi?, scales?, sizes? (constants).
struct ResizeOp {
  ResizeParams params;               // scales and roi [resolved]
  std::vector<double> given_scales;  // from an attribute (opset 9 and before)
  Dims axes;
  enum class Keep : uint8_t { stretch, not_larger, not_smaller } keep = Keep::stretch;
  bool antialias = false;
};
// Inputs: x, grid.
struct GridSampleOp {
  SampleParams params;
};
// Inputs: x, w, offset, bias?, mask?. Window fields as ConvOp's.
struct DeformConvOp {
  Dims kernel, strides, dilations, pads_begin, pads_end;  // [resolved]
  int64_t groups = 1, offset_groups = 1;
};
struct DepthToSpaceOp {
  int64_t block = 1;
  bool columns_first = false;
};  // columns_first: CRD
struct SpaceToDepthOp {
  int64_t block = 1;
  bool columns_first = false;
};
struct GatherOp {
  int64_t axis = 0;
};

// Inputs: x, scale, zero point? (of the type that y gets; absent: zero). Scale and zero point are scalars, lists along `axis`,
// or with block > 0 shaped like x with that axis divided by the block.
struct QuantizeOp {
  int64_t axis = 1;
  int64_t block = 0;
  DType to = DType::u8;  // [resolved] the zero point's type where that is given
  bool saturate = true;  // speaks of 8-bit floats
};
struct DequantizeOp {
  int64_t axis = 1;
  int64_t block = 0;
  std::optional<DType> to;  // absent: the scale's type
};
struct DynamicQuantizeOp {};
// Quantised values between which a result stays, for what a Relu or Clip behind it asks; absent: its type's.
struct QuantizedRange {
  int64_t low = 0, high = 0;
};
// ConvInteger and QLinearConv. Inputs: x, w, bias? (i32), zero points of x?, w?, y?, scales of x?, w?, y?. Without scales the
// result is the sum (i32).
struct QuantizedConvOp {
  ConvOp conv;
  std::optional<QuantizedRange> clip;
};
// MatMulInteger and QLinearMatMul; inputs alike: a, b, bias? ...
struct QuantizedMatMulOp {
  MatMulOp matmul;
  std::optional<QuantizedRange> clip;
};
// QLinearAdd. Inputs: a, scale, zero point?, b, scale, zero point?, y's scale, y's zero point?.
struct QuantizedAddOp {
  std::optional<QuantizedRange> clip;
};
// QLinearGlobalAveragePool. Inputs: x, scale, zero point?, y's scale, y's zero point?.
struct QuantizedAverageOp {
  bool channels_last = false;
};

// Folded wherever their inputs are known; none of them reaches the planner.
struct ShapeOp {
  int64_t start = 0;
  std::optional<int64_t> end;
};
struct SizeOp {};
struct ConstantOfShapeOp {
  DType dtype = DType::f32;
  double value = 0;
};
struct RangeOp {};

// Operators that the host runs between the parts of a model, since only the data tells the path or the shapes of what comes
// (run/parts). Their bodies are graphs of their own: the inputs that the specification names, then what they read of the graph
// around them. An Op has its own inputs, `own` of them, then what each body reads, body by body, in the order of its inputs.
enum class HostKind : uint8_t {
  branch,  // If
  loop,
  scan,
  non_zero,
  compress,
  unique,
  roi_align,
  sequence_construct,
  sequence_empty,
  sequence_at,
  sequence_insert,
  sequence_erase,
  sequence_length,
  split_to_sequence,
  concat_from_sequence,
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right,
  bit_cast,
  determinant,
};
struct Graph;
struct HostOp {
  HostKind kind = HostKind::branch;
  std::vector<std::shared_ptr<const Graph>> bodies{};
  int64_t own = 0;
  int64_t scanned = 0;                                   // Scan: how many inputs are cut into slices
  std::vector<int64_t> in_axes{}, out_axes{};            // Scan; empty: all 0
  std::vector<int64_t> in_backwards{}, out_backwards{};  // Scan, 1 for backwards; empty: none is
  std::optional<int64_t> axis{};                         // Compress, Unique: none is given: of all elements in a row
  bool sorted = true;                                    // Unique
  bool keep_axis = true;                                 // SplitToSequence; ConcatFromSequence without it makes a new axis
  DType dtype = DType::f32;                              // SequenceEmpty, BitCast
  bool average = true, half_pixel = true;                // RoiAlign
  int64_t height = 1, width = 1, samples = 0;            // RoiAlign
  double scale = 1;                                      // RoiAlign
};

// An operator that is not supported: kept so that reports name it.
struct UnknownOp {
  std::string why;
};

using OpParams =
    std::variant<UnknownOp, ConvOp, PoolOp, MatMulOp, PointwiseNode, CastOp, BatchNormalizationOp, InstanceNormalizationOp,
                 LayerNormalizationOp, GroupNormalizationOp, MeanVarianceNormalizationOp, LpNormalizationOp, LocalResponseOp,
                 ReduceOp, SoftmaxOp, AttentionOp, RotaryEmbeddingOp, ConcatOp, SplitOp, SliceOp, ReshapeOp, TransposeOp,
                 ExpandOp, TileOp, PadOp, ResizeOp, GridSampleOp, DeformConvOp, DepthToSpaceOp, SpaceToDepthOp, GatherOp,
                 ShapeOp, SizeOp, ConstantOfShapeOp, RangeOp, ArgOp, TopKOp, CumSumOp, TriluOp, GatherElementsOp, GatherNDOp,
                 ScatterElementsOp, ScatterNDOp, OneHotOp, CenterCropPadOp, EinsumOp, NonMaxSuppressionOp, QuantizeOp,
                 DequantizeOp, DynamicQuantizeOp, QuantizedConvOp, QuantizedMatMulOp, QuantizedAddOp, QuantizedAverageOp,
                 HostOp, ComposedOp>;

}  // namespace sparkle
