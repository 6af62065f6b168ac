// The loop nest of the direct kernels without its arithmetic: rows laid into the ring, tiles of a row of outputs. Written from
// direct.cc, direct_input.cc and the three tiles. Sums that are finished by a bias and bounds; one thread.
#pragma once

#include "backends/cpu/direct/direct_rows.h"
#include "families/common.h"
#include "families/direct/direct.h"
#include "families/direct/direct_layout.h"
#include "families/taps.h"
#include "measure/memory_walk_testing.h"

namespace sparkle::testing {

class DirectWalk {
 public:
  DirectWalk(const Stage& stage, const DirectSchedule& s, int64_t lanes, int registers, MemoryWalk& memory)
      : p_(get<DirectParams>(stage.params)),
        x_(feature_map(stage.inputs[0])),
        y_(feature_map(stage.outputs[0])),
        lanes_(lanes),
        many_(registers >= 32),
        pixels_(s.variant == "pixels"),
        slides_(s.variant == "slide"),
        memory_(memory) {
    const Window& w = p_.window;
    columns_ = std::clamp<int64_t>(s.columns, 1, y_.w), rows_ = s.rows > 0 ? s.rows : y_.h;
    depth_ = x_.c / p_.groups, maps_ = y_.c / p_.groups, bundle_ = direct_bundle(p_.groups, depth_);
    ring_ = (w.filter[1] - 1) * w.dilation[1] + 1;
    in_place_ = direct_reading(stage, s.variant, columns_, lanes) == DirectReading::in_place;
    planes_ = pixels_ || (x_.c > 1 && x_.pitch_c != 1);
    row_ = direct_row(w, bundle_ * depth_, columns_, lanes, pixels_ ? w.stride[2] : 1, planes_);
    channel_ = in_place_ ? x_.pitch_c : row_.channel;
    column_ = in_place_ ? x_.pitch_w : row_.column;
    find_blocks(s);
    o_.x = memory.allocate(stage.inputs[0].bytes());
    o_.weights = memory.allocate(packed_floats_ * 4);
    o_.y = memory.allocate(stage.outputs[0].bytes());
    o_.scratch = memory.allocate(in_place_ ? 64 : ring_ * row_.floats * 4);
    apart_ = memory.allocate(cpu::kMostPixelMaps * cpu::kMostPixelVectors * lanes * 4);
  }
  void run() {
    for (int64_t n = 0; n < y_.n; ++n)
      for (int64_t p = 0; p < y_.h; p += rows_)
        for (int64_t bundle = 0; bundle < p_.groups / bundle_; ++bundle)
          for (int64_t q = 0; q < y_.w; q += columns_)
            part(n, bundle, p, std::min(y_.h, p + rows_), q, std::min(y_.w, q + columns_));
  }

 private:
  struct Block {
    int64_t group, first, maps, vectors, weights, row_floats, most;
  };
  void find_blocks(const DirectSchedule& s) {
    const int64_t filter = p_.window.filter[2], lanes = pixels_ ? 1 : lanes_, vectors = divided(maps_, lanes);
    const int64_t widest = pixels_ ? 4 : slides_ ? 1 : many_ ? 4 : 2, most = std::clamp<int64_t>(s.maps, 1, widest);
    const int64_t n = divided(vectors, most);
    static constexpr int64_t kMany[] = {10, 8, 6, 5}, kFew[] = {8, 4, 3, 2};
    for (int64_t i = 0; i < p_.groups * n; ++i) {
      Block b{};
      const int64_t begin = i % n * vectors / n, end = (i % n + 1) * vectors / n;
      b.group = i / n, b.vectors = end - begin;
      b.first = b.group * maps_ + begin * lanes, b.maps = std::min(maps_, end * lanes) - begin * lanes;
      b.weights = packed_floats_, b.row_floats = filter * depth_ * b.vectors * lanes;
      packed_floats_ += p_.window.filter[1] * b.row_floats;
      b.most = pixels_   ? (many_ ? kMany : kFew)[b.vectors - 1]
               : slides_ ? std::min<int64_t>(filter == 5 ? 15 : 17, (many_ ? 30 : 14) - filter)
                         : (many_ ? 24 : 12) / b.vectors;
      if (b.vectors == most) b.most = std::min<int64_t>(b.most, std::max(1, s.pixels));
      blocks_.push_back(b);
    }
  }
  void copied(int64_t floats) const { memory_.load(static_cast<double>(8 * floats)); }
  void filled(int64_t at, int64_t floats) const {
    memory_.load(static_cast<double>(4 * floats));
    memory_.write(at, 4 * floats);
  }

  void part(int64_t n, int64_t bundle, int64_t p0, int64_t p1, int64_t q0, int64_t q1) const {
    const Window& w = p_.window;
    const int64_t left = q0 * w.stride[2] - w.pad_begin[2], channels = bundle_ * depth_;
    const int64_t span = (q1 - q0 - 1) * w.stride[2] + (w.filter[2] - 1) * w.dilation[2] + 1;
    const int64_t before = std::clamp<int64_t>(-left, 0, span);
    const int64_t columns = std::clamp<int64_t>(x_.w - std::max<int64_t>(left, 0), 0, span - before);
    const int64_t image =
        o_.x + (n * x_.pitch_n + bundle * channels * x_.pitch_c + std::max<int64_t>(left, 0) * x_.pitch_w) * 4;
    const size_t some = blocks_.size() / static_cast<size_t>(p_.groups / bundle_);
    std::vector<int64_t> held(static_cast<size_t>(ring_), -1);
    for (int64_t p = p0; p < p1; ++p) {
      const int64_t top = p * w.stride[1] - w.pad_begin[1];
      const Taps taps = taps_at({x_.h, y_.h, w.filter[1], w.stride[1], w.dilation[1], w.pad_begin[1]}, p);
      std::vector<int64_t> rows;  // where the rows of the filter find their first input
      for (int64_t r = taps.begin; r < taps.end; ++r) {
        const int64_t h = top + r * w.dilation[1];
        if (in_place_) {
          rows.push_back(image + h * x_.pitch_h * 4);
          continue;
        }
        const int64_t to = o_.scratch + h % ring_ * row_.floats * 4;
        if (held[static_cast<size_t>(h % ring_)] != h) {
          held[static_cast<size_t>(h % ring_)] = h;
          planes_ ? lay_planes(image + h * x_.pitch_h * 4, before, columns, channels, to)
                  : lay_row(image + h * x_.pitch_h * 4, before, columns, channels, to);
        }
        rows.push_back(to);
      }
      for (size_t i = 0; i < some; ++i) {
        const Block& block = blocks_[static_cast<size_t>(bundle) * some + i];
        const int64_t group = (block.group - bundle * bundle_) * depth_ * channel_ * 4;
        row(block, rows, group, taps.begin, o_.y + (n * y_.pitch_n + p * y_.pitch_h + q0 * y_.pitch_w) * 4, q1 - q0);
      }
    }
  }
  // The whole row is zeroed; then channel by channel, few channels side by side in whole vectors at once.
  void lay_planes(int64_t from, int64_t before, int64_t columns, int64_t channels, int64_t to) const {
    const int64_t stride = pixels_ ? p_.window.stride[2] : 1;
    filled(to, row_.floats);
    copied(columns * channels);
    const auto place = [&](int64_t c, int64_t i) {
      return to + (c * row_.channel + (before + i) % stride * row_.phase + (before + i) / stride) * 4;
    };
    int64_t done = 0;
    if (stride == 1 && channels > 1 && channels <= 4 && x_.pitch_c == 1 && x_.pitch_w == channels)
      for (; done + lanes_ <= columns; done += lanes_) {
        memory_.read(from + done * channels * 4, lanes_ * channels * 4);
        for (int64_t c = 0; c < channels; ++c) memory_.write(place(c, done), lanes_ * 4);
      }
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = done; i < columns; ++i) {
        memory_.read(from + (c * x_.pitch_c + i * x_.pitch_w) * 4, 4);
        memory_.write(place(c, i), 4);
      }
  }
  void lay_row(int64_t from, int64_t before, int64_t columns, int64_t channels, int64_t to) const {
    filled(to, before * channels);
    copied(columns * channels);
    for (int64_t i = 0; i < columns; ++i) {
      for (int64_t c = 0; c < channels; c += x_.pitch_c == 1 ? channels : 1)
        memory_.read(from + (i * x_.pitch_w + c * x_.pitch_c) * 4, x_.pitch_c == 1 ? channels * 4 : 4);
      memory_.write(to + (before + i) * channels * 4, channels * 4);
    }
    const int64_t end = (before + columns) * channels;
    filled(to + end * 4, row_.floats - end);
  }

  // A row of outputs, tile by tile, the longer ones first.
  void row(const Block& block, const std::vector<int64_t>& rows, int64_t group, int64_t first, int64_t y, int64_t width) const {
    const int64_t unit = pixels_ ? lanes_ : 1, along = divided(width, unit), tiles = divided(along, block.most);
    const int64_t length = divided(along, tiles), longer = along - tiles * (length - 1);
    const int64_t output = pixels_ ? 1 : p_.window.stride[2] * column_;  // floats of input between outputs
    const int64_t weights = o_.weights + (block.weights + first * block.row_floats) * 4;
    for (int64_t t = 0, q = 0; t < tiles; ++t) {
      const int64_t size = t < longer ? length : length - 1, outputs = std::min(width - q, size * unit);
      for (size_t r = 0; r < rows.size(); ++r)
        sums(block, rows[r] + group + q * output * 4, weights + static_cast<int64_t>(r) * block.row_floats * 4, size, output);
      store(block, y + (q * y_.pitch_w + block.first) * 4, outputs, size);
      q += size * unit;
    }
  }
  // One row of the filter.
  void sums(const Block& block, int64_t x, int64_t weights, int64_t size, int64_t output) const {
    const Window& w = p_.window;
    const int64_t taps = w.filter[2], step = pixels_ ? block.vectors : block.vectors * lanes_;  // floats of weights
    memory_.read(weights, block.row_floats * 4);
    memory_.load(static_cast<double>(block.row_floats * 4));
    if (slides_) {  // each column once for all of its taps
      memory_.load(static_cast<double>((size + taps - 1) * depth_ * 4));
      for (int64_t c = 0; c < depth_; ++c)
        for (int64_t i = 0; i < size + taps - 1; ++i) memory_.read(x + (c * channel_ + i * column_) * 4, 4);
      return;
    }
    memory_.load(static_cast<double>(block.row_floats / step * size * (pixels_ ? lanes_ * 4 : 4)));
    const auto tap = [&](int64_t s) {
      const int64_t at = s * w.dilation[2];
      return in_place_ || !pixels_ ? at * column_ : at % w.stride[2] * row_.phase + at / w.stride[2];
    };
    if (pixels_) {
      for (int64_t c = 0; c < depth_; ++c)
        for (int64_t s = 0; s < taps; ++s) memory_.read(x + (c * channel_ + tap(s)) * 4, size * lanes_ * 4);
      return;
    }
    const int64_t together = channel_ == 1 ? 16 : 1;  // channels of a line
    for (int64_t s = 0; s < taps; ++s)
      for (int64_t c = 0; c < depth_; c += together)
        for (int64_t i = 0; i < size; ++i)
          memory_.read(x + (tap(s) + c * channel_ + i * output) * 4, std::min(together, depth_ - c) * 4);
  }
  void store(const Block& block, int64_t y, int64_t outputs, int64_t size) const {
    memory_.load(static_cast<double>(outputs * block.maps * 4));
    if (pixels_ && (y_.pitch_w != block.vectors || outputs < size * lanes_)) {  // through the L1
      const int64_t floats = block.vectors * size * lanes_;
      filled(apart_, floats);
      memory_.load(static_cast<double>(outputs * block.maps * 4));
      memory_.read(apart_, floats * 4);
    }
    for (int64_t i = 0; i < outputs; ++i) memory_.write(y + i * y_.pitch_w * 4, block.maps * 4);
  }

  const DirectParams& p_;
  FeatureMap x_, y_;
  int64_t lanes_;
  bool many_, pixels_, slides_, in_place_ = false, planes_ = false;
  MemoryWalk& memory_;
  int64_t columns_ = 1, rows_ = 1, depth_ = 1, maps_ = 1, bundle_ = 1, ring_ = 1;
  int64_t channel_ = 1, column_ = 1;  // floats of input between channels and between columns
  DirectRow row_;
  std::vector<Block> blocks_;
  int64_t packed_floats_ = 0, apart_ = 0;
  WalkedOperands o_;
};

}  // namespace sparkle::testing
