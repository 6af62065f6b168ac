// Operators that bind() writes with others once shapes are known (compose.h): the attributes of each. None of them reaches the
// planner.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/dims.h"
#include "base/dtype.h"
#include "families/pointwise/pointwise.h"

namespace sparkle {

// An activation of a gate: `op` on (scale * x), times `outer`: ScaledTanh has both, Affine is an affine of its own.
struct GateActivation {
  PointwiseOp op = PointwiseOp::tanh;
  double a = 0, b = 0;
  double scale = 1, outer = 1;
};

// RNN, GRU and LSTM. Inputs: x [steps, batch, size], w [directions * gates * hidden, size], bias of w's rows?, lengths
// [batch]?, first h [directions, batch, hidden]?, first c?; then for each direction kRecurrentWeights inputs: r [gates *
// hidden, hidden] (GRU: of its gates z and r alone), its bias?, peepholes [3 * hidden]?, GRU's r of the gate h, its bias?.
// Outputs: y [steps, directions, batch, hidden]?, last h [directions, batch, hidden]?, last c?. Gates in ONNX's order.
struct RecurrentOp {
  enum class Cell : uint8_t { rnn, gru, lstm } cell = Cell::lstm;
  int directions = 1;
  bool backwards = false;                   // one direction: from the last step on
  std::vector<GateActivation> activations;  // per direction: RNN f; GRU f, g; LSTM f, g, h
  double clip = 0;                          // of what activations read; 0: none
  bool input_forget = false;                // LSTM: what is not let in is kept
  bool linear_before_reset = false;         // GRU
};
inline constexpr size_t kRecurrentHead = 6, kRecurrentWeights = 5;

// Inputs: q, k, v, past?, decay?, beta?. Outputs: y, present?. ONNX's LinearAttention.
struct LinearAttentionOp {
  int64_t query_heads = 1, key_heads = 1;
  bool gated = false, delta = false;
  std::optional<double> scale;
};
// Inputs: x [batch, channels, length], w [channels, 1, k], bias?, past [batch, channels, k - 1]?. Outputs: y, present?.
struct CausalConvOp {
  bool silu = false;
};

// Inputs: x, length?, axis? (constants).
struct DftOp {
  bool inverse = false, one_sided = false;
  int64_t axis = -2;  // of the two last the one of complex numbers, which it cannot be
};
// Inputs: x [batch, length, 1 or 2], step (constant), window?, frame length? (constant).
struct StftOp {
  bool one_sided = true;
};
// Inputs: the size (constant). a0 - a1 cos(t) + a2 cos(2t), t from 0 to a full turn.
struct WindowOp {
  double a0 = 0.5, a1 = 0.5, a2 = 0;
  bool periodic = true;
  DType dtype = DType::f32;
};
// Inputs: bins, transform's length, sample rate, lowest and highest frequency in Hz (constants).
struct MelWeightsOp {
  DType dtype = DType::f32;
};

// Inputs: scores or log-probabilities [n, classes, ...], labels [n, ...], weights of classes?. Outputs: loss,
// log-probabilities?.
struct LossOp {
  enum class Reduction : uint8_t { none, sum, mean } reduction = Reduction::mean;
  bool softmax = false;
  std::optional<int64_t> ignored;
};

// Inputs: x, lengths [batch].
struct ReverseSequenceOp {
  int64_t time_axis = 0, batch_axis = 1;
};
// Inputs: cache, update, first places [batch]?.
struct TensorScatterOp {
  int64_t axis = -2;
  bool circular = false;
};
// Inputs: x, axis (constant).
struct CumProdOp {
  bool exclusive = false, reverse = false;
};
// Inputs: x, places, output shape? (constant).
struct MaxUnpoolOp {
  Dims kernel, strides, pads;
};
// Inputs: x [batch, channels * block, blocks], image's shape, block's shape (constants).
struct ColumnsToImageOp {
  Dims strides, dilations, pads;
};
// Inputs: theta [batch, 2, 3] or [batch, 3, 4], size (constant).
struct AffineGridOp {
  bool align_corners = false;
};
// Inputs: x [rows, columns], whose type it has unless `dtype` is given.
struct EyeLikeOp {
  std::optional<DType> dtype;
  int64_t diagonal = 0;
};

struct ComposedOp {
  std::variant<RecurrentOp, LinearAttentionOp, CausalConvOp, DftOp, StftOp, WindowOp, MelWeightsOp, LossOp, ReverseSequenceOp,
               TensorScatterOp, CumProdOp, MaxUnpoolOp, ColumnsToImageOp, AffineGridOp, EyeLikeOp>
      form;
};

// Whether the value of input i decides the shape of a result, or which operators it is composed of.
bool decides_by_value(const ComposedOp& op, size_t i);
// The type of the results, where it is not that of the first input.
std::optional<DType> result_type(const ComposedOp& op);

}  // namespace sparkle
