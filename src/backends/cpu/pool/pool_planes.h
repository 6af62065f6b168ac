// One run over planes as plain data: what make_pool_planes prepares and the loops of pool_planes.cc read.
#pragma once

#include <span>
#include <string_view>

#include "families/pool/pool.h"

namespace sparkle::cpu {

// Floats that a strip has behind its last element, so that whole vectors are read: those of the widest SVE.
inline constexpr int64_t kWidestVector = 64;

// What an output along the planes or the rows joins, found once: divisions for each row would take longer than a short one.
struct PlaneTaps {
  int64_t first = 0, count = 0;  // elements from the start of x to the first tap inside
  float share = 1;               // 1 / the taps that an average counts
};

struct PlanePool {
  const float* x = nullptr;
  float* y = nullptr;
  FeatureMap mx, my;
  PoolKind kind = PoolKind::max;
  bool squares = false;  // lp: p = 2, else p = 1
  Window window;
  std::span<const PlaneTaps> planes, rows;  // per output
  std::span<const float>
      shares;  // average: 1 / the elements that count along the columns, per output column, and a vector more
  int64_t columns = 0, strips = 0;  // outputs of a row and rows that are made at once
  int64_t strip = 0;                // floats of scratch for each of these rows
};

// Output rows [begin,end) of the n * c * d * h rows of y, with a scratch of strips * strip floats.
using PlaneLoop = void (*)(const PlanePool& pool, int64_t begin, int64_t end, float* scratch);
PlaneLoop pool_plane_rows(std::string_view unit);

}  // namespace sparkle::cpu
