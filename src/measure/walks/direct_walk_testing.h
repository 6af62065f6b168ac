// The direct kernels without their arithmetic, on the cut that they run (direct_cut.h): rows laid into the ring, tiles of a row
// of outputs. Written from direct.cc, direct_input.cc and the three tiles. Sums that are finished by a bias and bounds; one
// thread.
#pragma once

#include "backends/cpu/direct/direct_rows.h"
#include "families/common.h"
#include "families/direct/direct_cut.h"
#include "families/windows/taps.h"
#include "measure/walks/memory_walk_testing.h"

namespace sparkle::testing {

class DirectWalk {
 public:
  DirectWalk(const Stage& stage, const DirectSchedule& s, int64_t lanes, int registers, MemoryWalk& memory)
      : w_(get<DirectParams>(stage.params).window),
        cut_(direct_cut(stage, s, lanes)),
        all_(direct_blocks(stage, s, cut_, registers >= 32)),
        bundles_(get<DirectParams>(stage.params).groups / cut_.bundle),
        memory_(memory) {
    o_.x = memory.allocate(stage.inputs[0].bytes());
    o_.weights = memory.allocate(all_.weight_floats * 4);
    o_.y = memory.allocate(stage.outputs[0].bytes());
    o_.scratch = memory.allocate(cut_.in_place() ? 64 : cut_.ring * cut_.row.floats * 4);
    apart_ = memory.allocate(cpu::kMostPixelMaps * cpu::kMostPixelVectors * lanes * 4);
  }
  void run() {
    const FeatureMap& y = cut_.y;
    for (int64_t n = 0; n < y.n; ++n)
      for (int64_t p = 0; p < y.h; p += cut_.rows)
        for (int64_t bundle = 0; bundle < bundles_; ++bundle)
          for (int64_t q = 0; q < y.w; q += cut_.columns)
            part(n, bundle, p, std::min(y.h, p + cut_.rows), q, std::min(y.w, q + cut_.columns));
  }

 private:
  void copied(int64_t floats) const { memory_.load(static_cast<double>(8 * floats)); }
  void filled(int64_t at, int64_t floats) const {
    memory_.load(static_cast<double>(4 * floats));
    memory_.write(at, 4 * floats);
  }

  void part(int64_t n, int64_t bundle, int64_t p0, int64_t p1, int64_t q0, int64_t q1) const {
    const int64_t left = q0 * w_.stride[2] - w_.pad_begin[2], channels = cut_.bundle * cut_.depth;
    const int64_t span = (q1 - q0 - 1) * w_.stride[2] + (w_.filter[2] - 1) * w_.dilation[2] + 1;
    const int64_t before = std::clamp<int64_t>(-left, 0, span);
    const int64_t columns = std::clamp<int64_t>(cut_.x.w - std::max<int64_t>(left, 0), 0, span - before);
    const int64_t image = o_.x + (n * cut_.x.image_stride + bundle * channels * cut_.x.channel_stride +
                                  std::max<int64_t>(left, 0) * cut_.x.pixel_stride) *
                                     4;
    const size_t some = all_.blocks.size() / static_cast<size_t>(bundles_);
    std::vector<int64_t> held(static_cast<size_t>(cut_.ring), -1);
    for (int64_t p = p0; p < p1; ++p) {
      const int64_t top = p * w_.stride[1] - w_.pad_begin[1];
      const Taps taps = taps_at({cut_.x.h, cut_.y.h, w_.filter[1], w_.stride[1], w_.dilation[1], w_.pad_begin[1]}, p);
      std::vector<int64_t> rows;  // where the rows of the filter find their first input
      for (int64_t r = taps.begin; r < taps.end; ++r) {
        const int64_t h = top + r * w_.dilation[1];
        if (cut_.in_place()) {
          rows.push_back(image + h * cut_.x.row_stride * 4);
          continue;
        }
        const int64_t to = o_.scratch + h % cut_.ring * cut_.row.floats * 4;
        if (held[static_cast<size_t>(h % cut_.ring)] != h) {
          held[static_cast<size_t>(h % cut_.ring)] = h;
          cut_.planes ? lay_planes(image + h * cut_.x.row_stride * 4, before, columns, channels, to)
                      : lay_row(image + h * cut_.x.row_stride * 4, before, columns, channels, to);
        }
        rows.push_back(to);
      }
      for (size_t i = 0; i < some; ++i) {
        const DirectBlock& block = all_.blocks[static_cast<size_t>(bundle) * some + i];
        const int64_t group = (block.group - bundle * cut_.bundle) * cut_.depth * cut_.channel * 4;
        row(block, rows, group, taps.begin,
            o_.y + (n * cut_.y.image_stride + p * cut_.y.row_stride + q0 * cut_.y.pixel_stride) * 4, q1 - q0);
      }
    }
  }
  // The whole row is zeroed; then channel by channel, few channels side by side in whole vectors at once.
  void lay_planes(int64_t from, int64_t before, int64_t columns, int64_t channels, int64_t to) const {
    const int64_t stride = cut_.pixels ? w_.stride[2] : 1;
    filled(to, cut_.row.floats);
    copied(columns * channels);
    const auto place = [&](int64_t c, int64_t i) {
      return to + (c * cut_.row.channel + (before + i) % stride * cut_.row.phase + (before + i) / stride) * 4;
    };
    int64_t done = 0;
    if (stride == 1 && channels > 1 && channels <= 4 && cut_.x.channel_stride == 1 && cut_.x.pixel_stride == channels)
      for (; done + cut_.lanes <= columns; done += cut_.lanes) {
        memory_.read(from + done * channels * 4, cut_.lanes * channels * 4);
        for (int64_t c = 0; c < channels; ++c) memory_.write(place(c, done), cut_.lanes * 4);
      }
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = done; i < columns; ++i) {
        memory_.read(from + (c * cut_.x.channel_stride + i * cut_.x.pixel_stride) * 4, 4);
        memory_.write(place(c, i), 4);
      }
  }
  void lay_row(int64_t from, int64_t before, int64_t columns, int64_t channels, int64_t to) const {
    filled(to, before * channels);
    copied(columns * channels);
    for (int64_t i = 0; i < columns; ++i) {
      for (int64_t c = 0; c < channels; c += cut_.x.channel_stride == 1 ? channels : 1)
        memory_.read(from + (i * cut_.x.pixel_stride + c * cut_.x.channel_stride) * 4,
                     cut_.x.channel_stride == 1 ? channels * 4 : 4);
      memory_.write(to + (before + i) * channels * 4, channels * 4);
    }
    const int64_t end = (before + columns) * channels;
    filled(to + end * 4, cut_.row.floats - end);
  }

  // A row of outputs, tile by tile, the longer ones first.
  void row(const DirectBlock& block, const std::vector<int64_t>& rows, int64_t group, int64_t first, int64_t y,
           int64_t width) const {
    const DirectRowCut& cut = block.tiles[width == cut_.columns ? 0 : 1];
    const int64_t output = cut_.pixels ? 1 : w_.stride[2] * cut_.column;  // floats of input between outputs
    const int64_t weights = o_.weights + (block.weights + first * block.row_floats) * 4;
    for (int64_t t = 0, q = 0; t < cut.tiles; ++t) {
      const int64_t size = t < cut.longer ? cut.length : cut.length - 1, outputs = std::min(width - q, size * cut_.unit());
      for (size_t r = 0; r < rows.size(); ++r)
        sums(block, rows[r] + group + q * output * 4, weights + static_cast<int64_t>(r) * block.row_floats * 4, size, output);
      store(block, y + (q * cut_.y.pixel_stride + block.first) * 4, outputs, size);
      q += size * cut_.unit();
    }
  }
  // One row of the filter.
  void sums(const DirectBlock& block, int64_t x, int64_t weights, int64_t size, int64_t output) const {
    const int64_t taps = w_.filter[2], step = cut_.pixels ? block.vectors : block.vectors * cut_.lanes;  // floats of weights
    memory_.read(weights, block.row_floats * 4);
    memory_.load(static_cast<double>(block.row_floats * 4));
    if (cut_.slides) {  // each column once for all of its taps
      memory_.load(static_cast<double>((size + taps - 1) * cut_.depth * 4));
      for (int64_t c = 0; c < cut_.depth; ++c)
        for (int64_t i = 0; i < size + taps - 1; ++i) memory_.read(x + (c * cut_.channel + i * cut_.column) * 4, 4);
      return;
    }
    memory_.load(static_cast<double>(block.row_floats / step * size * (cut_.pixels ? cut_.lanes * 4 : 4)));
    const auto tap = [&](int64_t s) {
      const int64_t at = s * w_.dilation[2];
      return cut_.in_place() || !cut_.pixels ? at * cut_.column : at % w_.stride[2] * cut_.row.phase + at / w_.stride[2];
    };
    if (cut_.pixels) {
      for (int64_t c = 0; c < cut_.depth; ++c)
        for (int64_t s = 0; s < taps; ++s) memory_.read(x + (c * cut_.channel + tap(s)) * 4, size * cut_.lanes * 4);
      return;
    }
    const int64_t together = cut_.channel == 1 ? 16 : 1;  // channels of a line
    for (int64_t s = 0; s < taps; ++s)
      for (int64_t c = 0; c < cut_.depth; c += together)
        for (int64_t i = 0; i < size; ++i)
          memory_.read(x + (tap(s) + c * cut_.channel + i * output) * 4, std::min(together, cut_.depth - c) * 4);
  }
  void store(const DirectBlock& block, int64_t y, int64_t outputs, int64_t size) const {
    memory_.load(static_cast<double>(outputs * block.maps * 4));
    if (cut_.pixels && (cut_.y.pixel_stride != block.vectors || outputs < size * cut_.lanes)) {  // through the L1
      const int64_t floats = block.vectors * size * cut_.lanes;
      filled(apart_, floats);
      memory_.load(static_cast<double>(outputs * block.maps * 4));
      memory_.read(apart_, floats * 4);
    }
    for (int64_t i = 0; i < outputs; ++i) memory_.write(y + i * cut_.y.pixel_stride * 4, block.maps * 4);
  }

  const Window& w_;
  DirectCut cut_;
  DirectBlocks all_;
  int64_t bundles_;
  MemoryWalk& memory_;
  int64_t apart_ = 0;
  WalkedOperands o_;
};

}  // namespace sparkle::testing
