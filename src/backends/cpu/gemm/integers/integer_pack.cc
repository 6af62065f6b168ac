#include "backends/cpu/gemm/integers/integer_pack.h"

#include <algorithm>
#include <cstring>

#include "families/gemm/gemm_shape.h"
#include "families/loops/grain.h"
#include "families/loops/walk.h"

namespace sparkle::cpu {
namespace {

int64_t up4(int64_t n) { return (n + 3) / 4 * 4; }

// Feature maps [N, G*C, spatial] seen as rows [N, spatial, G] of C elements.
TensorDesc rows_of_maps(const TensorDesc& x, int64_t groups, int64_t channels) {
  TensorDesc rows{x.dtype, {}, {}};
  const auto add = [&](int64_t size, int64_t stride) { rows.shape.push_back(size), rows.layout.strides.push_back(stride); };
  add(x.shape[0], x.layout.strides[0]);
  for (int i = 2; i < x.shape.size(); ++i) add(x.shape[i], x.layout.strides[i]);
  if (groups > 1) add(groups, channels * x.layout.strides[1]);
  add(channels, x.layout.strides[1]);
  return rows;
}

// The padded stage of a window: channels of each group rounded up, channels last.
void pad_window(Stage& stage, IntegerGeometry& g) {
  const auto& p = get<GemmParams>(stage.params);
  TensorDesc& x = stage.inputs[0];
  g.depth = x.shape[1] / p.groups, g.padded_depth = up4(g.depth), g.taps = p.window.taps();
  g.copies = g.move_left || g.depth != g.padded_depth;
  stage.inputs[1].shape[1] = g.padded_depth;
  if (!g.copies) return;
  TensorDesc padded{x.dtype, x.shape, {}};
  padded.shape[1] = p.groups * g.padded_depth;
  padded.layout = channels_last(padded.shape);
  g.from = rows_of_maps(x, p.groups, g.depth), g.to = rows_of_maps(padded, p.groups, g.padded_depth);
  g.copied_bytes = padded.elements();
  x = padded;
}

void pad_dense(Stage& stage, IntegerGeometry& g) {
  TensorDesc& a = stage.inputs[0];
  const int last = a.shape.size() - 1;
  g.depth = a.shape[last], g.padded_depth = up4(g.depth);
  g.copies = g.move_left || g.depth != g.padded_depth || (g.depth > 1 && a.layout.strides[last] != 1);
  const int k_axis = stage.inputs[1].shape.size() - 2;
  stage.inputs[1].shape[k_axis] = g.padded_depth;
  if (!g.copies) return;
  // Axes along which the operand is the same stay so.
  TensorDesc padded = a;
  padded.layout.offset = 0;
  padded.shape[last] = g.padded_depth, padded.layout.strides[last] = 1;
  int64_t step = g.padded_depth;
  g.from = a;
  for (int i = last - 1; i >= 0; --i) {
    if (a.layout.strides[i] == 0 || a.shape[i] == 1) {
      padded.layout.strides[i] = 0;
      g.from.shape[i] = 1;
      continue;
    }
    padded.layout.strides[i] = step;
    step *= a.shape[i];
  }
  g.to = padded;
  g.copied_bytes = step;
  a = padded;
}

}  // namespace

int64_t IntegerGeometry::packed_bytes() const { return packed_weights + gemm.weights.matrices * taps * gemm.padded_n * 4; }

Result<IntegerGeometry> integer_geometry(const Stage& stage, const GemmSchedule& schedule, int64_t lanes, bool signed_left) {
  Stage padded = stage;
  // Only the operands of the sum have a part in the geometry.
  auto& p = get<GemmParams>(padded.params);
  p.epilogue = {};
  padded.inputs.resize(2);
  IntegerGeometry g;
  g.move_left = stage.inputs[0].dtype == DType::i8 && !signed_left;
  g.move_right = stage.inputs[1].dtype == DType::u8;
  if (p.loader == Loader::window) {
    pad_window(padded, g);
  } else {
    pad_dense(padded, g);
  }
  GemmSchedule whole = schedule;
  whole.kc = 0;
  SPARKLE_TRY(gemm, gemm_geometry(padded, whole, lanes));
  g.gemm = std::move(gemm);
  g.packed_weights = g.gemm.weights.matrices * g.gemm.padded_n * g.gemm.k;
  return g;
}

void copy_left(const IntegerGeometry& g, const uint8_t* a, uint8_t* copy, Executor& executor) {
  // Rows are cut into tasks along the outer axes; the two innermost ones are walked with additions.
  const Dims& shape = g.from.shape;
  const int rank = shape.size();
  const int64_t inner = rank > 1 ? shape[rank - 2] : 1, k_strides = g.from.layout.strides[rank - 1];
  int64_t outer = 1;
  for (int i = 0; i < rank - 2; ++i) outer *= shape[i];
  const int64_t from_stride = rank > 1 ? g.from.layout.strides[rank - 2] : 0,
                to_stride = rank > 1 ? g.to.layout.strides[rank - 2] : 0;
  const uint8_t move = g.move_left ? 0x80 : 0;
  const int64_t tasks = moving_tasks(outer * inner * g.depth, outer, executor.width());
  for_each_range(executor, outer, tasks, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t rest = row, from_at = 0, to_at = 0;
      for (int i = rank - 3; i >= 0; --i) {
        from_at += rest % shape[i] * g.from.layout.strides[i];
        to_at += rest % shape[i] * g.to.layout.strides[i];
        rest /= shape[i];
      }
      const uint8_t* from = a + from_at;
      uint8_t* to = copy + to_at;
      // Pictures: three channels become four, four bytes read as one number wherever another pixel follows.
      if (g.depth == 3 && k_strides == 1 && from_stride == 3 && to_stride == 4) {
        const uint32_t moves = move * 0x010101u;
        int64_t j = 0;
        for (; j + 1 < inner; ++j) {
          uint32_t pixel;
          std::memcpy(&pixel, from + 3 * j, 4);
          pixel = (pixel & 0xffffffu) ^ moves;
          std::memcpy(to + 4 * j, &pixel, 4);
        }
        for (; j < inner; ++j) {
          for (int64_t i = 0; i < 3; ++i) to[4 * j + i] = static_cast<uint8_t>(from[3 * j + i] ^ move);
          to[4 * j + 3] = 0;
        }
        continue;
      }
      for (int64_t j = 0; j < inner; ++j, from += from_stride, to += to_stride) {
        for (int64_t i = 0; i < g.depth; ++i) to[i] = static_cast<uint8_t>(from[i * k_strides] ^ move);
        for (int64_t i = g.depth; i < g.padded_depth; ++i) to[i] = 0;
      }
    }
  });
}

void pack_weights(const IntegerGeometry& g, int64_t lanes, int64_t group, const uint8_t* weights, std::byte* packed,
                  Executor& executor) {
  const GemmWeights& w = g.gemm.weights;
  const int64_t panels = static_cast<int64_t>(g.gemm.panels.size()), total = w.matrices * panels;
  const uint8_t move = g.move_right ? 0x80 : 0;
  auto* sums = reinterpret_cast<int32_t*>(packed + g.packed_weights);
  const auto pack_one = [&](int64_t index) {
    const GemmPanel& panel = g.gemm.panels[static_cast<size_t>(index % panels)];
    const int64_t matrix = index / panels;
    int64_t offset = panel.column * w.n_stride;
    int64_t rest = matrix;
    for (size_t i = 6; i-- > 0; rest /= w.matrix_count[i]) offset += rest % w.matrix_count[i] * w.matrix_strides[i];
    const int64_t width = panel.vectors * lanes;
    auto* to = reinterpret_cast<uint8_t*>(packed) + (matrix * g.gemm.padded_n + panel.column) * g.gemm.k;
    int64_t tap = 0;
    for (int64_t t = 0; t < w.k_count[0]; ++t)
      for (int64_t r = 0; r < w.k_count[1]; ++r)
        for (int64_t s = 0; s < w.k_count[2]; ++s, ++tap) {
          const uint8_t* from = weights + offset + t * w.k_strides[0] + r * w.k_strides[1] + s * w.k_strides[2];
          int32_t* sum = sums + (matrix * g.taps + tap) * g.gemm.padded_n + panel.column;
          std::memset(sum, 0, static_cast<size_t>(width) * 4);
          for (int64_t c = 0; c < g.padded_depth; c += 4, to += 4 * width)
            for (int64_t n = 0; n < width; ++n)
              for (int64_t i = 0; i < 4; ++i) {
                const bool real = n < panel.columns && c + i < g.depth;
                const uint8_t value = real ? from[n * w.n_stride + (c + i) * w.k_strides[3]] ^ move : 0;
                to[i / group * group * width + n * group + i % group] = value;
                sum[n] += static_cast<int8_t>(value);
              }
        }
  };
  const int64_t tasks = moving_tasks(g.packed_weights, total, executor.width());
  for_each_range(executor, total, tasks, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) pack_one(i);
  });
}

}  // namespace sparkle::cpu
