// The loop nest of the inverted kernels without its arithmetic: wide rows into the ring, depthwise rows out of it, the
// projection. Written from inverted.cc and inverted_rows.cc. Bounds after each part; one thread.
#pragma once

#include "backends/cpu/gemm/gemm_tile.h"
#include "backends/cpu/inverted/inverted_geometry.h"
#include "backends/cpu/inverted/inverted_rows.h"
#include "families/common.h"
#include "families/inverted/inverted.h"
#include "measure/walks/memory_walk_testing.h"

namespace sparkle::testing {

class InvertedWalk {
 public:
  InvertedWalk(const Stage& stage, const InvertedSchedule& s, const cpu::InvertedGeometry& g, int64_t lanes, int registers,
               MemoryWalk& memory)
      : p_(get<InvertedParams>(stage.params)), s_(s), g_(g), lanes_(lanes), many_(registers >= 32), memory_(memory) {
    const InvertedOperands at = inverted_operands(p_);
    o_.x = memory.allocate(stage.inputs[0].bytes());
    wide_ = memory.allocate(g.x.c * g.padded_wide * 4);
    deep_ = memory.allocate(p_.window.taps() * g.padded_wide * 4);
    o_.weights = memory.allocate(g.padded_wide * g.padded_k * 4);
    if (at.residual >= 0) {
      residual_ = memory.allocate(stage.inputs[static_cast<size_t>(at.residual)].bytes());
      residual_map_ = feature_map(stage.inputs[static_cast<size_t>(at.residual)]);
    }
    o_.y = memory.allocate(stage.outputs[0].bytes());
    o_.scratch = memory.allocate(g.scratch_floats() * 4);
    zeros_ = memory.allocate(g.plane * 4);
    sums_ = memory.allocate(2 * cpu::kMaxCallRows * 4 * lanes * 4);
  }
  void run() {
    for (int64_t n = 0; n < g_.y.n; ++n)
      for (int64_t part = 0; part < g_.tasks; ++part) rows(n, part * g_.y.h / g_.tasks, (part + 1) * g_.y.h / g_.tasks);
  }

 private:
  struct Row {
    int64_t x, y;
  };
  void moved(int64_t floats) const { memory_.load(static_cast<double>(4 * floats)); }

  void rows(int64_t n, int64_t p0, int64_t p1) const {
    const int64_t ring = o_.scratch, deep = o_.scratch + g_.ring_floats() * 4;
    for (int64_t i = 0; i < g_.slots * g_.vectors; ++i) {  // columns outside of the image
      const int64_t plane = ring + i * g_.plane * 4, end = g_.inside_at + g_.inside * lanes_;
      moved(g_.inside_at + g_.plane - end);
      memory_.write(plane, g_.inside_at * 4), memory_.write(plane + end * 4, (g_.plane - end) * 4);
    }
    int64_t done = 0;
    for (int64_t p = p0; p < p1; p += g_.rows) {
      const int64_t count = std::min(g_.rows, p1 - p), first = p * g_.stride, last = (p + count - 1) * g_.stride + g_.filter;
      std::vector<Row> fresh;
      std::vector<int64_t> reach;
      for (int64_t i = first; i < last; ++i) {
        const int64_t h = i - g_.pad_h;
        const bool inside = h >= 0 && h < g_.x.h;
        const int64_t row = ring + i % g_.slots * g_.slot_stride * 4;
        reach.push_back(inside ? row : -1);
        if (inside && (i >= done || p == p0))
          fresh.push_back({o_.x + (n * g_.x.image_stride + h * g_.x.row_stride) * 4, row + g_.inside_at * 4});
      }
      done = last;
      for (int64_t v = 0; v < g_.vectors; v += s_.nr) {
        const int64_t end = std::min<int64_t>(v + s_.nr, g_.vectors);
        p_.expand ? expand(fresh, v, end) : spread(fresh, v, end);
        for (int64_t i = v; i < end; ++i) deep_rows(reach, count, i, deep);
      }
      g_.pairs ? project_pairs(n, p, count, deep) : project(n, p, count, deep);
    }
  }
  void spread(const std::vector<Row>& fresh, int64_t v, int64_t end) const {
    for (; v < end; ++v)
      for (const Row& row : fresh)
        for (int64_t i = 0; i < g_.inside; ++i) {
          const int64_t some = std::min(lanes_, g_.wide - v * lanes_);
          moved(some + lanes_);
          memory_.read(row.x + (i * g_.x.pixel_stride + v * lanes_) * 4, some * 4);
          memory_.write(row.y + (v * g_.plane + i * lanes_) * 4, lanes_ * 4);
        }
  }
  // Tiles of six pixels over all new rows by a panel of wide channels.
  void expand(const std::vector<Row>& fresh, int64_t v, int64_t end) const {
    const int64_t pixels = static_cast<int64_t>(fresh.size()) * g_.inside, tiles = divided(pixels, 6), vectors = end - v,
                  width = vectors * lanes_, weights = wide_ + v * lanes_ * g_.x.c * 4;
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t begin = t * pixels / tiles, stop = (t + 1) * pixels / tiles;
      const auto row = [&](int64_t i) { return fresh[static_cast<size_t>(i / g_.inside)]; };
      moved(g_.x.c * (width + stop - begin) + (stop - begin) * width);
      for (int64_t c = 0; c < g_.x.c; c += 16) {
        const int64_t some = std::min<int64_t>(16, g_.x.c - c);
        for (int64_t i = begin; i < stop; ++i) memory_.read(row(i).x + (i % g_.inside * g_.x.pixel_stride + c) * 4, some * 4);
        memory_.read(weights + c * width * 4, some * width * 4);
      }
      for (int64_t i = begin; i < stop; ++i)
        for (int64_t j = v; j < end; ++j) memory_.write(row(i).y + (i % g_.inside * lanes_ + j * g_.plane) * 4, lanes_ * 4);
    }
  }
  // One vector of channels: tiles of up to seven columns, of two rows where there are registers for them.
  void deep_rows(const std::vector<int64_t>& reach, int64_t count, int64_t v, int64_t deep) const {
    const int64_t tiles = divided(g_.y.w, 7), weights = deep_ + v * p_.window.taps() * lanes_ * 4;
    for (int64_t row = 0; row < count;) {
      const int64_t rows = many_ && row + 1 < count ? 2 : 1;
      for (int64_t t = 0; t < tiles; ++t) {
        const int64_t q = t * g_.y.w / tiles, columns = (t + 1) * g_.y.w / tiles - q;
        const int64_t span = (columns - 1) * g_.stride + g_.filter;
        for (int64_t i = 0; i < (rows - 1) * g_.stride + g_.filter; ++i) {
          for (int64_t k = 0; k < rows; ++k)
            if (const int64_t r = i - k * g_.stride; r >= 0 && r < g_.filter) {
              moved(g_.filter * lanes_);
              memory_.read(weights + r * g_.filter * lanes_ * 4, g_.filter * lanes_ * 4);
            }
          const int64_t from = reach[static_cast<size_t>(row * g_.stride + i)];
          moved(span * lanes_);
          memory_.read((from < 0 ? zeros_ : from + v * g_.plane * 4) + q * g_.stride * lanes_ * 4, span * lanes_ * 4);
        }
        for (int64_t k = 0; k < (g_.pairs ? 1 : rows); ++k)
          for (int64_t j = q; j < q + columns; ++j) {
            const int64_t floats = lanes_ * (g_.pairs ? 2 : 1), at = g_.pairs ? row / 2 : row + k;
            moved(floats);
            memory_.write(deep + ((at * g_.y.w + j) * g_.deep_stride + v * floats) * 4, floats * 4);
          }
      }
      row += rows;
    }
  }
  void finish(int64_t n, int64_t row, int64_t q, int64_t column, int64_t columns) const {
    moved(columns * (residual_ >= 0 ? 2 : 1));
    if (residual_ >= 0)
      memory_.read(
          residual_ +
              (n * residual_map_.image_stride + row * residual_map_.row_stride + q * residual_map_.pixel_stride + column) * 4,
          columns * 4);
    memory_.write(o_.y + (n * g_.y.image_stride + row * g_.y.row_stride + q * g_.y.pixel_stride + column) * 4, columns * 4);
  }
  void project(int64_t n, int64_t p, int64_t count, int64_t deep) const {
    const int64_t pixels = count * g_.y.w, width = (many_ ? 4 : 2) * lanes_;
    for (int64_t column = 0; column < g_.y.c; column += width) {
      const int64_t columns = std::min(width, g_.y.c - column), vectors = divided(columns, lanes_), padded = vectors * lanes_;
      const int64_t most = vectors <= (many_ ? 2 : 1) ? cpu::kMaxCallRows : cpu::kMaxTileRows, tiles = divided(pixels, most);
      for (int64_t t = 0; t < tiles; ++t) {
        const int64_t r0 = t * pixels / tiles, r1 = (t + 1) * pixels / tiles;
        moved(g_.wide * (r1 - r0 + padded));
        for (int64_t k = 0; k < g_.wide; k += 16) {
          const int64_t some = std::min<int64_t>(16, g_.wide - k);
          for (int64_t r = r0; r < r1; ++r) memory_.read(deep + (r * g_.deep_stride + k) * 4, some * 4);
          memory_.read(o_.weights + (column * g_.wide + k * padded) * 4, some * padded * 4);
        }
        if (columns != padded) {  // the last, partly filled vector's sums through the L1
          moved(2 * (r1 - r0) * padded);
          memory_.write(sums_, (r1 - r0) * padded * 4);
        }
        for (int64_t r = r0; r < r1; ++r) finish(n, p + r / g_.y.w, r % g_.y.w, column, columns);
      }
    }
  }
  // Pairs of pixels, eight or four at a time, their sums through the L1.
  void project_pairs(int64_t n, int64_t p, int64_t count, int64_t deep) const {
    const int64_t full = g_.y.c / lanes_, width = (full + 1) * lanes_, tile = full == 1 ? 8 : 4;
    for (int64_t row = p; row < p + count; row += 2)
      for (int64_t q = 0; q < g_.y.w; q += cpu::kMostPairs) {
        const int64_t pairs = std::min<int64_t>(cpu::kMostPairs, g_.y.w - q);
        for (int64_t done = 0; done < pairs;) {
          int64_t some = tile;
          while (done + some > pairs) some /= 2;
          moved(g_.padded_wide * (width + 4 * some));  // each pixel alone and with its pair
          for (int64_t c = 0; c < g_.padded_wide; c += 8) {
            for (int64_t i = 0; i < some; ++i)
              memory_.read(deep + (((row - p) / 2 * g_.y.w + q + done + i) * g_.deep_stride + 2 * c) * 4, 64);
            memory_.read(o_.weights + c * width * 4, 8 * width * 4);
          }
          moved(2 * some * width);
          memory_.write(sums_, 2 * some * width * 4);
          done += some;
        }
        moved(2 * pairs * width);
        for (int64_t half = 0; half < std::min<int64_t>(2, p + count - row); ++half)
          for (int64_t i = 0; i < pairs; ++i) finish(n, row + half, q + i, 0, g_.y.c);
      }
  }

  const InvertedParams& p_;
  const InvertedSchedule& s_;
  const cpu::InvertedGeometry& g_;
  int64_t lanes_;
  bool many_;
  MemoryWalk& memory_;
  WalkedOperands o_;
  int64_t wide_ = 0, deep_ = 0, residual_ = -1, zeros_ = 0, sums_ = 0;
  FeatureMap residual_map_;
};

}  // namespace sparkle::testing
