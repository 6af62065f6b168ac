// How kernels whose products have filters as rows let outputs of 16 bits go, where there is no residual: sums are scaled,
// activated and rounded in the registers that products leave them in, and change places through shared memory as matrices that
// are stored transposed: 16 pixels of a warp's 16 filters at a time, eight filters of a pixel a thread.
#pragma once

#include "backends/cuda/kernels/activation.cuh"
#include "backends/cuda/kernels/gemm_index.cuh"

namespace sparkle::cuda {

// Whether they may: eight filters side by side are 16 bytes.
SPARKLE_DEVICE bool filters_in_words(const GemmRecord& g) {
  return g.vectors != 0 && g.before + g.after == 0 && (g.y_type == Element::f16 || g.y_type == Element::bf16);
}

// What the sums of a thread's two filters, eight apart, are multiplied by, and what is added: asked for before the products.
struct FilterTerms {
  float scale[2] = {}, bias[2] = {};

  // `first` filter of the warp, of the instance.
  SPARKLE_DEVICE void load(const GemmRecord& record, int32_t instance, int32_t first, uint32_t lane) {
    SPARKLE_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int32_t filter = first + static_cast<int32_t>(lane / 4) + 8 * i;
      const int32_t at = instance * record.channel_instance[3] + filter;
      const bool there = filter < record.n;
      scale[i] = there && record.scale != nullptr ? load_global(record.scale + at * record.scale_stride) : 1.0f;
      bias[i] = there && record.bias != nullptr ? load_global(static_cast<const float*>(record.bias) + at * record.bias_stride)
                                                : 0.0f;
    }
  }
};

// Of 16 filters by kColumns pixels of a warp. `strip`: kStripBytes of shared memory that are its own.
template <int kColumns>
struct FiltersOut {
  static constexpr int kPixels = 16, kParts = kColumns / kPixels, kPartBytes = kPixels * 32, kStripBytes = 2 * kPartBytes;

  // place(pixel) tells the element of y at which the instance's first filter of a pixel lies, less than 0 where it is no
  // output.
  template <class Place>
  SPARKLE_DEVICE static void finish(const GemmRecord& g, const FilterTerms& terms, SharedAddress strip, uint32_t lane,
                                    int32_t first, const float (&sums)[kColumns / 2], Place place) {
    const float scale[2] = {g.alpha * terms.scale[0], g.alpha * terms.scale[1]};
    // Halves of a pixel's 32 bytes change places in every other four pixels, so that eight rows lie in all banks.
    const SharedAddress put = strip + (lane / 16 * 8 + lane % 8) * 32 + (lane / 8 % 2 ^ lane % 8 / 4) * 16;
    const SharedAddress take = strip + lane / 2 * 32 + (lane % 2 ^ lane / 8 % 2) * 16;
    const int32_t own = first + static_cast<int32_t>(lane % 2 * 8);
    const auto out = [&]<bool kAnyActivation>(int part, float(&v)[8]) {
      SPARKLE_UNROLL
      for (int e = 0; e < 8; ++e) v[e] = v[e] * scale[e / 2 % 2] + terms.bias[e / 2 % 2];
      const SharedAddress half = static_cast<uint32_t>(part % 2 * kPartBytes);  // lanes still read the other one
      const bool relu = g.activation == 1;
      if constexpr (kAnyActivation) {
        SPARKLE_UNROLL
        for (int e = 0; e < 8; ++e) v[e] = activated(g.activation, v[e], g.a, g.b);
      }
      uint32_t words[4];
      if (g.y_type == Element::f16) {
        SPARKLE_UNROLL
        for (int e = 0; e < 4; ++e) words[e] = relu ? halfs_of<true>(v[2 * e], v[2 * e + 1]) : halfs_of(v[2 * e], v[2 * e + 1]);
      } else {
        SPARKLE_UNROLL
        for (int e = 0; e < 4; ++e)
          words[e] = relu ? bfloats_of<true>(v[2 * e], v[2 * e + 1]) : bfloats_of(v[2 * e], v[2 * e + 1]);
      }
      store_matrix_4_transposed(put + half, words);
      sync_warp();
      const Words4 w = load_shared_16(take + half);
      const int64_t at = place(static_cast<uint32_t>(part * kPixels) + lane / 2);
      if (own < g.n && at >= 0) store_global(reinterpret_cast<Words4*>(static_cast<uint16_t*>(g.y) + at + own), w);
    };
    float v[8];
    if (g.activation <= 1) {  // the commonest: each part has its registers
      SPARKLE_UNROLL
      for (int part = 0; part < kParts; ++part) {
        SPARKLE_UNROLL
        for (int e = 0; e < 8; ++e) v[e] = sums[8 * part + e];
        out.template operator()<false>(part, v);
      }
    } else {
      SPARKLE_ROLLED
      for (int part = 0; part < kParts; ++part) {
        SPARKLE_UNROLL
        for (int i = 0; i < kParts; ++i) {  // registers have no number at run time
          if (i != part) continue;
          SPARKLE_UNROLL
          for (int e = 0; e < 8; ++e) v[e] = sums[8 * i + e];
        }
        out.template operator()<true>(part, v);
      }
    }
    sync_warp();
  }
};

}  // namespace sparkle::cuda
