// What the kernels that move data share: axes of a move, walks over outer axes, rows of bytes, how work is cut into tasks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/system/executor.h"
#include "device/device.h"
#include "families/stage.h"

namespace sparkle::cpu {

// One axis of a move; strides in bytes.
struct MoveAxis {
  int64_t size = 1, x = 0, y = 0;
};

// Axes of a move between two layouts of one shape, outermost first in y's memory; axes of size 1 are left out.
std::vector<MoveAxis> move_axes(const Dims& shape, const Layout& x, const Layout& y, int64_t element);
// Merges neighbours that are one axis in both x and y.
void merge_axes(std::vector<MoveAxis>& axes);
// Takes the innermost axis away while it is contiguous in both; the bytes of the run that it and the element make.
int64_t take_run(std::vector<MoveAxis>& axes, int64_t element);

// Walks over indices [begin, ...) of some axes, last axis fastest, keeping the offsets into x and y.
class Walk {
 public:
  Walk(const std::vector<MoveAxis>& axes, int64_t begin) : axes_(axes) {
    for (size_t i = axes.size(); i-- > 0;) {
      index_[i] = begin % axes[i].size;
      begin /= axes[i].size;
      x += index_[i] * axes[i].x;
      y += index_[i] * axes[i].y;
    }
  }
  void next() {
    for (size_t i = axes_.size(); i-- > 0;) {
      x += axes_[i].x;
      y += axes_[i].y;
      if (++index_[i] < axes_[i].size) return;
      x -= axes_[i].x * axes_[i].size;
      y -= axes_[i].y * axes_[i].size;
      index_[i] = 0;
    }
  }
  int64_t index(size_t axis) const { return index_[axis]; }
  int64_t x = 0, y = 0;

 private:
  const std::vector<MoveAxis>& axes_;
  std::array<int64_t, kMaxRank + 1> index_{};
};
int64_t count_of(const std::vector<MoveAxis>& axes);

// True where so many bytes pass through a step that nothing of them survives in the caches: stores then bypass them, which
// saves reading each line before it is overwritten.
bool beyond_caches(const Device& device, int64_t bytes);

// Tasks for `items` independent pieces of work that take `bytes` in all.
int tasks_for(const LoopSchedule& schedule, const Executor& executor, int64_t items, int64_t bytes, int64_t element);

// Rows of `bytes` bytes from x to y; `n` of them, `px` and `py` bytes apart.
struct RowsArguments {
  const std::byte* x;
  std::byte* y;
  int64_t n, px, py, bytes;
};
// Lines of y that show one stretch of elements of a line of x, and some more before and behind it. Line i comes from x +
// from[i], or is all constant where that is kNowhere.
inline constexpr int64_t kNowhere = INT64_MIN;
struct FramedArguments {
  const std::byte* x;
  const int64_t* from;
  std::byte* y;
  int64_t n, py, bytes;           // bytes of an element: 1, 2, 4 or 8
  const int64_t* places;          // of the elements of x's line that a line of y shows; below 0: the constant
  int64_t count, before, behind;  // elements of y's line, of these those before the stretch and where what is behind it begins
  uint64_t constant;              // repeated to 8 bytes
};
// Functions over rows compiled for one unit. The stream_ forms bypass the caches where y's alignment allows it; finish()
// is the fence after them.
struct RowMoves {
  void (*copy)(const RowsArguments&);
  void (*stream)(const RowsArguments&);
  // `bytes` bytes of a pattern that repeats every 8 bytes.
  void (*fill)(std::byte* y, uint64_t pattern, int64_t bytes);
  void (*stream_fill)(std::byte* y, uint64_t pattern, int64_t bytes);
  void (*finish)();
  // Row i of `bytes` bytes comes from x + from[i].
  void (*pick)(const std::byte* x, const int64_t* from, std::byte* y, int64_t n, int64_t py, int64_t bytes);
  void (*framed)(const FramedArguments&);
  // Every second of 2 * n - 1 elements of 1, 2 or 4 bytes, laid side by side; px and py are not read.
  void (*every_second)(const RowsArguments&);
};
// nullptr: no such unit.
const RowMoves* row_moves(std::string_view unit);
// An element of 1, 2, 4 or 8 bytes repeated to 8 bytes.
uint64_t pattern_of(const std::byte* element, int64_t bytes);

}  // namespace sparkle::cpu
