// Fourier transforms, the windows before them and mel filters (graph/composed/compose_spectra.cc).
#include <algorithm>

#include "onnx/node.h"
#include "onnx/tensor_proto.h"

namespace sparkle {
namespace {

// The type that the attribute 'output_datatype' numbers; a reason where there is none.
std::optional<std::string> read_type(Node& node, DType& type) {
  const int number = static_cast<int>(std::clamp<int64_t>(node.integer("output_datatype", 1), 0, 1000));
  const auto known = dtype_from_onnx(number);
  if (!known) return "its attribute 'output_datatype' is " + onnx_type_name(number);
  type = *known;
  return std::nullopt;
}

OpParams read_dft(Node& node) {
  DftOp op;
  op.inverse = node.flag("inverse", false), op.one_sided = node.flag("onesided", false);
  op.axis = node.opset < 20 ? node.integer("axis", 1) : -2;  // an input since
  return ComposedOp{op};
}

OpParams read_stft(Node& node) { return ComposedOp{StftOp{node.flag("onesided", true)}}; }

enum class WindowKind : uint8_t { hann, hamming, blackman };
template <WindowKind kKind>
OpParams read_window(Node& node) {
  WindowOp op;
  if (kKind == WindowKind::hamming) op.a0 = 25.0 / 46, op.a1 = 1 - op.a0;
  if (kKind == WindowKind::blackman) op.a0 = 0.42, op.a1 = 0.5, op.a2 = 0.08;
  op.periodic = node.flag("periodic", true);
  if (auto why = read_type(node, op.dtype)) return UnknownOp{*why};
  return ComposedOp{op};
}

OpParams read_mel_weights(Node& node) {
  MelWeightsOp op;
  if (auto why = read_type(node, op.dtype)) return UnknownOp{*why};
  return ComposedOp{op};
}

constexpr OperatorRow kRows[] = {
    {"DFT", read_dft, 1},
    {"STFT", read_stft, 2},
    {"HannWindow", read_window<WindowKind::hann>, 1},
    {"HammingWindow", read_window<WindowKind::hamming>, 1},
    {"BlackmanWindow", read_window<WindowKind::blackman>, 1},
    {"MelWeightMatrix", read_mel_weights, 5},
};
}  // namespace

std::span<const OperatorRow> signal_operators() { return kRows; }

}  // namespace sparkle
