// Sizes of a gemm stage and the filter taps that fall inside its input: shared by schedules, footprints and kernels.
#pragma once

#include <algorithm>
#include <vector>

#include "families/gemm/gemm.h"
#include "families/stage.h"
#include "families/windows/taps.h"

namespace sparkle {

// The three spatial dimensions D,H,W of a window stage.
std::array<std::vector<TapRange>, 3> tap_ranges(const Window& window, const FeatureMap& x, const FeatureMap& y);

struct GemmSizes {
  int64_t instances = 1;        // independent products: groups, or batch elements that have a right operand each
  int64_t m = 0;                // rows of one instance
  int64_t n = 0;                // columns of one instance
  int64_t k = 0;                // length of the sums, padding taps counted
  double k_steps = 0;           // sum over an instance's rows of the products really needed: m * k less the padding taps
  int64_t weight_matrices = 1;  // different right operands among the instances
};
GemmSizes gemm_sizes(const GemmParams& params, const std::vector<TensorDesc>& inputs, const TensorDesc& output);

// How the rows of one instance lie: tiles never mix rows that see different taps.
struct GemmRows {
  double tiles = 1;
  double steps = 0;        // of all tiles: what each takes of a column
  double group_steps = 0;  // the same of whole groups of rows, each row counted: what matrix units take of a column
  double paired = 0;       // share of the tiles that have a neighbour along one axis
  double input = 0;        // bytes of the left operand that are read at all
  double tile = 0;         // different bytes that a tile reads
  double window = 0;       // bytes of the input rows that a row of outputs reads
  double times = 1;        // rows of outputs that read an input row
  double lines = 1;        // rows of outputs
  double line_share = 1;   // lines touched per line's worth of bytes: groups of few channels use a part of each
};
// `mr`: rows of a register tile; `a_bytes`: of an element.
GemmRows gemm_rows(const GemmParams& p, const Stage& stage, const GemmSizes& sizes, int mr, double a_bytes);

// Elements of k that lie next to each other in a row: channels, of a filter's whole row where nothing parts them.
int64_t run_of_k(const GemmParams& params, const TensorDesc& x);

// Rows that dot products of 1 to 4 columns take at once, of a variant's six: sums, vectors of weights and one of a row are in
// registers, and two are left.
constexpr int dot_rows(int registers, int columns) { return std::min(6, (registers - 2 - columns) / columns); }

// Stride of `axis` counted from the end (0 is the last); 0 where the axis is missing or broadcast.
int64_t stride_from_end(const TensorDesc& desc, int axis);

// Batch axes of a dense product, innermost first: places 2 to 0 of rows where the right operand stays the same, places 3 to 0
// of instances else; `visit` gets the axis counted from the end, whether it is of rows, and its place. False: there are too
// many.
template <class Visit>
bool walk_batch(const TensorDesc& b, const TensorDesc& y, Visit&& visit) {
  int row = 2, instance = 3;
  for (int i = y.shape.size() - 3; i >= 0; --i) {
    if (y.shape[i] == 1) continue;
    const int from_end = y.shape.size() - 1 - i;
    const bool of_rows = stride_from_end(b, from_end) == 0 && row >= 0;
    if (!of_rows && instance < 0) return false;
    visit(from_end, of_rows, of_rows ? row-- : instance--);
  }
  return true;
}

}  // namespace sparkle
