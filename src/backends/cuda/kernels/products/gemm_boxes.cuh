// How kernels of sm_90a let outputs go: sums are scaled, activated and rounded in the registers that products leave them in, lie
// in shared memory as box_forms.cuh says, and from there the engine takes 16 rows of 128 bytes at a time. No thread counts a
// row's place. A residual comes through the ring of stages behind the tile's operands, so that it is there when the products
// end.
#pragma once

#include "backends/cuda/kernels/gemm_finish.cuh"
#include "backends/cuda/kernels/gemm_tma_record.h"
#include "backends/cuda/kernels/gemm_variants.h"
#include "backends/cuda/kernels/products/box_forms.cuh"
#include "backends/cuda/ptx/barrier.cuh"
#include "backends/cuda/ptx/memory.cuh"
#include "backends/cuda/ptx/threads.cuh"

namespace sparkle::cuda {

// What the sums of a tile's columns are multiplied by, and what is added - of bytes before it, with what zero points take off -:
// asked for before the products, so that nobody waits for it behind them. By the 128 threads of a warpgroup.
template <Operand kType, int kColumns>
struct ColumnTerms {
  static constexpr int kThreads = 128, kEach = (kColumns + kThreads - 1) / kThreads;
  float scale[kEach] = {};
  uint32_t bias[kEach] = {};

  // `first` column of the instance.
  SPARKLE_DEVICE void load(const GemmRecord& record, int32_t instance, int32_t first, uint32_t thread) {
    SPARKLE_UNROLL
    for (int i = 0; i < kEach; ++i) {
      const int32_t column = first + static_cast<int32_t>(thread) + i * kThreads;
      const int32_t at = instance * record.channel_instance[3] + column;
      const bool there = column < record.n;
      scale[i] = there && record.scale != nullptr ? load_global(record.scale + at * record.scale_stride) : 1.0f;
      bias[i] = there && record.bias != nullptr
                    ? load_global(static_cast<const uint32_t*>(record.bias) + at * record.bias_stride)
                    : 0u;
      if constexpr (is_integer(kType)) {
        if (there && record.w_sums != nullptr)
          bias[i] += summand_of_zero_points(record, x_zero_of<kType>(record),
                                            instance * record.w_instance[3] / record.w_stride + column, at);
      }
    }
  }
  // To shared memory that the warpgroup has by itself: of each column the factor and the summand.
  SPARKLE_DEVICE void put(SharedAddress terms, float alpha, uint32_t thread, uint32_t barrier) const {
    sync_threads(barrier, kThreads);  // those of the tile before have been read
    SPARKLE_UNROLL
    for (int i = 0; i < kEach; ++i) {
      const uint32_t column = thread + i * kThreads;
      if (column < kColumns) store_shared_8(terms + 8 * column, bits_of(alpha * scale[i]), bias[i]);
    }
    sync_threads(barrier, kThreads);
  }
};

// Of a Gemm whose pixels are the products' rows, of 16 of which a warp has sums.
template <class Gemm>
struct Boxes {
  using Form = typename BoxFormOf<Gemm::kOperand>::Type;
  using Sum = typename Gemm::Sum;
  // A part: 16 rows by as many columns as 128 bytes hold, of a thread kValues.
  static constexpr int kBoxColumns = Form::kColumns, kValues = Form::kValues, kParts = Gemm::kColumns / kBoxColumns;
  static constexpr bool kIntegers = is_integer(Gemm::kOperand);
  // Parts of a residual that a stage holds, each of all the tile's rows: no more than what its own block's engine writes next.
  static constexpr int kLinesBytes = kWgmmaM * 128, kPartsAtOnce = kParts > 1 && Gemm::kBlocks == 1 ? 2 : 1;
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
                                    const Work& work, Turn& turn, const Sum (&sums)[Gemm::kColumns / 2]) {
    const GemmRecord& g = record.gemm;
    const SharedAddress box = shared + Gemm::kStripsAt + warp * kBoxBytes;
    const SharedAddress terms = shared + Gemm::kTermsAt + warp / 4 * Gemm::kTermsBytes + lane % 4 * 16;
    const int32_t row = work.tile.m * kWgmmaM + static_cast<int32_t>(warp) * kBoxRows, column = first_column(g, work);
    const int parts = parts_of(g, work);
    const Places at{shared, box, terms, Form(lane), warp * kBoxBytes, row, column, lane};
    Sum v[kValues];
    if (kIntegers || g.activation <= 1) {  // the commonest: each part has its registers
      SPARKLE_UNROLL
      for (int part = 0; part < kParts; ++part) {
        if (part >= parts) break;
        SPARKLE_UNROLL
        for (int e = 0; e < kValues; ++e) v[e] = at.form.taken(sums, kValues * part + e);
        finish_part<false>(record, at, part, parts, turn, v);
      }
      return;
    }
    if constexpr (!kIntegers) {
      SPARKLE_ROLLED
      for (int part = 0; part < parts; ++part) {
        SPARKLE_UNROLL
        for (int i = 0; i < kParts; ++i) {  // registers have no number at run time
          if (i != part) continue;
          SPARKLE_UNROLL
          for (int e = 0; e < kValues; ++e) v[e] = at.form.taken(sums, kValues * i + e);
        }
        finish_part<true>(record, at, part, parts, turn, v);
      }
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
    Form form;
    uint32_t rows;
    int32_t row, column;
    uint32_t lane;
  };
  template <bool kAnyActivation>
  SPARKLE_DEVICE static void finish_part(const GemmTmaRecord& record, const Places& at, int part, int parts, Turn& turn,
                                         Sum (&v)[kValues]) {
    const GemmRecord& g = record.gemm;
    bool relu = false;
    if constexpr (kIntegers) {
      requantize(g, at, part, v);
    } else {
      SPARKLE_UNROLL
      for (int j = 0; j < kValues / 4; ++j) {
        const Words4 t = terms_of(at, part, j);
        SPARKLE_UNROLL
        for (int e = 0; e < 4; ++e) v[4 * j + e] = v[4 * j + e] * float_of(t.v[e % 2 * 2]) + float_of(t.v[e % 2 * 2 + 1]);
      }
      if (g.before != 0) add_residual(g, at, part, parts, turn, v);
      if constexpr (kAnyActivation) activate(g, v);
      relu = g.activation == 1;
      if (g.after != 0) {
        if (relu) {
          SPARKLE_UNROLL
          for (int e = 0; e < kValues; ++e) v[e] = rectified(v[e]);
        }
        add_residual(g, at, part, parts, turn, v);
        relu = false;
      }
    }
    if (at.lane == 0) wait_stores_read<0>();  // the part before
    sync_warp();
    at.form.put(at.box, g.y_type, relu, v);
    fence_async_proxy();
    sync_warp();
    if (at.lane == 0) {
      store_box(record.y, at.column + part * kBoxColumns, at.row, at.box);
      commit_stores();
    }
  }
  // Of the two columns of values 4 * j and behind the factor and the summand.
  SPARKLE_DEVICE static Words4 terms_of(const Places& at, int part, int j) {
    return load_shared_16(at.terms + static_cast<uint32_t>(part * (8 * kBoxColumns)) + at.form.group(j) * 64);
  }
  // As Finish does it.
  SPARKLE_DEVICE static void requantize(const GemmRecord& g, const Places& at, int part, int32_t (&v)[kValues]) {
    const int32_t zero = zero_at(g.y_zero, 0, g.y_type == Element::u8);
    const float low = static_cast<float>(g.low - zero), high = static_cast<float>(g.high - zero);
    SPARKLE_UNROLL
    for (int j = 0; j < kValues / 4; ++j) {
      const Words4 t = terms_of(at, part, j);
      SPARKLE_UNROLL
      for (int e = 0; e < 4; ++e) {
        const auto sum = static_cast<int32_t>(static_cast<uint32_t>(v[4 * j + e]) + t.v[e % 2 * 2 + 1]);
        v[4 * j + e] = to_nearest(clamped(static_cast<float>(sum) * float_of(t.v[e % 2 * 2]), low, high)) + zero;
      }
    }
  }
  // From the stage whose turn it is; with a stage's last part it is let go.
  SPARKLE_DEVICE static void add_residual(const GemmRecord& g, const Places& at, int part, int parts, Turn& turn,
                                          float (&v)[kValues]) {
    if (part % kPartsAtOnce == 0) barrier_wait(Gemm::full(at.shared, turn.stage), turn.parity);
    at.form.add(at.shared + turn.stage * Gemm::kStageBytes + static_cast<uint32_t>(part % kPartsAtOnce * kLinesBytes) + at.rows,
                g.y_type, v);
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
