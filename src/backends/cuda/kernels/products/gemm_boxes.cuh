// How kernels of sm_90a let outputs of 16 bits go: sums are scaled, activated and rounded in the registers that products leave
// them in, lie in shared memory as matrices, and from there the engine takes 16 rows of 128 bytes at a time. Neither a row's
// place nor a sum in f32 passes through shared memory or is counted by a thread. A residual comes through the ring of stages
// behind the tile's operands, so that it is there when the products end.
#pragma once

#include "backends/cuda/kernels/activation.cuh"
#include "backends/cuda/kernels/gemm_tma_record.h"
#include "backends/cuda/kernels/gemm_variants.h"
#include "backends/cuda/ptx/barrier.cuh"
#include "backends/cuda/ptx/memory.cuh"
#include "backends/cuda/ptx/threads.cuh"

namespace sparkle::cuda {

// What the sums of a tile's columns are multiplied by, and what is added: asked for before the products, so that nobody waits
// for it behind them. By the 128 threads of a warpgroup.
template <int kColumns>
struct ColumnTerms {
  static constexpr int kThreads = 128, kEach = (kColumns + kThreads - 1) / kThreads;
  float scale[kEach] = {}, bias[kEach] = {};

  // `first` column of the instance.
  SPARKLE_DEVICE void load(const GemmRecord& record, int32_t instance, int32_t first, uint32_t thread) {
    SPARKLE_UNROLL
    for (int i = 0; i < kEach; ++i) {
      const int32_t column = first + static_cast<int32_t>(thread) + i * kThreads;
      const int32_t at = instance * record.channel_instance[3] + column;
      const bool there = column < record.n;
      scale[i] = there && record.scale != nullptr ? load_global(record.scale + at * record.scale_stride) : 1.0f;
      bias[i] = there && record.bias != nullptr ? load_global(static_cast<const float*>(record.bias) + at * record.bias_stride)
                                                : 0.0f;
    }
  }
  // To shared memory that the warpgroup has by itself: of each column the factor and the summand.
  SPARKLE_DEVICE void put(SharedAddress terms, float alpha, uint32_t thread, uint32_t barrier) const {
    sync_threads(barrier, kThreads);  // those of the tile before have been read
    SPARKLE_UNROLL
    for (int i = 0; i < kEach; ++i) {
      const uint32_t column = thread + i * kThreads;
      if (column < kColumns) store_shared_8(terms + 8 * column, bits_of(alpha * scale[i]), bits_of(bias[i]));
    }
    sync_threads(barrier, kThreads);
  }
};

// Of a Gemm whose pixels are the products' rows, of 16 of which a warp has sums.
template <class Gemm>
struct Boxes {
  static constexpr int kParts = Gemm::kColumns / kBoxColumns, kValues = 32;  // a part: 16 rows by kBoxColumns, so many a thread
  // Parts of a residual that a stage holds, each of all the tile's rows.
  static constexpr int kLinesBytes = kWgmmaM * 128, kPartsAtOnce = kParts > 1 ? 2 : 1;
  static_assert(Gemm::kColumns % kBoxColumns == 0 && kPartsAtOnce * kLinesBytes <= Gemm::kStageBytes);
  static_assert(8 * kBoxBytes <= 8 * Gemm::kStripBytes && Gemm::kStripsAt % 1024 == 0);
  using Work = typename Gemm::Work;
  using Turn = typename Gemm::Turn;

  // Parts of a tile that have columns.
  SPARKLE_DEVICE static int parts_of(const GemmRecord& g, const Work& work) {
    const int32_t parts = (g.n - work.tile.n * Gemm::kColumns + kBoxColumns - 1) / kBoxColumns;
    return parts < kParts ? parts : kParts;
  }
  // As y's and the residual's columns are counted.
  SPARKLE_DEVICE static int32_t first_column(const GemmRecord& g, const Work& work) {
    return work.instance * g.n + work.tile.n * Gemm::kColumns;
  }

  // The copying thread: a tile's residual, behind its operands.
  SPARKLE_DEVICE static void copy_residual(const GemmTmaRecord& record, SharedAddress shared, const Work& work, Turn& turn) {
    const GemmRecord& g = record.gemm;
    if (record.boxes == 0 || g.before + g.after == 0) return;
    const int parts = parts_of(g, work);
    for (int part = 0; part < parts; part += kPartsAtOnce, turn.next()) {
      const int count = parts - part < kPartsAtOnce ? parts - part : kPartsAtOnce;
      const SharedAddress stage = shared + turn.stage * Gemm::kStageBytes, barrier = Gemm::full(shared, turn.stage);
      barrier_wait(Gemm::empty(shared, turn.stage), turn.parity ^ 1);
      barrier_arrive_expecting(barrier, static_cast<uint32_t>(count * kLinesBytes));
      for (int i = 0; i < count; ++i)
        load_box(stage + i * kLinesBytes, record.residual, barrier, first_column(g, work) + (part + i) * kBoxColumns, 0,
                 work.tile.m * kWgmmaM, 0);
    }
  }

  // A consumer's warp, `warp` of eight: its rows of a tile, whose columns' terms lie in shared memory.
  SPARKLE_DEVICE static void finish(const GemmTmaRecord& record, SharedAddress shared, uint32_t warp, uint32_t lane,
                                    const Work& work, Turn& turn, const float (&sums)[Gemm::kColumns / 2]) {
    const GemmRecord& g = record.gemm;
    const SharedAddress box = shared + Gemm::kStripsAt + warp * kBoxBytes;
    const SharedAddress terms = shared + Gemm::kTermsAt + warp / 4 * Gemm::kTermsBytes + lane % 4 * 16;
    // Matrices of 8 rows by 16 bytes: two below each other, then the two beside them; chunks exchanged as the swizzle does.
    const uint32_t line = lane % 16 * 128, chunk = (lane / 16 ^ lane % 8) * 16;
    const int32_t row = work.tile.m * kWgmmaM + static_cast<int32_t>(warp) * kBoxRows, column = first_column(g, work);
    const int parts = parts_of(g, work);
    const Places at{shared, box, terms, line, chunk, warp * kBoxBytes, row, column, lane};
    float v[kValues];
    if (g.activation <= 1) {  // the commonest: each part has its registers
      SPARKLE_UNROLL
      for (int part = 0; part < kParts; ++part) {
        if (part >= parts) break;
        SPARKLE_UNROLL
        for (int e = 0; e < kValues; ++e) v[e] = sums[kValues * part + e];
        finish_part<false>(record, at, part, parts, turn, v);
      }
      return;
    }
    SPARKLE_ROLLED
    for (int part = 0; part < parts; ++part) {
      SPARKLE_UNROLL
      for (int i = 0; i < kParts; ++i) {  // registers have no number at run time
        if (i != part) continue;
        SPARKLE_UNROLL
        for (int e = 0; e < kValues; ++e) v[e] = sums[kValues * i + e];
      }
      finish_part<true>(record, at, part, parts, turn, v);
    }
  }
  // Behind the last tile: shared memory is read no more.
  SPARKLE_DEVICE static void end(uint32_t lane) {
    if (lane == 0) wait_stores_read<0>();
  }

 private:
  // Where a warp's rows of a tile lie.
  struct Places {
    SharedAddress shared, box, terms;
    uint32_t line, chunk, rows;
    int32_t row, column;
    uint32_t lane;
  };
  template <bool kAnyActivation>
  SPARKLE_DEVICE static void finish_part(const GemmTmaRecord& record, const Places& at, int part, int parts, Turn& turn,
                                         float (&v)[kValues]) {
    const GemmRecord& g = record.gemm;
    SPARKLE_UNROLL
    for (int j = 0; j < kValues / 4; ++j) {  // of two columns the factor and the summand
      const Words4 t = load_shared_16(at.terms + static_cast<uint32_t>(part * (8 * kBoxColumns) + j * 64));
      SPARKLE_UNROLL
      for (int e = 0; e < 4; ++e) v[4 * j + e] = v[4 * j + e] * float_of(t.v[e % 2 * 2]) + float_of(t.v[e % 2 * 2 + 1]);
    }
    if (g.before != 0) add_residual(g, at, part, parts, turn, v);
    if constexpr (kAnyActivation) activate(g, v);
    const bool relu = g.activation == 1;
    if (g.after != 0) {
      if (relu) {
        SPARKLE_UNROLL
        for (int e = 0; e < kValues; ++e) v[e] = v[e] < 0.0f ? 0.0f : v[e];
      }
      add_residual(g, at, part, parts, turn, v);
    }
    if (at.lane == 0) wait_stores_read<0>();  // the part before
    sync_warp();
    if (g.y_type == Element::f16) {
      if (relu && g.after == 0) put<Element::f16, true>(at, v);
      else put<Element::f16, false>(at, v);
    } else {
      if (relu && g.after == 0) put<Element::bf16, true>(at, v);
      else put<Element::bf16, false>(at, v);
    }
    fence_async_proxy();
    sync_warp();
    if (at.lane == 0) {
      store_box(record.y, at.column + part * kBoxColumns, at.row, at.box);
      commit_stores();
    }
  }
  template <Element kElement, bool kRelu>
  SPARKLE_DEVICE static void put(const Places& at, const float (&v)[kValues]) {
    SPARKLE_UNROLL
    for (int j = 0; j < 4; ++j) {
      uint32_t words[4];
      SPARKLE_UNROLL
      for (int e = 0; e < 4; ++e) {
        const float low = v[8 * j + 2 * e], high = v[8 * j + 2 * e + 1];
        words[e] = kElement == Element::f16 ? halfs_of<kRelu>(low, high) : bfloats_of<kRelu>(low, high);
      }
      store_matrix_4(at.box + at.line + (at.chunk ^ j * 32), words);
    }
  }
  // From the stage whose turn it is; with a stage's last part it is let go.
  SPARKLE_DEVICE static void add_residual(const GemmRecord& g, const Places& at, int part, int parts, Turn& turn,
                                          float (&v)[kValues]) {
    if (part % kPartsAtOnce == 0) barrier_wait(Gemm::full(at.shared, turn.stage), turn.parity);
    const SharedAddress lines = at.shared + turn.stage * Gemm::kStageBytes +
                                static_cast<uint32_t>(part % kPartsAtOnce * kLinesBytes) + at.rows + at.line;
    SPARKLE_UNROLL
    for (int j = 0; j < 4; ++j) {
      uint32_t words[4];
      load_matrix_4(words, lines + (at.chunk ^ j * 32));
      SPARKLE_UNROLL
      for (int e = 0; e < 8; ++e) {
        const auto bits = static_cast<uint16_t>(words[e / 2] >> (e % 2 * 16));
        v[8 * j + e] += g.y_type == Element::f16 ? float_of_half(bits) : float_of_bfloat(bits);
      }
    }
    if (part % kPartsAtOnce < kPartsAtOnce - 1 && part + 1 < parts) return;
    fence_async_proxy();  // the engine writes there next
    sync_warp();
    Gemm::let_go(at.shared, turn.stage, at.lane);
    turn.next();
  }
  // The code of one activation for eight, which change places with the next eight.
  SPARKLE_DEVICE static void activate(const GemmRecord& g, float (&v)[kValues]) {
    SPARKLE_ROLLED
    for (int i = 0; i < kValues; i += 8) {
      float done[8];
      SPARKLE_UNROLL
      for (int e = 0; e < 8; ++e) done[e] = activated(g.activation, v[e], g.a, g.b);
      SPARKLE_UNROLL
      for (int e = 8; e < kValues; ++e) v[e - 8] = v[e];
      SPARKLE_UNROLL
      for (int e = 0; e < 8; ++e) v[kValues - 8 + e] = done[e];
    }
  }
};

}  // namespace sparkle::cuda
