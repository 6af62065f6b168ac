// A hierarchy of memories for counted walks: each level holds its most recently used lines, whatever their addresses (no sets).
// Counts the bytes that cross from each level to the next inner one: lines that are missing there, and lines that were written
// there and leave it. Lines that are written whole are not fetched before.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/round_up.h"
#include "device/device.h"

namespace sparkle::testing {

class MemoryWalk {
 public:
  explicit MemoryWalk(const Device& device) : crossed_(device.memory.size(), 0) {
    for (size_t i = 0; i + 1 < device.memory.size(); ++i)
      levels_.push_back({std::max<int64_t>(1, device.memory[i].bytes / kLine), 0, {}, {}, {}, -1, -1});
  }
  // Memory for `bytes`, beginning with a line of its own.
  int64_t allocate(int64_t bytes) {
    const int64_t at = lines_ * kLine;
    lines_ += (bytes + kLine - 1) / kLine + 1;
    for (Level& level : levels_) {
      const auto count = static_cast<size_t>(lines_);
      level.newer.resize(count, -1), level.older.resize(count, -1), level.state.resize(count, 0);
    }
    return at;
  }
  void load(double bytes) { crossed_[0] += bytes; }  // into registers, or out of them
  void read(int64_t at, int64_t bytes) { touch(at, bytes, false); }
  void write(int64_t at, int64_t bytes) { touch(at, bytes, true); }
  // Whatever was written leaves for the outermost level.
  void flush() {
    for (size_t i = 0; i < levels_.size(); ++i)
      for (size_t line = 0; line < levels_[i].state.size(); ++line)
        if (levels_[i].state[line] == kDirty) {
          levels_[i].state[line] = kClean;
          crossed_[i + 1] += kLine;
          access(i + 1, static_cast<int32_t>(line), true);
        }
  }
  // What was moved per level since the last call, innermost first.
  std::vector<double> take() {
    std::vector<double> bytes(crossed_.size(), 0);
    bytes.swap(crossed_);
    return bytes;
  }

 private:
  static constexpr int64_t kLine = 64;
  enum : uint8_t { kAbsent, kClean, kDirty };
  struct Level {
    int64_t capacity, held;
    std::vector<int32_t> newer, older;
    std::vector<uint8_t> state;
    int32_t newest, oldest;
  };

  void touch(int64_t at, int64_t bytes, bool written) {
    if (bytes <= 0) return;
    for (int64_t line = at / kLine; line <= (at + bytes - 1) / kLine; ++line) access(0, static_cast<int32_t>(line), written);
  }
  void unlink(Level& l, int32_t line) {
    const auto at = static_cast<size_t>(line);
    (l.newer[at] >= 0 ? l.older[static_cast<size_t>(l.newer[at])] : l.newest) = l.older[at];
    (l.older[at] >= 0 ? l.newer[static_cast<size_t>(l.older[at])] : l.oldest) = l.newer[at];
  }
  void access(size_t index, int32_t line, bool written) {
    if (index == levels_.size()) return;
    Level& l = levels_[index];
    const auto at = static_cast<size_t>(line);
    if (l.newest == line) {
      if (written) l.state[at] = kDirty;
      return;
    }
    if (l.state[at] != kAbsent) {
      unlink(l, line);
    } else {
      if (l.held == l.capacity) {
        const int32_t last = l.oldest;
        unlink(l, last);
        const bool dirty = l.state[static_cast<size_t>(last)] == kDirty;
        l.state[static_cast<size_t>(last)] = kAbsent;
        --l.held;
        if (dirty) {
          crossed_[index + 1] += kLine;
          access(index + 1, last, true);
        }
      }
      ++l.held;
      l.state[at] = kClean;
      if (!written) {
        crossed_[index + 1] += kLine;
        access(index + 1, line, false);
      }
    }
    if (written) l.state[at] = kDirty;
    l.newer[at] = -1, l.older[at] = l.newest;
    if (l.newest >= 0) l.newer[static_cast<size_t>(l.newest)] = line;
    l.newest = line;
    if (l.oldest < 0) l.oldest = line;
  }

  int64_t lines_ = 0;
  std::vector<Level> levels_;
  std::vector<double> crossed_;
};

// Where operands lie. Maps are walked by their strides.
struct WalkedOperands {
  int64_t x = 0, y = 0, weights = 0, scratch = 0;
};

}  // namespace sparkle::testing
