#include "backends/cpu/gemm/integers/integer_columns.h"

#include <algorithm>

#include "families/gemm/gemm.h"
#include "families/integers/integers.h"

namespace sparkle::cpu {
namespace {

int32_t byte_at(const std::byte* from, DType type, int64_t i) {
  return type == DType::u8 ? static_cast<int32_t>(static_cast<uint8_t>(from[i])) : static_cast<int8_t>(from[i]);
}
// Stride of a list of one value or one per channel.
int64_t list_stride(const TensorDesc& desc) {
  return desc.shape.empty() || desc.shape.back() == 1 ? 0 : desc.layout.strides.back();
}

}  // namespace

IntegerFactors integer_factors(const IntegerGeometry& g, const CpuLaunch& launch, const std::byte* packed) {
  IntegerFactors o{reinterpret_cast<const uint8_t*>(launch.inputs[0]), packed, launch.outputs[0]};
  if (g.copies) {
    auto* copy = reinterpret_cast<uint8_t*>(launch.workspace);
    copy_left(g, o.a, copy, *launch.executor);
    o.a = copy;
  }
  return o;
}

void prepare_columns(const Stage& stage, const IntegerGeometry& geometry, bool less_128, const CpuLaunch& launch,
                     const std::byte* packed, IntegerColumns& lists) {
  const GemmGeometry& g = geometry.gemm;
  const auto& params = get<GemmParams>(stage.params);
  const IntegerOperands at = integer_operands(params.epilogue);
  const auto columns = static_cast<size_t>(g.weights.matrices * g.padded_n);
  const auto operand = [&](int i) { return launch.inputs[static_cast<size_t>(i)]; };
  const auto desc = [&](int i) -> const TensorDesc& { return stage.inputs[static_cast<size_t>(i)]; };
  const int32_t a_zero =
      byte_at(operand(at.a_zero), desc(at.a_zero).dtype, 0) + (geometry.move_left ? 128 : 0) - (less_128 ? 128 : 0);
  const int64_t zero_stride = list_stride(desc(at.b_zero));
  // Only groups have channels of their own; the matrices of a batch share them.
  const bool groups = params.loader == Loader::window;
  const auto channel = [&](int64_t matrix, int64_t n) { return (groups ? matrix * g.n : 0) + std::min(n, g.n - 1); };
  const auto b_zero = [&](int64_t k) {
    return byte_at(operand(at.b_zero), desc(at.b_zero).dtype, k * zero_stride) - (geometry.move_right ? 128 : 0);
  };
  lists.common.b_zero = b_zero(0);
  // Files list a zero point per channel where all are the same: then rows need no sums, or one correction.
  const int64_t channels = zero_stride == 0 ? 1 : desc(at.b_zero).shape.back();
  bool one_zero = true;
  for (int64_t k = 1; k < channels; ++k) one_zero = one_zero && b_zero(k) == lists.common.b_zero;
  if (!one_zero) {
    lists.b_zero = std::make_unique_for_overwrite<int32_t[]>(columns);
    for (int64_t m = 0; m < g.weights.matrices; ++m)
      for (int64_t n = 0; n < g.padded_n; ++n) lists.b_zero[static_cast<size_t>(m * g.padded_n + n)] = b_zero(channel(m, n));
  }
  if (at.scale >= 0) {
    lists.scale = std::make_unique_for_overwrite<float[]>(columns);
    float* scale = lists.scale.get();
    const auto* from = reinterpret_cast<const float*>(operand(at.scale));
    const int64_t stride = list_stride(desc(at.scale));
    for (int64_t m = 0; m < g.weights.matrices; ++m)
      for (int64_t n = 0; n < g.padded_n; ++n) scale[m * g.padded_n + n] = from[channel(m, n) * stride];
    const IntegerRange range = output_range(stage.outputs[0].dtype, params.epilogue);
    lists.common.y_zero = byte_at(operand(at.y_zero), desc(at.y_zero).dtype, 0);
    lists.common.low = static_cast<float>(range.low - lists.common.y_zero);
    lists.common.high = static_cast<float>(range.high - lists.common.y_zero);
  }
  const auto* bias = at.bias >= 0 ? reinterpret_cast<const int32_t*>(operand(at.bias)) : nullptr;
  const int64_t bias_stride = bias ? list_stride(desc(at.bias)) : 0;
  const auto* sums = reinterpret_cast<const int32_t*>(packed + geometry.packed_weights);
  lists.corrections = std::make_unique_for_overwrite<int32_t[]>(columns * g.classes.size());
  auto* to = reinterpret_cast<uint32_t*>(lists.corrections.get());  // unsigned: sums wrap
  for (const RowClass& rows : g.classes) {
    const auto depth = static_cast<uint32_t>(rows.steps[0] / geometry.padded_depth * geometry.depth);
    for (int64_t m = 0; m < g.weights.matrices; ++m, to += g.padded_n) {
      for (int64_t n = 0; n < g.padded_n; ++n) {
        const int64_t k = channel(m, n);
        to[n] = (bias ? static_cast<uint32_t>(bias[k * bias_stride]) : 0) +
                depth * static_cast<uint32_t>(a_zero) * static_cast<uint32_t>(b_zero(k));
      }
      if (a_zero == 0) continue;
      for (const GemmRun& run : rows.chunks[0])
        for (int64_t tap = run.k / geometry.padded_depth; tap < (run.k + run.length) / geometry.padded_depth; ++tap) {
          const int32_t* sum = sums + (m * geometry.taps + tap) * g.padded_n;
          for (int64_t n = 0; n < g.padded_n; ++n) to[n] -= static_cast<uint32_t>(a_zero) * static_cast<uint32_t>(sum[n]);
        }
    }
  }
}

}  // namespace sparkle::cpu
