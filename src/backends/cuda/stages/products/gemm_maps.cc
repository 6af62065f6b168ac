#include "backends/cuda/stages/products/gemm_maps.h"

#include <algorithm>

#include "backends/cuda/kernels/gemm_halo_record.h"
#include "backends/cuda/kernels/gemm_tma_record.h"
#include "backends/cuda/kernels/gemm_variants.h"
#include "families/integers/integers.h"
#include "families/windows/window.h"

namespace sparkle::cuda {
namespace {

// What cuTensorMapEncode* are called with.
struct OperandMaps {
  CuTensorType type = CuTensorType::f16;
  uint64_t x_sizes[4] = {}, x_strides[3] = {};  // c,w,h,n; bytes between w,h,n
  int lower[2] = {}, upper[2] = {};             // along w,h
  uint32_t x_steps[4] = {1, 1, 1, 1};
  uint64_t w_sizes[3] = {}, w_strides[2] = {};
  uint32_t channels = 0, pixels = 0, filters = 0;
};

OperandMaps maps_of(const Stage& stage, const GemmSetup& setup, const CudaTile& tile, int cluster) {
  const GemmRecord& g = setup.record;
  const auto& p = get<GemmParams>(stage.params);
  const int64_t element = size_of(stage.inputs[0].dtype);
  OperandMaps m;
  const DType type = stage.inputs[0].dtype;
  // The engine rounds to TF32 on the way.
  m.type = element == 1          ? CuTensorType::u8
           : type == DType::f32  ? CuTensorType::tf32
           : type == DType::bf16 ? CuTensorType::bf16
                                 : CuTensorType::f16;
  const FeatureMap x = p.loader == Loader::window ? feature_map(stage.inputs[0]) : FeatureMap{1, g.k, 1, 1, g.m};
  const int64_t sizes[4] = {x.c, x.w, x.h, x.n}, strides[3] = {g.x_strides[3], g.x_strides[2], g.x_strides[0]};
  for (size_t i = 0; i < 4; ++i) m.x_sizes[i] = static_cast<uint64_t>(std::max<int64_t>(1, sizes[i]));
  // An axis of one element may have any stride, but maps want one.
  int64_t dense = x.c * element;
  for (size_t i = 0; i < 3; ++i) {
    m.x_strides[i] = static_cast<uint64_t>(sizes[i + 1] > 1 ? strides[i] * element : rounded_up(dense, 16));
    dense = static_cast<int64_t>(m.x_strides[i] * m.x_sizes[i + 1]);
  }
  for (size_t i = 0; i < 2; ++i) {
    const size_t axis = 2 - i;
    const auto out = static_cast<int>(g.rows_by[axis].size), size = static_cast<int>(m.x_sizes[i + 1]);
    m.lower[i] = -g.pad[axis];
    m.upper[i] = (out - 1) * g.stride[axis] + 1 - size - g.pad[axis];
    m.x_steps[i + 1] = static_cast<uint32_t>(g.stride[axis]);
  }
  const int64_t channels = g.channels_by.size, taps = int64_t{g.filter[1]} * g.filter[2];
  m.w_sizes[0] = static_cast<uint64_t>(channels), m.w_sizes[1] = static_cast<uint64_t>(taps);
  m.w_sizes[2] = static_cast<uint64_t>(setup.instances * g.n);
  m.w_strides[0] = static_cast<uint64_t>(channels * element), m.w_strides[1] = static_cast<uint64_t>(g.w_stride * element);
  m.channels = static_cast<uint32_t>(tile.k_bytes / element), m.pixels = static_cast<uint32_t>(tile.m);
  m.filters = static_cast<uint32_t>(tile.n / cluster);
  return m;
}

// Of filters as rows of k: a tap of some filters at a time.
Status map_filters(const Driver& d, const OperandMaps& m, const void* w, TensorMap& to) {
  CuTensorMap map;
  constexpr uint32_t kOnes[3] = {1, 1, 1};
  const uint32_t box[3] = {m.channels, 1, m.filters};
  SPARKLE_CU(d,
             d.encode_tiled(&map, m.type, 3, const_cast<void*>(w), m.w_sizes, m.w_strides, box, kOnes, 0,
                            CuTensorSwizzle::bytes_128, CuTensorPromotion::bytes_256, 0),
             "cuTensorMapEncodeTiled");
  std::copy(std::begin(map.words), std::end(map.words), to.words);
  return ok();
}

// Of outputs: boxes of columns of the rows of a warp; of a residual: of those of a tile.
Status map_rows(const Driver& d, const BoxMaps& b, const void* at, bool residual, TensorMap& to) {
  CuTensorMap map;
  constexpr uint32_t kOnes[3] = {1, 1, 1};
  const uint64_t sizes[3] = {b.columns, residual ? 1 : b.rows, b.rows};
  const uint64_t strides[2] = {residual ? b.residual_row : b.y_row, b.residual_row};
  const uint32_t box[3] = {b.box_columns, residual ? 1u : static_cast<uint32_t>(kBoxRows), static_cast<uint32_t>(kWgmmaM)};
  SPARKLE_CU(d,
             d.encode_tiled(&map, b.type, residual ? 3 : 2, const_cast<void*>(at), sizes, strides, box, kOnes, 0,
                            CuTensorSwizzle::bytes_128, CuTensorPromotion::bytes_256, 0),
             "cuTensorMapEncodeTiled");
  std::copy(std::begin(map.words), std::end(map.words), to.words);
  return ok();
}

// Whether row m of an instance lies m times the last stride from the first one. Axes of one element have any stride.
bool in_line(const GemmRecord& g, const int32_t (&strides)[4]) {
  int64_t rows = 1;
  for (size_t i = 3; i > 0; --i) {
    rows *= g.rows_by[i - 1].size;
    const int64_t size = i > 1 ? g.rows_by[i - 2].size : divided(g.m, rows);
    if (size > 1 && strides[i - 1] != rows * strides[3]) return false;
  }
  return true;
}

template <class T, size_t count>
std::string listed(const T (&values)[count], size_t from = 0, size_t to = count) {
  std::string text;
  for (size_t i = from; i < to; ++i) text += (i > from ? " x " : "") + std::to_string(values[i]);
  return text;
}
std::string words_of(const OperandMaps& m, const std::string& x) {
  return "    map of x: channels, columns, rows, images of " + listed(m.x_sizes) + ", " + x +
         "\n    map of w: channels, taps, filters of " + listed(m.w_sizes) + ", boxes of " + std::to_string(m.channels) +
         " x 1 x " + std::to_string(m.filters) + "\n";
}
std::string words_of(const BoxMaps& b) {
  const std::string sizes = std::to_string(b.columns) + " x " + std::to_string(b.rows), columns = std::to_string(b.box_columns);
  std::string text =
      "    map of y: columns, rows of " + sizes + ", boxes of " + columns + " x " + std::to_string(kBoxRows) + "\n";
  if (b.residual_row != 0)
    text +=
        "    map of the residual: columns, rows of " + sizes + ", boxes of " + columns + " x " + std::to_string(kWgmmaM) + "\n";
  return text;
}

}  // namespace

std::optional<BoxMaps> boxes_of(const Stage& stage, const GemmSetup& setup, const CudaTile& tile,
                                const EpiloguePlaces& places) {
  const GemmRecord& g = setup.record;
  const TensorDesc& y = stage.outputs[0];
  // What the tile's kernels have outputs of (BoxFormOf).
  const DType x = stage.inputs[0].dtype;
  const bool integers = sparkle::is_integer(stage.inputs);
  const int64_t bytes = size_of(y.dtype), line = 128 / bytes, chunk = 16 / bytes;
  if (tile.m != kWgmmaM || bytes != (integers ? 1 : x == DType::f32 ? 4 : 2)) return std::nullopt;
  const int residuals = g.before + g.after;
  if (residuals > 1 || (residuals == 1 && g.splits > 1)) return std::nullopt;
  if (setup.instances > 1 && (g.n % line != 0 || g.y_instance[3] != g.n)) return std::nullopt;
  const auto whole = [&](const TensorDesc& d, const int32_t(&strides)[4], int32_t channel) {
    return channel == 1 && strides[3] >= setup.instances * g.n && strides[3] % chunk == 0 && d.layout.offset % chunk == 0 &&
           in_line(g, strides);
  };
  BoxMaps b;
  b.columns = static_cast<uint64_t>(setup.instances) * static_cast<uint64_t>(g.n), b.rows = static_cast<uint64_t>(g.m);
  if (b.columns % static_cast<uint64_t>(chunk) != 0) return std::nullopt;  // stores end at whole 16 bytes
  if (!whole(y, g.y_strides, g.y_channel)) return std::nullopt;
  b.type = bytes == 1               ? CuTensorType::u8
           : bytes == 4             ? CuTensorType::f32
           : y.dtype == DType::bf16 ? CuTensorType::bf16
                                    : CuTensorType::f16;
  b.box_columns = static_cast<uint32_t>(line);
  b.y_row = static_cast<uint64_t>(g.y_strides[3] * bytes);
  if (residuals == 1) {
    if (!whole(stage.inputs[static_cast<size_t>(places.residual[0])], g.residual_strides[0], g.residual_channel[0]) ||
        (setup.instances > 1 && g.residual_instance[0][3] != g.n))
      return std::nullopt;
    b.residual_row = static_cast<uint64_t>(g.residual_strides[0][3] * bytes);
  }
  return b;
}

void map_operands(KernelLaunch& launch, const Workshop& shop, const Stage& stage, const GemmSetup& setup, const CudaTile& tile,
                  int cluster, const std::optional<BoxMaps>& boxes) {
  const OperandMaps maps = maps_of(stage, setup, tile, cluster);
  launch.maps = words_of(maps, "im2col from " + listed(maps.lower) + " to " + listed(maps.upper) + " by steps of " +
                                   listed(maps.x_steps, 1, 3) + ", boxes of " + std::to_string(maps.channels) +
                                   " channels by " + std::to_string(maps.pixels) + " pixels");
  if (boxes) launch.maps += words_of(*boxes);
  launch.finish = [context = shop.context, m = maps, boxes](std::byte* record) -> Status {
    auto& r = *reinterpret_cast<GemmTmaRecord*>(record);
    const Driver& d = context->driver();
    CuTensorMap map;
    SPARKLE_CU(d,
               d.encode_im2col(&map, m.type, 4, const_cast<void*>(r.gemm.x), m.x_sizes, m.x_strides, m.lower, m.upper,
                               m.channels, m.pixels, m.x_steps, 0, CuTensorSwizzle::bytes_128, CuTensorPromotion::bytes_256, 0),
               "cuTensorMapEncodeIm2col");
    // Drivers up to 13.1 set a bit for tensors below 128 KB that the engine stumbles over (so says CUTLASS, which clears it
    // too).
    constexpr uint64_t kSmall = 131072, kBit = uint64_t{1} << 21;
    if (d.version() <= 13010 && m.x_strides[2] * m.x_sizes[3] < kSmall) map.words[1] &= ~kBit;
    std::copy(std::begin(map.words), std::end(map.words), r.x.words);
    if (boxes) {
      SPARKLE_CHECK(map_rows(d, *boxes, r.gemm.y, false, r.y));
      if (boxes->residual_row != 0) SPARKLE_CHECK(map_rows(d, *boxes, r.gemm.residual[0], true, r.residual));
    }
    return map_filters(d, m, r.gemm.w, r.w);
  };
}

void map_halo(KernelLaunch& launch, const Workshop& shop, const Stage& stage, const GemmSetup& setup, const CudaTile& tile,
              const HaloTile& halo) {
  const uint32_t columns = static_cast<uint32_t>(halo.width), rows = static_cast<uint32_t>(halo.box_rows);
  const OperandMaps maps = maps_of(stage, setup, tile, 1);
  launch.maps = words_of(maps, "boxes of " + std::to_string(maps.channels) + " x " + std::to_string(columns) + " x " +
                                   std::to_string(rows) + " x 1");
  launch.finish = [context = shop.context, m = maps, columns, rows](std::byte* record) -> Status {
    auto& r = *reinterpret_cast<GemmHaloRecord*>(record);
    const Driver& d = context->driver();
    CuTensorMap map;
    constexpr uint32_t kOnes[4] = {1, 1, 1, 1};
    const uint32_t box[4] = {m.channels, columns, rows, 1};
    SPARKLE_CU(d,
               d.encode_tiled(&map, m.type, 4, const_cast<void*>(r.gemm.x), m.x_sizes, m.x_strides, box, kOnes, 0,
                              CuTensorSwizzle::bytes_128, CuTensorPromotion::bytes_256, 0),
               "cuTensorMapEncodeTiled");
    std::copy(std::begin(map.words), std::end(map.words), r.x.words);
    return map_filters(d, m, r.gemm.w, r.w);
  };
}

}  // namespace sparkle::cuda
