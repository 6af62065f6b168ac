// Convolutions over planes of a few channels on Tensor Cores (sm_80 and later), planes out too. A row of the product is a pair of
// neighbouring outputs, its columns are maps by two: of eight inputs side by side a filter of up to seven columns takes the first
// seven for the first output and the last seven for the second. So a register of the left operand is one aligned word of the image
// in shared memory, whatever the filter's alignment, and a thread's two sums are neighbours in y. Filters stay in registers.
#pragma once

#include "backends/cuda/kernels/activation.cuh"
#include "backends/cuda/kernels/gemm_few_record.h"
#include "backends/cuda/kernels/gemm_finish.cuh"

namespace sparkle::cuda {

SPARKLE_CALLED float called_activation(int32_t kind, float x, float a, float b) { return activated(kind, x, a, b); }
// Outputs that lie at odd places, or whose rows end between two of them.
SPARKLE_CALLED void store_apart(void* y, int32_t at, bool in_fp16, bool both, float first, float second) {
  const Element type = in_fp16 ? Element::f16 : Element::f32;
  store_element(type, y, at, first);
  if (both) store_element(type, y, at + 1, second);
}

// kSteps of k: two rows of a filter deep; kTiles of four maps. Filters are laid out kShifts times, each a row further down.
template <int kSteps, int kTiles, int kShifts>
struct GemmFew {
  // Sizes.
  static constexpr int kWarps = kFewThreads / 32, kFilterWords = kShifts * kSteps * kTiles * 64;
  static constexpr int kAtOnce = 4;  // elements that a thread has under way
  using Sums = float[kTiles][4];
  using Filters = uint32_t[kShifts][kSteps][kTiles][2];

  // Memory: the band in fp16, the next one as it comes, filters as fragments.
  struct Shared {
    SharedAddress image, staged, filters;
  };
  // A band: of which image, its first row of outputs, how many there are of them.
  struct Band {
    int32_t image, first, rows;
  };
  SPARKLE_DEVICE static Band band_of(const FewRecord& record, int32_t item) {
    uint32_t image = static_cast<uint32_t>(item);
    Band b;
    b.first = static_cast<int32_t>(fast_divmod(image, record.bands_by)) * record.rows;
    b.image = static_cast<int32_t>(image);
    b.rows = record.all_rows - b.first < record.rows ? record.all_rows - b.first : record.rows;
    return b;
  }

  // Load: elements as bits of fp32.
  SPARKLE_DEVICE static float element(const void* from, int64_t at, bool in_fp16) {
    if (in_fp16) return float_of_half(load_global(static_cast<const uint16_t*>(from) + at));
    return load_global(static_cast<const float*>(from) + at);
  }
  // Fragments of the right operand: column (map, dx) and k (chunk, s') is the filter's column s' - dx, zero outside.
  SPARKLE_DEVICE static float filter_element(const FewRecord& record, int32_t map, int32_t chunk, int32_t column) {
    const int32_t channel = chunk < 0 ? record.channels : chunk / record.filter_rows;
    const int32_t row = chunk - channel * record.filter_rows;
    if (map >= record.filters || channel >= record.channels || !inside(column, record.filter_columns)) return 0.0f;
    return element(record.w, map * record.w_map + channel * record.w_channel + row * record.w_row + column * record.w_column,
                   record.in_fp16 != 0);
  }
  SPARKLE_DEVICE static void lay_out_filters(const FewRecord& record, SharedAddress filters, int32_t first_map) {
    SPARKLE_ROLLED
    for (int32_t word = static_cast<int32_t>(thread_id()); word < kFilterWords; word += kAtOnce * kFewThreads) {
      uint32_t words[kAtOnce];
      SPARKLE_UNROLL
      for (int32_t i = 0; i < kAtOnce; ++i) {
        const int32_t at = word + i * kFewThreads, lane = at / 2 % 32, of = at / 64;
        const int32_t map = first_map + of % kTiles * 4 + lane / 8;
        const int32_t chunk = of / kTiles % kSteps * 2 + at % 2 - of / (kTiles * kSteps);
        const int32_t column = lane % 4 * 2 - lane / 4 % 2;
        words[i] = at < kFilterWords ? halfs_of(filter_element(record, map, chunk, column),
                                                 filter_element(record, map, chunk, column + 1))
                                      : 0;
      }
      SPARKLE_UNROLL
      for (int32_t i = 0; i < kAtOnce; ++i) {
        const int32_t at = word + i * kFewThreads;
        if (at < kFilterWords) store_shared_4(filters + at * 4, words[i]);
      }
    }
  }

  // Load: rows of a band by copies of 16 bytes, each channel's behind one another; and from there in fp16 to the image.
  SPARKLE_DEVICE static int32_t pieces_of(const FewRecord& record, const Band& band) {
    const int32_t run = record.in_fp16 ? 8 : 4;
    return ((band.rows + record.filter_rows - 1) * record.width + run - 1) / run;
  }
  SPARKLE_DEVICE static void copy(const FewRecord& record, SharedAddress staged, int32_t item) {
    const Band band = band_of(record, item);
    const int32_t size = record.in_fp16 ? 2 : 4, pieces = pieces_of(record, band);
    const uint8_t* from =
        static_cast<const uint8_t*>(record.x) + (int64_t{band.image} * record.x_image + band.first * record.width) * size;
    SPARKLE_ROLLED
    for (int32_t c = 0; c < record.channels; ++c) {
      for (int32_t i = static_cast<int32_t>(thread_id()); i < pieces; i += kFewThreads) {
        copy_async_16(staged + i * 16, from + int64_t{i} * 16, 16);
      }
      staged += record.plane_bytes * size / 2;
      from += int64_t{record.x_channel} * size;
    }
  }
  SPARKLE_DEVICE static void convert(const FewRecord& record, const Shared& shared, int32_t item) {
    const int32_t pieces = pieces_of(record, band_of(record, item));
    SharedAddress from = shared.staged, to = shared.image;
    SPARKLE_ROLLED
    for (int32_t c = 0; c < record.channels; ++c) {
      for (int32_t i = static_cast<int32_t>(thread_id()); i < pieces; i += kFewThreads) {
        const Words4 w = load_shared_16(from + i * 16);
        if (record.in_fp16) {
          store_shared_16(to + i * 16, w);
        } else {
          store_shared_8(to + i * 8, halfs_of(float_of(w.v[0]), float_of(w.v[1])),
                         halfs_of(float_of(w.v[2]), float_of(w.v[3])));
        }
      }
      from += record.plane_bytes * (record.in_fp16 ? 1 : 2);
      to += record.plane_bytes;
    }
  }
  // Load: any rows, padding too, word by word through registers.
  SPARKLE_DEVICE static void gather(const FewRecord& record, const Shared& shared, int32_t item) {
    const Band band = band_of(record, item);
    const bool in_fp16 = record.in_fp16 != 0;
    const int32_t words = record.channels * record.in_rows * static_cast<int32_t>(record.words_by.size);
    const int32_t image = band.image * record.x_image;
    SPARKLE_ROLLED
    for (int32_t word = static_cast<int32_t>(thread_id()); word < words; word += kAtOnce * kFewThreads) {
      float low[kAtOnce], high[kAtOnce];
      SharedAddress to[kAtOnce];
      SPARKLE_UNROLL
      for (int32_t i = 0; i < kAtOnce; ++i) {
        uint32_t rest = static_cast<uint32_t>(word + i * kFewThreads);
        const bool there = static_cast<int32_t>(rest) < words;
        const int32_t pair = static_cast<int32_t>(fast_divmod(rest, record.words_by));
        const int32_t in_row = static_cast<int32_t>(fast_divmod(rest, record.in_rows_by));
        const int32_t channel = static_cast<int32_t>(rest);
        to[i] = shared.image + channel * record.plane_bytes +
                (in_row * static_cast<int32_t>(record.words_by.size) + pair) * 4;
        const int32_t row = band.first + in_row - record.pad_h, column = pair * 2 - record.pad_w;
        const int64_t at = image + channel * record.x_channel + row * record.x_row + column;
        const bool valid = there && inside(row, record.height);
        low[i] = valid && inside(column, record.width) ? element(record.x, at, in_fp16) : 0.0f;
        high[i] = valid && inside(column + 1, record.width) ? element(record.x, at + 1, in_fp16) : 0.0f;
      }
      SPARKLE_UNROLL
      for (int32_t i = 0; i < kAtOnce; ++i) {
        if (word + i * kFewThreads < words) store_shared_4(to[i], halfs_of(low[i], high[i]));
      }
    }
  }

  // Epilogue: of maps four apart.
  struct Maps {
    float scale[kTiles], bias[kTiles];
    int32_t first;
  };
  SPARKLE_DEVICE static Maps maps_of(const FewRecord& record, int32_t first_map) {
    Maps m;
    m.first = first_map + static_cast<int32_t>(lane_id() % 4);
    SPARKLE_UNROLL
    for (int t = 0; t < kTiles; ++t) {
      const int32_t map = m.first + 4 * t;
      const bool there = map < record.filters;
      m.scale[t] = there && record.scale != nullptr ? record.alpha * load_global(record.scale + map) : record.alpha;
      m.bias[t] = there && record.bias != nullptr ? load_global(record.bias + map) : 0.0f;
    }
    return m;
  }
  SPARKLE_DEVICE static void activate(const FewRecord& record, Sums& sums) {
    if (record.activation == 0) return;
    if (record.activation == 1) {
      SPARKLE_UNROLL
      for (int t = 0; t < kTiles; ++t) {
        SPARKLE_UNROLL
        for (int e = 0; e < 4; ++e) sums[t][e] = sums[t][e] < 0.0f ? 0.0f : sums[t][e];
      }
      return;
    }
    SPARKLE_UNROLL
    for (int t = 0; t < kTiles; ++t) {
      SPARKLE_UNROLL
      for (int e = 0; e < 4; ++e) sums[t][e] = called_activation(record.activation, sums[t][e], record.a, record.b);
    }
  }
  // Of two pairs of outputs: where they lie in y's first map here, their first column, and whether they are outputs.
  struct Place {
    int32_t at, column;
    bool there;
  };
  SPARKLE_DEVICE static void finish(const FewRecord& record, const Maps& maps, Sums& sums, const Place (&places)[2]) {
    SPARKLE_UNROLL
    for (int t = 0; t < kTiles; ++t) {
      SPARKLE_UNROLL
      for (int e = 0; e < 4; ++e) sums[t][e] = sums[t][e] * maps.scale[t] + maps.bias[t];
    }
    activate(record, sums);

    // Store: two columns at once where they lie so, which is asked once for all.
    const auto each = [&](auto store) {
      SPARKLE_UNROLL
      for (int i = 0; i < 2; ++i) {
        SPARKLE_UNROLL
        for (int t = 0; t < kTiles; ++t) {
          if (places[i].there && maps.first + 4 * t < record.filters)
            store(places[i].at + 4 * t * record.y_map, places[i].column, sums[t][2 * i], sums[t][2 * i + 1]);
        }
      }
    };
    if (record.y_stores == FewStores::fp32_pairs) {
      each([&](int32_t at, int32_t, float first, float second) {
        store_global(reinterpret_cast<AlignedWords2*>(static_cast<float*>(record.y) + at),
                     AlignedWords2{{bits_of(first), bits_of(second)}});
      });
    } else if (record.y_stores == FewStores::fp16_pairs) {
      each([&](int32_t at, int32_t, float first, float second) {
        store_global(reinterpret_cast<uint32_t*>(static_cast<uint16_t*>(record.y) + at), halfs_of(first, second));
      });
    } else {
      each([&](int32_t at, int32_t column, float first, float second) {
        store_apart(record.y, at, record.in_fp16 != 0, column + 1 < record.columns, first, second);
      });
    }
  }

  // `Out` multiplies a band that lies in shared memory and stores its outputs.
  template <class Out>
  SPARKLE_DEVICE static void run(const FewRecord& record) {
    Shared shared;
    shared.image = shared_base();
    shared.staged = shared.image + record.image_bytes;
    shared.filters = shared.staged + record.staged_bytes;
    const int32_t first_map = static_cast<int32_t>(block_y()) * 4 * kTiles;
    int32_t item = static_cast<int32_t>(block_x());
    if (record.by_copies && item < record.items) copy(record, shared.staged, item);
    commit_copies();
    // What is read beyond a row's end, and multiplied by zero, is a number.
    for (int32_t i = static_cast<int32_t>(thread_id()) * 16; i < record.image_bytes; i += kFewThreads * 16) {
      store_shared_16(shared.image + i, Words4{});
    }
    lay_out_filters(record, shared.filters, first_map);
    const Maps maps = maps_of(record, first_map);
    sync_block();
    Filters filters;
    SPARKLE_UNROLL
    for (int i = 0; i < kShifts * kSteps * kTiles * 2; ++i) {
      const int of = i / 2;
      filters[of / kTiles / kSteps][of / kTiles % kSteps][of % kTiles][i % 2] =
          load_shared_4(shared.filters + of * 256 + static_cast<int32_t>(lane_id()) * 8 + i % 2 * 4);
    }
    // Beside the filters' registers there is none for the item while products are added up.
    const SharedAddress kept = shared.filters + static_cast<int32_t>(thread_id()) * 4;
    static_assert(kFilterWords >= kFewThreads);
    SPARKLE_ROLLED
    while (item < record.items) {
      wait_copies<0>();
      sync_block();  // copies are there, and what the image held is done with
      if (record.by_copies) convert(record, shared, item);
      else gather(record, shared, item);
      sync_block();
      const int32_t next = item + static_cast<int32_t>(grid_x());
      store_shared_4(kept, static_cast<uint32_t>(next));
      if (record.by_copies && next < record.items) copy(record, shared.staged, next);
      commit_copies();
      Out::band(record, shared.image, band_of(record, item), filters, maps);
      item = static_cast<int32_t>(load_shared_4(kept));
    }
  }
};

// A band's pairs one after another, whatever row they are of, so that a warp's sixteen are whole to the last.
template <int kSteps, int kTiles>
struct FewPairs {
  using Few = GemmFew<kSteps, kTiles, 1>;
  SPARKLE_DEVICE static void run(const FewRecord& record) { Few::template run<FewPairs>(record); }

  // A pair of outputs of a band: its row there and its first column.
  struct Pair {
    int32_t row, column;
    bool there;
  };
  SPARKLE_DEVICE static Pair pair_of(const FewRecord& record, int32_t number, int32_t pairs) {
    Pair p;
    p.there = number < pairs;
    uint32_t row = static_cast<uint32_t>(p.there ? number : pairs - 1);
    p.column = static_cast<int32_t>(fast_divmod(row, record.pairs_by)) * 2;
    p.row = static_cast<int32_t>(row);
    return p;
  }

  // Multiply: a band's pairs, sixteen a warp and turn.
  SPARKLE_DEVICE static void band(const FewRecord& record, SharedAddress image, const typename Few::Band& band,
                                  const typename Few::Filters& filters, const typename Few::Maps& maps) {
    const int32_t pairs = band.rows * static_cast<int32_t>(record.pairs_by.size);
    const int32_t pitch = static_cast<int32_t>(record.words_by.size) * 4;
    const int32_t group = static_cast<int32_t>(lane_id() / 4), place = static_cast<int32_t>(lane_id() % 4);
    const int32_t y_band = band.image * record.y_image + band.first * record.y_row + maps.first * record.y_map;
    SPARKLE_ROLLED
    for (int32_t tile = static_cast<int32_t>(uniform(warp_id())) * 16; tile < pairs; tile += Few::kWarps * 16) {
      const Pair pair[2] = {pair_of(record, tile + group, pairs), pair_of(record, tile + group + 8, pairs)};
      SharedAddress left[2];
      SPARKLE_UNROLL
      for (int i = 0; i < 2; ++i) left[i] = image + pair[i].row * pitch + pair[i].column * 2 + place * 4;
      typename Few::Sums sums = {};
      SPARKLE_UNROLL
      for (int step = 0; step < kSteps; ++step) {
        uint32_t a[4];
        SPARKLE_UNROLL
        for (int r = 0; r < 4; ++r) a[r] = load_shared_4(left[r % 2] + record.chunks[2 * step + r / 2]);
        SPARKLE_UNROLL
        for (int t = 0; t < kTiles; ++t) multiply<Operand::f16>(sums[t], a, filters[0][step][t][0], filters[0][step][t][1]);
      }
      typename Few::Place places[2];
      SPARKLE_UNROLL
      for (int i = 0; i < 2; ++i)
        places[i] = {y_band + pair[i].row * record.y_row + pair[i].column, pair[i].column, pair[i].there};
      Few::finish(record, maps, sums, places);
    }
  }
};

// Planes of one channel: a warp walks down eight pairs of columns in two places at once, and keeps the rows that it has seen. Two
// rows of outputs are made of the same registers, by filters a row apart: four words of shared memory for two rows of sixteen pairs.
template <int kRows, int kTiles>
struct FewRows {
  // The rows that two rows of outputs see, in twos; as many lie in registers.
  static constexpr int kSteps = (kRows + 1) / 2;
  static_assert(kRows % 2 == 1);
  using Few = GemmFew<kSteps, kTiles, 2>;
  SPARKLE_DEVICE static void run(const FewRecord& record) { Few::template run<FewRows>(record); }

  // Load: two rows of both places.
  SPARKLE_DEVICE static void take(uint32_t (&a)[4], SharedAddress (&left)[2], int32_t pitch) {
    SPARKLE_UNROLL
    for (int r = 0; r < 4; ++r) {
      a[r] = load_shared_4(left[r % 2]);
      left[r % 2] += pitch;
    }
  }

  SPARKLE_DEVICE static void band(const FewRecord& record, SharedAddress image, const typename Few::Band& band,
                                  const typename Few::Filters& filters, const typename Few::Maps& maps) {
    const int32_t row_pairs = static_cast<int32_t>(record.pairs_by.size), across = (row_pairs + 7) / 8;
    const int32_t pitch = static_cast<int32_t>(record.words_by.size) * 4, last = band.rows - record.walk_rows;
    const int32_t group = static_cast<int32_t>(lane_id() / 4), place = static_cast<int32_t>(lane_id() % 4);
    const int32_t y_image = band.image * record.y_image + maps.first * record.y_map;
    SPARKLE_ROLLED
    for (int32_t walk = static_cast<int32_t>(uniform(warp_id())); walk < across * record.walks; walk += Few::kWarps) {
      // Two stretches of rows; the last ones may be those of others in part, and give the same.
      const int32_t down = walk / across, pair = (walk - down * across) * 8 + group;
      const bool there = pair < row_pairs;
      const int32_t column = 2 * (there ? pair : row_pairs - 1);
      SharedAddress left[2];
      typename Few::Place places[2];
      SPARKLE_UNROLL
      for (int i = 0; i < 2; ++i) {
        const int32_t first = (2 * down + i) * record.walk_rows, row = first < last ? first : last;
        left[i] = image + row * pitch + column * 2 + place * 4;
        places[i] = {y_image + row * record.y_row + column, column, there};
      }
      uint32_t a[kSteps][4];
      SPARKLE_UNROLL
      for (int s = 0; s + 1 < kSteps; ++s) take(a[s], left, pitch);
      SPARKLE_ROLLED
      for (int32_t rows = record.walk_rows; rows > 0; rows -= 2 * kSteps) {
        SPARKLE_UNROLL
        for (int turn = 0; turn < kSteps; ++turn) {
          if (rows <= 2 * turn) break;
          take(a[(turn + kSteps - 1) % kSteps], left, pitch);
          typename Few::Sums sums[2] = {};
          SPARKLE_UNROLL
          for (int step = 0; step < kSteps; ++step) {
            SPARKLE_UNROLL
            for (int of = 0; of < 2; ++of) {
              SPARKLE_UNROLL
              for (int t = 0; t < kTiles; ++t)
                multiply<Operand::f16>(sums[of][t], a[(turn + step) % kSteps], filters[of][step][t][0], filters[of][step][t][1]);
            }
          }
          SPARKLE_UNROLL
          for (int of = 0; of < 2; ++of) {
            Few::finish(record, maps, sums[of], places);
            SPARKLE_UNROLL
            for (int i = 0; i < 2; ++i) places[i].at += record.y_row;
          }
        }
      }
    }
  }
};

}  // namespace sparkle::cuda
