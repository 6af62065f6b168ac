// The loop nests of the CPU kernels without their arithmetic: what each reads and writes, line by line, in its order. Written
// from the kernels (gemm_nest.cc, winograd.cc, depthwise_tile-inl.h, grouped.cc), not from the footprints that are judged by
// them; how gemm is cut into blocks is the kernel's own (gemm_cut.h). One thread. Direct, inverted and fft kernels have headers
// of their own.
#pragma once

#include "backends/cpu/gemm/gemm_cut.h"
#include "backends/cpu/gemm/gemm_tile.h"
#include "backends/cpu/gemm/row_cursor.h"
#include "backends/cpu/grouped/grouped_rows.h"
#include "backends/cpu/winograd/winograd_geometry.h"
#include "families/common.h"
#include "families/gemm/stored_weights.h"
#include "families/windows/taps.h"
#include "families/depthwise/depthwise.h"
#include "families/gemm/gemm.h"
#include "families/grouped/grouped.h"
#include "families/winograd/winograd.h"
#include "measure/walks/memory_walk_testing.h"

namespace sparkle::testing {

class GemmWalk {
 public:
  GemmWalk(const Stage& stage, const GemmSchedule& s, const cpu::GemmGeometry& g, int64_t lanes, int registers,
           MemoryWalk& memory)
      : s_(s), g_(g), lanes_(lanes), memory_(memory) {
    const DType kept = stored_weights(s.variant);
    kept_ = size_of(kept);
    tall_ = kept != DType::f32 ? 0 : registers >= 32 ? 2 : 1;
    o_.x = memory.allocate(stage.inputs[0].bytes());
    o_.weights = memory.allocate(g.weights.matrices * g.k * g.padded_n * kept_);
    o_.y = memory.allocate(stage.outputs[0].bytes());
    o_.scratch = memory.allocate(cpu::kPartialFloats * 4);
  }
  void run() {
    const cpu::GemmCut cut = cpu::gemm_cut(g_, s_, lanes_, 1, 1);
    for (int64_t i = 0; i < cut.blocks(); ++i) block(cut.block(i));
  }

 private:
  struct Rows {
    const cpu::RowClass* of;
    int64_t count;
    int64_t a[12], y[12];
  };
  // Tiles [t0, t1) one call after another; `pair`: two tiles a call where their rows lie at one stride.
  template <class Body>
  void tiles(int64_t t0, int64_t t1, bool pair, Body body) const {
    for (const cpu::RowClass& rows : g_.classes) {
      const int64_t begin = std::max(t0, rows.first_tile), end = std::min(t1, rows.first_tile + rows.tiles);
      const auto first_row = [&](int64_t t) { return t * (rows.rows / rows.tiles) + std::min(t, rows.rows % rows.tiles); };
      for (int64_t t = begin; t < end;) {
        const int64_t at = first_row(t - rows.first_tile);
        int64_t taken = 1;
        cpu::RowCursor cursor;
        cursor.seek(rows, at);
        if (pair && t + 1 < end && first_row(t - rows.first_tile + 2) - at <= cursor.straight()) taken = 2;
        Rows call{&rows, first_row(t - rows.first_tile + taken) - at, {}, {}};
        for (int64_t i = 0; i < call.count; ++i, cursor.advance(1)) call.a[i] = cursor.a, call.y[i] = cursor.y;
        body(call, t - t0);
        t += taken;
      }
    }
  }
  void block(const cpu::GemmBlock& block) const {
    const cpu::GemmInstance& instance = g_.instances[static_cast<size_t>(block.instance)];
    const int64_t t0 = block.t0, t1 = block.t1, p0 = block.p0, p1 = block.p1, tile_floats = cpu::partial_floats(lanes_);
    const auto pairs = [&](int64_t p) { return g_.chunks == 1 && g_.panels[static_cast<size_t>(p)].vectors <= tall_; };
    if (s_.order == GemmOrder::rows) {
      bool all = true;
      for (int64_t p = p0; p < p1; ++p) all = all && pairs(p);
      for (int chunk = 0; chunk < g_.chunks; ++chunk)
        tiles(t0, t1, all, [&](const Rows& rows, int64_t t) {
          for (int64_t p = p0; p < p1; ++p)
            multiply(instance, rows, chunk, g_.panels[static_cast<size_t>(p)], (t * (p1 - p0) + p - p0) * tile_floats);
        });
      return;
    }
    for (int64_t p = p0; p < p1; ++p)
      for (int chunk = 0; chunk < g_.chunks; ++chunk)
        tiles(t0, t1, pairs(p), [&](const Rows& rows, int64_t t) {
          multiply(instance, rows, chunk, g_.panels[static_cast<size_t>(p)], t * tile_floats);
        });
  }
  void multiply(const cpu::GemmInstance& instance, const Rows& rows, int chunk, const cpu::GemmPanel& panel,
                int64_t partial) const {
    const int64_t width = panel.vectors * lanes_;
    const int64_t b = o_.weights + (instance.weights * g_.k * g_.padded_n + panel.column * g_.k) * kept_;
    for (const cpu::GemmRun& run : rows.of->chunks[static_cast<size_t>(chunk)]) {
      memory_.load(static_cast<double>(run.length * (rows.count * 4 + width * (kept_ == 4 ? 4 : kept_ + 4))));
      for (int64_t k = 0; k < run.length; k += 16) {  // a line of a row at a time
        const int64_t some = std::min<int64_t>(16, run.length - k);
        for (int64_t i = 0; i < rows.count; ++i) memory_.read(o_.x + (instance.a + rows.a[i] + run.a + k) * 4, some * 4);
        memory_.read(b + (run.k + k) * width * kept_, some * width * kept_);
      }
    }
    const int64_t sums = rows.count * width * 4;
    if (chunk > 0) memory_.load(static_cast<double>(sums)), memory_.read(o_.scratch + partial * 4, sums);
    if (chunk + 1 < g_.chunks) {
      memory_.load(static_cast<double>(sums)), memory_.write(o_.scratch + partial * 4, sums);
      return;
    }
    memory_.load(static_cast<double>(rows.count * panel.columns * 4));
    for (int64_t i = 0; i < rows.count; ++i)
      memory_.write(o_.y + (instance.y + rows.y[i] + panel.column) * 4, panel.columns * 4);
  }

  const GemmSchedule& s_;
  const cpu::GemmGeometry& g_;
  int64_t lanes_, kept_ = 4;
  int tall_ = 1;
  MemoryWalk& memory_;
  WalkedOperands o_;
};

class WinogradWalk {
 public:
  WinogradWalk(const Stage& stage, const WinogradSchedule& s, const cpu::WinogradGeometry& g, int64_t lanes, MemoryWalk& memory)
      : s_(s), g_(g), lanes_(lanes), memory_(memory) {
    o_.x = memory.allocate(stage.inputs[0].bytes());
    o_.weights = memory.allocate(g.packed_floats() * 4);
    o_.y = memory.allocate(stage.outputs[0].bytes());
    o_.scratch = memory.allocate(g.scratch_floats * 4);
    square_ = memory.allocate(g.square() * lanes * 4);
  }
  void run() {
    for (int64_t i = 0; i < g_.strips; ++i) strip(g_.first_tile(i), g_.first_tile(i + 1) - g_.first_tile(i));
  }

 private:
  // Through a square of vectors between the passes over columns and rows.
  void through_square(int64_t vectors) const {
    memory_.load(static_cast<double>(2 * vectors * lanes_ * 4));
    memory_.write(square_, vectors * lanes_ * 4);
    memory_.read(square_, vectors * lanes_ * 4);
  }
  void strip(int64_t first, int64_t count) const {
    const int64_t products = o_.scratch + g_.square() * g_.input_stride * 4, points = g_.points;
    const auto place = [&](int64_t tile, int64_t& n, int64_t& row, int64_t& column) {
      const int64_t of_image = g_.tiles_h * g_.tiles_w, rest = tile % of_image;
      n = tile / of_image, row = rest / g_.tiles_w * g_.tile, column = rest % g_.tiles_w * g_.tile;
    };
    for (int64_t i = 0; i < count; ++i) {
      int64_t n, row, column;
      place(first + i, n, row, column);
      for (int64_t c = 0; c < g_.x.c; c += lanes_) {
        for (int64_t p = 0; p < points * points; ++p) {
          const int64_t h = row - g_.pad_h + p / points, w = column - g_.pad_w + p % points;
          memory_.load(static_cast<double>(lanes_ * 4));
          if (h >= 0 && h < g_.x.h && w >= 0 && w < g_.x.w)
            memory_.read(o_.x + (n * g_.x.image_stride + h * g_.x.row_stride + w * g_.x.pixel_stride + c) * 4, lanes_ * 4);
        }
        through_square(points * points);
        memory_.load(static_cast<double>(points * points * lanes_ * 4));
        for (int64_t p = 0; p < points * points; ++p)
          memory_.write(o_.scratch + (p * g_.input_stride + i * g_.padded_c + c) * 4, lanes_ * 4);
      }
    }
    for (const cpu::WinogradPanel& panel : g_.panels) {
      const int64_t width = panel.vectors * lanes_, row_tiles = divided(count, s_.mr);
      for (int64_t p = 0; p < points * points; ++p)
        for (int64_t t = 0; t < row_tiles; ++t) {
          const int64_t r0 = t * count / row_tiles, r1 = (t + 1) * count / row_tiles;
          memory_.load(static_cast<double>((g_.x.c * (r1 - r0 + width) + (r1 - r0) * width) * 4));
          for (int64_t k = 0; k < g_.x.c; k += 16) {
            const int64_t some = std::min<int64_t>(16, g_.x.c - k);
            for (int64_t r = r0; r < r1; ++r)
              memory_.read(o_.scratch + (p * g_.input_stride + r * g_.padded_c + k) * 4, some * 4);
            memory_.read(o_.weights + (g_.packed_at(panel) + (p * g_.x.c + k) * width) * 4, some * width * 4);
          }
          memory_.write(products + (p * g_.product_stride + r0 * width) * 4, (r1 - r0) * width * 4);
        }
      for (int64_t i = 0; i < count; ++i) {
        int64_t n, row, column;
        place(first + i, n, row, column);
        for (int64_t v = 0; v < panel.vectors; ++v) {
          memory_.load(static_cast<double>(points * points * lanes_ * 4));
          for (int64_t p = 0; p < points * points; ++p)
            memory_.read(products + (p * g_.product_stride + i * width + v * lanes_) * 4, lanes_ * 4);
          through_square(g_.tile * points);
        }
        for (int64_t h = row; h < std::min<int64_t>(row + g_.tile, g_.y.h); ++h)
          for (int64_t w = column; w < std::min<int64_t>(column + g_.tile, g_.y.w); ++w) {
            memory_.load(static_cast<double>(panel.columns * 4));
            memory_.write(o_.y + (n * g_.y.image_stride + h * g_.y.row_stride + w * g_.y.pixel_stride + panel.column) * 4,
                          panel.columns * 4);
          }
      }
    }
  }

  const WinogradSchedule& s_;
  const cpu::WinogradGeometry& g_;
  int64_t lanes_;
  MemoryWalk& memory_;
  WalkedOperands o_;
  int64_t square_ = 0;
};

// The register tiles for 3x3, 5x5 and 7x7.
class DepthwiseWalk {
 public:
  DepthwiseWalk(const Stage& stage, const DepthwiseSchedule& s, int64_t lanes, int64_t l1_bytes, MemoryWalk& memory)
      : p_(get<DepthwiseParams>(stage.params)),
        s_(s),
        x_(feature_map(stage.inputs[0])),
        y_(feature_map(stage.outputs[0])),
        lanes_(lanes),
        block_(std::max<int64_t>(64, l1_bytes / 128 / 64 * 64)),
        memory_(memory) {
    o_.x = memory.allocate(stage.inputs[0].bytes());
    o_.weights = memory.allocate(p_.window.taps() * divided(y_.c, 16) * 64);
    o_.y = memory.allocate(stage.outputs[0].bytes());
  }
  void run() {
    const int64_t most = std::min<int64_t>(7, s_.columns), tiles = divided(y_.w, most);
    for (int64_t n = 0; n < y_.n; ++n)
      for (int64_t c0 = 0; c0 < y_.c; c0 += block_)
        for (int64_t i = 0, q = 0; i < tiles; ++i) {
          const int64_t columns = y_.w / tiles + (i < y_.w % tiles);
          for (int64_t row = 0; row < y_.h;) {
            const int64_t rows = s_.rows >= 2 && row + 1 < y_.h ? 2 : 1;
            tile(n, row, rows, q, columns, c0, std::min(c0 + block_, y_.c));
            row += rows;
          }
          q += columns;
        }
  }

 private:
  void tile(int64_t n, int64_t row, int64_t rows, int64_t q, int64_t columns, int64_t c0, int64_t c1) {
    const Window& w = p_.window;
    const int64_t filter = w.filter[2], stride = w.stride[2];
    const int64_t h0 = row * stride - w.pad_begin[1], w0 = q * stride - w.pad_begin[2];
    for (int64_t c = c0; c < c1; c += lanes_) {
      for (int64_t i = 0; i < (rows - 1) * stride + filter; ++i) {
        if (h0 + i < 0 || h0 + i >= x_.h) continue;
        for (int64_t k = 0; k < rows; ++k)
          if (const int64_t r = i - k * stride; r >= 0 && r < filter)
            for (int64_t s = 0; s < filter; ++s) {
              memory_.load(static_cast<double>(lanes_ * 4));
              memory_.read(o_.weights + ((r * filter + s) * divided(y_.c, 16) * 16 + c) * 4, lanes_ * 4);
            }
        for (int64_t j = 0; j < (columns - 1) * stride + filter; ++j) {
          if (w0 + j < 0 || w0 + j >= x_.w) continue;
          memory_.load(static_cast<double>(lanes_ * 4));
          memory_.read(o_.x + (n * x_.image_stride + (h0 + i) * x_.row_stride + (w0 + j) * x_.pixel_stride + c) * 4,
                       std::min(lanes_, c1 - c) * 4);
        }
      }
      for (int64_t k = 0; k < rows; ++k)
        for (int64_t j = 0; j < columns; ++j) {
          memory_.load(static_cast<double>(lanes_ * 4));
          memory_.write(o_.y + (n * y_.image_stride + (row + k) * y_.row_stride + (q + j) * y_.pixel_stride + c) * 4,
                        std::min(lanes_, c1 - c) * 4);
        }
    }
  }

  const DepthwiseParams& p_;
  const DepthwiseSchedule& s_;
  FeatureMap x_, y_;
  int64_t lanes_, block_;
  MemoryWalk& memory_;
  WalkedOperands o_;
};

class GroupedWalk {
 public:
  GroupedWalk(const Stage& stage, const GroupedSchedule& s, int64_t lanes, MemoryWalk& memory)
      : p_(get<GroupedParams>(stage.params)),
        s_(s),
        x_(feature_map(stage.inputs[0])),
        y_(feature_map(stage.outputs[0])),
        lanes_(lanes),
        depth_(x_.c / p_.groups),
        blocks_(divided(y_.c, lanes)),
        column_((s.variant == "permute" ? 1 : depth_) * lanes),
        memory_(memory) {
    const Window& w = p_.window;
    ring_ = (w.filter[1] - 1) * w.dilation[1] + 1;
    span_ = (s.columns - 1) * w.stride[2] + (w.filter[2] - 1) * w.dilation[2] + 1;
    o_.x = memory.allocate(stage.inputs[0].bytes());
    o_.weights = memory.allocate(blocks_ * w.taps() * depth_ * lanes * 4);
    o_.y = memory.allocate(stage.outputs[0].bytes());
    o_.scratch = memory.allocate(ring_ * span_ * column_ * 4);
  }
  void run() {
    const int64_t rows = s_.rows > 0 ? s_.rows : y_.h;
    for (int64_t n = 0; n < y_.n; ++n)
      for (int64_t p = 0; p < y_.h; p += rows)
        for (int64_t block = 0; block < blocks_; ++block)
          for (int64_t q = 0; q < y_.w; q += s_.columns)
            part(n, block, p, std::min(y_.h, p + rows), q, std::min(y_.w, q + s_.columns));
  }

 private:
  void part(int64_t n, int64_t block, int64_t p0, int64_t p1, int64_t q0, int64_t q1) {
    const Window& w = p_.window;
    const int64_t left = q0 * w.stride[2] - w.pad_begin[2];
    const int64_t span = (q1 - q0 - 1) * w.stride[2] + (w.filter[2] - 1) * w.dilation[2] + 1, channel = block * lanes_;
    std::vector<int64_t> held(static_cast<size_t>(ring_), -1);
    for (int64_t p = p0; p < p1; ++p) {
      std::vector<int64_t> rows, taps;
      for (int64_t r = 0; r < w.filter[1]; ++r) {
        const int64_t h = p * w.stride[1] - w.pad_begin[1] + r * w.dilation[1];
        if (h < 0 || h >= x_.h) continue;
        const int64_t to = o_.scratch + h % ring_ * span_ * column_ * 4;
        if (held[static_cast<size_t>(h % ring_)] != h) {
          held[static_cast<size_t>(h % ring_)] = h;
          for (int64_t i = 0; i < span; ++i) {
            if (left + i >= 0 && left + i < x_.w) {
              memory_.load(static_cast<double>(lanes_ * 4));
              memory_.read(o_.x + (n * x_.image_stride + h * x_.row_stride + (left + i) * x_.pixel_stride + channel) * 4,
                           lanes_ * 4);
            }
            memory_.load(static_cast<double>(column_ * 4));
            memory_.write(to + i * column_ * 4, column_ * 4);
          }
        }
        rows.push_back(to), taps.push_back(r);
      }
      const int64_t tiles =
          divided(q1 - q0, s_.variant == "permute" && lanes_ == 8 ? cpu::kMostGroupedPixels - 2 : cpu::kMostGroupedPixels);
      for (int64_t t = 0; t < tiles; ++t) {
        const int64_t begin = t * (q1 - q0) / tiles, end = (t + 1) * (q1 - q0) / tiles, pixels = end - begin;
        for (size_t r = 0; r < rows.size(); ++r) sums(block, rows[r] + begin * w.stride[2] * column_ * 4, taps[r], pixels);
        memory_.load(static_cast<double>(pixels * lanes_ * 4));
        for (int64_t q = q0 + begin; q < q0 + end; ++q)
          memory_.write(o_.y + (n * y_.image_stride + p * y_.row_stride + q * y_.pixel_stride + channel) * 4, lanes_ * 4);
      }
    }
  }
  // One row of the filter over some outputs. Three taps side by side load each input once; a permuted one for each channel of
  // its group.
  void sums(int64_t block, int64_t x, int64_t row, int64_t pixels) {
    const Window& w = p_.window;
    const int64_t pixel = depth_ * lanes_ * 4, stride = w.stride[2], filter = w.filter[2];
    const bool slides = filter == 3 && w.dilation[2] == 1 && stride <= 2;
    const int64_t inputs = slides ? (pixels - 1) * stride + 3 : pixels * filter;
    memory_.load(static_cast<double>((inputs + filter) * pixel));
    memory_.read(o_.weights + (block * w.filter[1] + row) * filter * pixel, filter * pixel);
    for (int64_t s = 0; s < (slides ? 1 : filter); ++s)
      for (int64_t i = 0; i < (slides ? inputs : pixels); ++i)
        memory_.read(x + (slides ? i : s * w.dilation[2] + i * stride) * column_ * 4, column_ * 4);
  }

  const GroupedParams& p_;
  const GroupedSchedule& s_;
  FeatureMap x_, y_;
  int64_t lanes_, depth_, blocks_, column_, ring_ = 1, span_ = 1;  // column_: floats of the ring
  MemoryWalk& memory_;
  WalkedOperands o_;
};

}  // namespace sparkle::testing
