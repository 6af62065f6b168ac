// A direct stage cut as its schedule says: the kernel runs these loops, the tests' counted walk goes through them, and the
// footprint sums up what they move.
#pragma once

#include <vector>

#include "families/direct/direct.h"
#include "families/direct/direct_layout.h"
#include "families/stage.h"
#include "families/windows/window.h"

namespace sparkle {

// Images, rows of a task, bundles of groups, strips of columns, from the outermost loop inwards; in each the rows of outputs,
// and for each row the blocks of maps.
struct DirectCut {
  FeatureMap x, y;
  int64_t lanes = 1;
  bool pixels = false, slides = false;  // pixels fill the lanes; maps do and each column is read once for all of its taps
  DirectReading reading = DirectReading::in_place;
  bool planes = false;                      // the scratch holds a plane per channel
  int64_t depth = 1, maps = 1, bundle = 1;  // of a group: channels, maps; groups laid together
  int64_t columns = 1, rows = 1;            // outputs of a strip; rows of them of a task
  int64_t ring = 1;                         // rows of inputs that the filter reaches over
  DirectRow row;                            // one of them in the scratch
  bool joins = false;                       // rows of pixels read in place follow one another in memory, as those of outputs do
  int64_t channel = 1, column = 1;          // floats of input as tiles read it: between channels, between columns
  bool in_place() const { return reading == DirectReading::in_place; }
  int64_t unit() const { return pixels ? lanes : 1; }  // outputs that a tile grows by
};
DirectCut direct_cut(const Stage& stage, const DirectSchedule& schedule, int64_t lanes);

// A row of outputs cut into tiles of nearly equal length, the longer ones first.
struct DirectRowCut {
  int64_t length = 0, longer = 0, tiles = 0;  // in units: DirectCut::unit()
};
// `most`: the longest tile that there may be.
DirectRowCut direct_row_cut(const DirectCut& cut, int64_t width, int64_t most);

// Maps that pass over a row of outputs together.
struct DirectBlock {
  int64_t group = 0;
  int64_t first = 0;       // map
  int64_t maps = 0;        // that exist
  int64_t vectors = 0;     // of maps; pixels in the lanes: maps
  int64_t weights = 0;     // floats before its packed weights
  int64_t row_floats = 0;  // of packed weights of a row of the filter
  int64_t most = 0;        // longest tile along the row
  DirectRowCut tiles[2];   // of a strip as wide as most, of the last one
};
// All of them, group by group, and the floats of all packed weights. `many`: whether the unit has 32 registers.
struct DirectBlocks {
  std::vector<DirectBlock> blocks;
  int64_t weight_floats = 0;
};
DirectBlocks direct_blocks(const Stage& stage, const DirectSchedule& schedule, const DirectCut& cut, bool many);

}  // namespace sparkle
