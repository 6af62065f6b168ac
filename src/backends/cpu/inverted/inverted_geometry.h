// An inverted block cut for the CPU: the ring of wide rows, the rows that pass together, packed weights.
#pragma once

#include "base/result.h"
#include "families/inverted/inverted.h"
#include "families/stage.h"

namespace sparkle::cpu {

// Wide rows that one pass reaches over.
inline constexpr int64_t kMostWideRows = (kMostInvertedRows - 1) * 2 + 5;

struct InvertedGeometry {
  FeatureMap x, y;
  int64_t filter = 3, stride = 1, pad_h = 0, pad_w = 0;  // of the depthwise part
  int64_t wide = 0, vectors = 0;                         // channels of the wide plane, their vectors
  int64_t padded_wide = 0, padded_k = 0;                 // rounded up to vectors
  int64_t rows = 1, tasks = 1;                           // of the output: in one pass; parts of an image
  // The ring: [slot][vector][column][lane]. Columns in the padding are there, as zeros.
  int64_t slots = 0;
  int64_t plane = 0, slot_stride = 0;  // floats of a vector's columns; of a slot
  int64_t inside_at = 0, inside = 0;   // floats before the first column inside of the image; columns inside that are used
  // Depthwise rows: floats between their pixels. In pairs: two rows are one whose channels are twice as many.
  bool pairs = false;
  int64_t deep_stride = 0;
  int64_t deep_rows(int64_t count) const { return pairs ? (count + 1) / 2 : count; }
  int64_t ring_floats() const { return slots * slot_stride; }
  int64_t scratch_floats() const { return ring_floats() + deep_rows(rows) * y.w * deep_stride; }
};

// Errors: layout_not_served, filter_not_served.
Result<InvertedGeometry> inverted_geometry(const Stage& stage, const InvertedSchedule& schedule, int64_t lanes);

// [panel of `width` filters][channel][lanes of the panel], zeros beyond the filters; panels end with whole vectors.
void pack_panels(const FeatureMap& w, const float* from, int64_t filters, int64_t channels, int64_t width, int64_t lanes,
                 float* to);
// [channel in pair order][full vectors of filters, the rest twice over], zeros beyond filters and channels.
void pack_pairs(const FeatureMap& w, const float* from, int64_t filters, int64_t channels, int64_t lanes, float* to);
// [vector][tap][lane], zeros beyond the channels.
void pack_taps(const FeatureMap& w, const float* from, int64_t channels, int64_t lanes, float* to);

}  // namespace sparkle::cpu
