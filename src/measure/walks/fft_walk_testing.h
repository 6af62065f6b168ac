// The loop nest of the fft kernels without its arithmetic: tiles in, lines through their passes, products, lines back, tiles
// out. Written from fft.cc and fft_lines.cc. Sums that are finished where they are written; one thread.
#pragma once

#include "backends/cpu/fft/fft_geometry.h"
#include "families/common.h"
#include "measure/walks/memory_walk_testing.h"

namespace sparkle::testing {

class FftWalk {
 public:
  FftWalk(const Stage& stage, const cpu::FftGeometry& g, MemoryWalk& memory) : g_(g), point_(2 * g.lanes), memory_(memory) {
    o_.x = memory.allocate(stage.inputs[0].bytes());
    o_.weights = memory.allocate(g.packed_floats * 4);
    o_.y = memory.allocate(stage.outputs[0].bytes());
    o_.scratch = memory.allocate(g.scratch_floats * 4);
    row_twiddles_ = memory.allocate(static_cast<int64_t>(g.row.twiddles.size()) * 4);
    line_twiddles_ = memory.allocate(static_cast<int64_t>(g.line.twiddles.size()) * 4);
  }
  void run() {
    for (int64_t part = 0; part < g_.parts; ++part)
      for (int64_t i = 0; i < g_.strips; ++i) strip(i, part);
  }

 private:
  struct Tile {
    bool exists = false;
    int64_t n = 0, p = 0, q = 0;
    FftAxis::Part height, width;
  };
  struct Range {
    int64_t begin = 0, end = 0;
  };
  struct Slot {
    std::vector<Tile> tiles;
    Range rows;
    int64_t outputs = 0;
  };
  struct Channels {
    int64_t first, count;
  };
  void moved(int64_t floats) const { memory_.load(static_cast<double>(4 * floats)); }
  void filled(int64_t at, int64_t floats) const {
    moved(floats);
    memory_.write(at, floats * 4);
  }

  Slot slot_at(int64_t index) const {
    Slot slot;
    slot.rows = {g_.line_points, 0};
    for (int64_t i = 0; i < g_.slot_tiles; ++i) {
      const int64_t tile = index * g_.slot_tiles + i;
      slot.tiles.emplace_back();
      if (tile >= g_.tiles) continue;
      const cpu::FftGeometry::Place at = g_.place(tile);
      Tile& t = slot.tiles.back();
      t = {true, at.n, at.row * g_.height.tile, at.column * g_.width.tile, g_.height.part(at.row), g_.width.part(at.column)};
      slot.rows.begin = std::min(slot.rows.begin, t.height.begin), slot.rows.end = std::max(slot.rows.end, t.height.end);
      slot.outputs = std::max(slot.outputs, t.height.outputs);
    }
    if (slot.rows.begin >= slot.rows.end) slot.rows = {};
    return slot;
  }
  Channels channels(int64_t part, int64_t slot, int64_t of_group) const {
    if (g_.tiled) return {part * of_group + slot, 1};
    if (g_.single) return {part * g_.lanes, std::min(g_.lanes, g_.y.c - part * g_.lanes)};
    return {part * of_group + slot * g_.lanes, std::min(g_.lanes, of_group - slot * g_.lanes)};
  }

  void strip(int64_t index, int64_t part) const {
    const int64_t first = index * g_.strip, count = std::min(g_.strip, g_.slots - first);
    const int64_t row = o_.scratch, x = row + point_ * g_.row.points * 4;
    const int64_t y = g_.single ? x : x + g_.strip * g_.in_slots * g_.plane_stride * 4;
    std::vector<Slot> slots;
    for (int64_t t = 0; t < count; ++t) {
      slots.push_back(slot_at(first + t));
      for (int64_t c = 0; c < g_.in_slots; ++c)
        read(slots.back(), channels(part, c, g_.depth), row, x + (t * g_.in_slots + c) * g_.plane_stride * 4);
    }
    for (int64_t l = 0; l < g_.lines; ++l) {
      for (int64_t i = 0; i < count * g_.in_slots; ++i) {
        const int64_t line = x + (i * g_.plane_stride + l * g_.line_stride) * 4;
        if (!g_.flat) clear_outside(line, slots[static_cast<size_t>(i / g_.in_slots)].rows, g_.line_points);
        transform(g_.line, line_twiddles_, 0, line, false);
      }
      multiply(part, l, x + l * g_.line_stride * 4, y + l * g_.line_stride * 4, count);
      for (int64_t i = 0; i < count * g_.out_slots; ++i)
        transform(g_.line, line_twiddles_, 0, y + (i * g_.plane_stride + l * g_.line_stride) * 4, true);
    }
    for (int64_t t = 0; t < count; ++t)
      for (int64_t k = 0; k < g_.out_slots; ++k)
        write(slots[static_cast<size_t>(t)], channels(part, k, g_.filters), y + (t * g_.out_slots + k) * g_.plane_stride * 4,
              row);
  }
  void clear_outside(int64_t line, Range kept, int64_t points) const {
    filled(line, kept.begin * point_), filled(line + kept.end * point_ * 4, (points - kept.end) * point_);
  }

  // Tiles in.
  void read(const Slot& slot, Channels channels, int64_t row, int64_t lines) const {
    if (g_.flat && g_.tiled) return read_lanes(slot, channels, 0, lines);
    if (g_.flat) {
      filled(lines, g_.line_points * point_);
      for (size_t i = 0; i < 2; ++i)
        if (slot.tiles[i].exists) read_row(slot.tiles[i], 0, channels, lines + static_cast<int64_t>(i) * g_.lanes * 4);
      return;
    }
    for (int64_t r = slot.rows.begin; r < slot.rows.end; r += 2) {
      if (g_.tiled) {
        read_lanes(slot, channels, r, row);
      } else {
        clear_outside(row, {slot.tiles[0].width.begin, slot.tiles[0].width.end}, g_.row.points);
        for (int64_t i = 0; i < 2; ++i) read_row(slot.tiles[0], r + i, channels, row + i * g_.lanes * 4);
      }
      transform(g_.row, row_twiddles_, 0, row, false);
      between(row, lines + r * point_ * 4, point_, true);
    }
  }
  void read_row(const Tile& tile, int64_t r, Channels channels, int64_t to) const {
    const FftAxis::Part& w = tile.width;
    const bool inside = r >= tile.height.begin && r < tile.height.end;
    for (int64_t i = w.begin; i < w.end; ++i) {
      if (inside) {
        moved(channels.count);
        memory_.read(o_.x + (tile.n * g_.x.image_stride + (tile.height.origin + r) * g_.x.row_stride +
                             (w.origin + i) * g_.x.pixel_stride + channels.first) *
                                4,
                     channels.count * 4);
      }
      filled(to + i * point_ * 4, g_.lanes);
    }
  }
  const Tile& tile_of_lane(const Slot& slot, int64_t i) const {
    return slot.tiles[static_cast<size_t>(g_.flat || i < g_.lanes ? i : i - g_.lanes)];
  }
  void read_lanes(const Slot& slot, Channels channels, int64_t r, int64_t line) const {
    for (int64_t begin = 0; begin < g_.row.points; begin += 64) {
      const int64_t end = std::min<int64_t>(g_.row.points, begin + 64);
      filled(line + begin * point_ * 4, (end - begin) * point_);
      for (int64_t i = 0; i < point_; ++i) {
        const Tile& tile = tile_of_lane(slot, i);
        const int64_t row = g_.flat ? 0 : r + (i >= g_.lanes);
        if (!tile.exists || row < tile.height.begin || row >= tile.height.end) continue;
        const int64_t from = o_.x + (tile.n * g_.x.image_stride + (tile.height.origin + row) * g_.x.row_stride +
                                     tile.width.origin * g_.x.pixel_stride + channels.first) *
                                        4;
        for (int64_t j = std::max(begin, tile.width.begin); j < std::min(end, tile.width.end); ++j) {
          moved(2);
          memory_.read(from + j * g_.x.pixel_stride * 4, 4), memory_.write(line + (j * point_ + i) * 4, 4);
        }
      }
    }
  }

  // A transform: large blocks part by part, near ones pass by pass.
  void transform(const cpu::FftPlan& plan, int64_t twiddles, size_t level, int64_t x, bool inverse) const {
    if (level == plan.passes.size()) return;
    const cpu::FftPass& pass = plan.passes[level];
    const int64_t block = pass.radix * pass.step;
    if (!inverse) run_pass(pass, twiddles, x, 1);
    if (block * point_ * 4 <= 20 * 1024) {
      for (size_t i = 1; level + i < plan.passes.size(); ++i) {
        const cpu::FftPass& next = plan.passes[inverse ? plan.passes.size() - i : level + i];
        run_pass(next, twiddles, x, block / (next.radix * next.step));
      }
    } else {
      for (int64_t q = 0; q < pass.radix; ++q) transform(plan, twiddles, level + 1, x + q * pass.step * point_ * 4, inverse);
    }
    if (inverse) run_pass(pass, twiddles, x, 1);
  }
  void run_pass(const cpu::FftPass& pass, int64_t twiddles, int64_t x, int64_t blocks) const {
    moved(blocks * pass.step * pass.radix * point_ * 2 + blocks * (pass.step - 1) * 2 * (pass.radix - 1));
    for (int64_t b = 0; b < blocks; ++b)
      for (int64_t j = 0; j < pass.step; ++j) {
        const int64_t factors = 2 * (pass.radix - 1);
        if (j > 0) memory_.read(twiddles + (pass.twiddles + (j - 1) * factors) * 4, factors * 4);
        for (const bool in : {true, false})
          for (int64_t q = 0; q < pass.radix; ++q) {
            const int64_t at = x + ((b * pass.radix + q) * pass.step + j) * point_ * 4;
            in ? memory_.read(at, point_ * 4) : memory_.write(at, point_ * 4);
          }
      }
  }
  // Rows to lines and back: frequency k of both rows comes from the points of k and -k.
  void between(int64_t row, int64_t lines, int64_t second, bool in) const {
    const std::vector<int32_t>& place = g_.row.place;
    const int64_t n = g_.row.points;
    for (int64_t k = 0; 2 * k <= n; ++k) {
      const int64_t at[] = {row + place[static_cast<size_t>(k)] * point_ * 4,
                            row + place[static_cast<size_t>(k == 0 ? 0 : n - k)] * point_ * 4};
      const int64_t line = lines + k * g_.line_stride * 4;
      moved(4 * point_);
      for (const int64_t point : at) in ? memory_.read(point, point_ * 4) : memory_.write(point, point_ * 4);
      for (const int64_t point : {line, line + second * 4})
        in ? memory_.write(point, point_ * 4) : memory_.read(point, point_ * 4);
    }
  }

  void multiply(int64_t part, int64_t l, int64_t x, int64_t y, int64_t count) const {
    const int64_t weights = o_.weights + g_.packed_at(part, l, 0) * 4, plane = g_.plane_stride * 4;
    const int64_t bytes = point_ * 4;
    for (int64_t f = 0; f < g_.line_points; ++f) {
      const int64_t w = weights + f * g_.weights_point() * 4;
      if (g_.single) {
        moved(3 * point_);
        memory_.read(w, bytes), memory_.read(x + f * bytes, bytes), memory_.write(x + f * bytes, bytes);
      } else if (g_.tiled) {  // up to four filters with each load of the channels
        for (int64_t k = 0; k < g_.filters;) {
          const int64_t some = k + 4 <= g_.filters ? 4 : 1;
          moved(g_.depth * (point_ + 2 * some) + some * point_);
          for (int64_t c = 0; c < g_.depth; ++c) memory_.read(x + c * plane + f * bytes, bytes);
          memory_.read(w + k * g_.depth * 8, some * g_.depth * 8);
          for (int64_t i = k; i < k + some; ++i) memory_.write(y + i * plane + f * bytes, bytes);
          k += some;
        }
      } else {  // up to four tiles with each load of the weights
        for (int64_t k = 0; k < g_.out_slots; ++k)
          for (int64_t t = 0; t < count;) {
            const int64_t some = t + 4 <= count ? 4 : 1;
            moved(g_.depth * (point_ + 2 * some) + some * point_);
            for (int64_t c = 0; c < g_.in_slots; ++c)
              for (int64_t i = t; i < t + some; ++i) memory_.read(x + (i * g_.in_slots + c) * plane + f * bytes, bytes);
            memory_.read(w + k * g_.depth * bytes, g_.depth * bytes);
            for (int64_t i = t; i < t + some; ++i) memory_.write(y + (i * g_.out_slots + k) * plane + f * bytes, bytes);
            t += some;
          }
      }
    }
  }

  // Tiles out.
  void write(const Slot& slot, Channels channels, int64_t lines, int64_t row) const {
    if (g_.flat) {
      if (g_.tiled) return write_lanes(slot, channels, 0, lines);
      for (size_t i = 0; i < 2; ++i)
        if (slot.tiles[i].exists) write_row(slot.tiles[i], 0, channels, lines + static_cast<int64_t>(i) * g_.lanes * 4);
      return;
    }
    const int64_t step = g_.height.stride * point_;
    for (int64_t p = 0; p < slot.outputs; p += 2) {
      const bool pair = p + 1 < slot.outputs;
      between(row, lines + p * step * 4, pair ? step : 0, false);
      transform(g_.row, row_twiddles_, 0, row, true);
      if (g_.tiled) {
        write_lanes(slot, channels, p, row);
      } else {
        for (int64_t i = 0; i < 1 + pair; ++i) write_row(slot.tiles[0], p + i, channels, row + i * g_.lanes * 4);
      }
    }
  }
  int64_t output(const Tile& tile, int64_t p, int64_t q, Channels channels) const {
    return o_.y +
           (tile.n * g_.y.image_stride + (tile.p + p) * g_.y.row_stride + (tile.q + q) * g_.y.pixel_stride + channels.first) *
               4;
  }
  void write_row(const Tile& tile, int64_t p, Channels channels, int64_t from) const {
    for (int64_t q = 0; q < tile.width.outputs; ++q) {
      moved(g_.lanes + channels.count);
      memory_.read(from + q * g_.width.stride * point_ * 4, g_.lanes * 4);
      memory_.write(output(tile, p, q, channels), channels.count * 4);
    }
  }
  void write_lanes(const Slot& slot, Channels channels, int64_t p, int64_t from) const {
    for (int64_t begin = 0; begin < g_.width.tile; begin += 64)
      for (int64_t i = 0; i < point_; ++i) {
        const Tile& tile = tile_of_lane(slot, i);
        const int64_t row = g_.flat ? 0 : p + (i >= g_.lanes);
        if (!tile.exists || row >= tile.height.outputs) continue;
        for (int64_t q = begin; q < std::min(begin + 64, tile.width.outputs); ++q) {
          moved(2);
          memory_.read(from + (q * g_.width.stride * point_ + i) * 4, 4);
          memory_.write(output(tile, row, q, channels), 4);
        }
      }
  }

  const cpu::FftGeometry& g_;
  int64_t point_;  // floats
  MemoryWalk& memory_;
  WalkedOperands o_;
  int64_t row_twiddles_ = 0, line_twiddles_ = 0;
};

}  // namespace sparkle::testing
