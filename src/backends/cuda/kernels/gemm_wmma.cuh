// The plain product by fragments: each warp makes 16 outputs by 16 maps, and for each 16 of k its lanes gather what these see, in
// fp16, before one product. Any layout, window and filter. What it takes for that shows what the other kernels bring.
#pragma once

#include "backends/cuda/kernels/gemm_finish.cuh"
#include "backends/cuda/ptx/wmma.cuh"

namespace sparkle::cuda {

inline constexpr int kWmmaThreads = 128;

// kFp16: operands are fp16, else fp32.
template <bool kFp16>
struct GemmWmma {
  static constexpr int kWarps = kWmmaThreads / 32, kSide = 16, kOperandBytes = kSide * kSide * 2;
  static constexpr int kWarpBytes = 2 * kOperandBytes + kSide * kSide * 4;

  SPARKLE_DEVICE static float element(const void* from, int64_t at) {
    if constexpr (kFp16) return float_of_half(load_global(static_cast<const uint16_t*>(from) + at));
    else return load_global(static_cast<const float*>(from) + at);
  }

  // Load: eight of k of a row, of pixels through the window and of filters, k side by side there.
  SPARKLE_DEVICE static void gather(const GemmRecord& record, SharedAddress to, const Origin& o, bool there, int32_t k,
                                    int32_t instance) {
    Words4 words{};
    SPARKLE_UNROLL
    for (int e = 0; e < 8; e += 2) {
      float v[2];
      SPARKLE_UNROLL
      for (int i = 0; i < 2; ++i) {
        uint32_t tap = static_cast<uint32_t>(k + e + i);
        const int32_t c = static_cast<int32_t>(fast_divmod(tap, record.channels_by));
        const int32_t s = static_cast<int32_t>(fast_divmod(tap, record.filter_by[1])) * record.dilation[2];
        const int32_t r = static_cast<int32_t>(fast_divmod(tap, record.filter_by[0])) * record.dilation[1];
        const int32_t t = static_cast<int32_t>(tap) * record.dilation[0];
        const bool valid = there && k + e + i < record.k && inside(o.d + t, record.x_size[0]) &&
                           inside(o.h + r, record.x_size[1]) && inside(o.w + s, record.x_size[2]);
        const int32_t at = o.element + t * record.x_strides[1] + r * record.x_strides[2] + s * record.x_strides[3] +
                           c * record.x_channel;
        v[i] = valid ? element(record.x, int64_t{instance} + at) : 0.0f;
      }
      words.v[e / 2] = halfs_of(v[0], v[1]);
    }
    store_shared_16(to, words);
  }
  SPARKLE_DEVICE static void take_filters(const GemmRecord& record, SharedAddress to, int32_t map, int32_t k, int32_t instance) {
    Words4 words{};
    SPARKLE_UNROLL
    for (int e = 0; e < 8; e += 2) {
      float v[2];
      SPARKLE_UNROLL
      for (int i = 0; i < 2; ++i) {
        const bool valid = map < record.n && k + e + i < record.k;
        v[i] = valid ? element(record.w, int64_t{instance} + int64_t{map} * record.w_stride + k + e + i) : 0.0f;
      }
      words.v[e / 2] = halfs_of(v[0], v[1]);
    }
    store_shared_16(to, words);
  }

  SPARKLE_DEVICE static void run(const GemmRecord& record) {
    // Sizes and memory: of the warp.
    const TilePlace tile = tile_place(record, static_cast<int32_t>(block_x()), record.tiles_m);
    const SharedAddress left = shared_base() + warp_id() * kWarpBytes, right = left + kOperandBytes, out = right + kOperandBytes;
    const int32_t row = static_cast<int32_t>(lane_id() / 2), k_first = static_cast<int32_t>(lane_id() % 2 * 8);
    const uint32_t own = static_cast<uint32_t>(row * kSide + k_first) * 2;
    const int32_t m = (tile.m * kWarps + static_cast<int32_t>(warp_id())) * kSide + row, map = tile.n * kSide + row;
    const Origin origin = origin_of(record, m);
    const Instance instance = instance_of(record, block_z());
    const int32_t x_instance = dot4(instance.v, record.x_instance), w_instance = dot4(instance.v, record.w_instance);

    float sums[8] = {};
    SPARKLE_ROLLED
    for (int32_t k = 0; k < record.k; k += kSide) {
      gather(record, left + own, origin, m < record.m, k + k_first, x_instance);
      take_filters(record, right + own, map, k + k_first, w_instance);
      sync_warp();
      // Multiply.
      uint32_t a[8], b[8];
      load_fragment_a(a, left, kSide);
      load_fragment_b(b, right, kSide);
      multiply_fragments(sums, a, b);
      sync_warp();
    }

    // Epilogue and store: eight maps of an output a lane.
    store_fragment(out, sums, kSide);
    sync_warp();
    const Words4 low = load_shared_16(out + own * 2), high = load_shared_16(out + own * 2 + 16);
    const uint32_t words[8] = {low.v[0], low.v[1], low.v[2], low.v[3], high.v[0], high.v[1], high.v[2], high.v[3]};
    Finish<Operand::f16> finish;
    finish.begin(record, tile.n * kSide + k_first, block_z());
    finish.row(record, m, words);
  }
};

}  // namespace sparkle::cuda
