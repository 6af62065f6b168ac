// TileSchedule: how a GPU cuts a sum of products. A workgroup makes an m x n tile of the output in steps of k, each thread (or,
// on matrix units, each subgroup) a thread_m x thread_n part of it. Zero means that the variant has no such part.
#pragma once

#include <cstdint>
#include <string>

namespace sparkle {

struct TileSchedule {
  std::string variant = "naive";  // a row of the family's variants.inc
  std::string unit;               // the math unit: "fma-f32", "coopmat-f16", ...
  int m = 0, n = 0, k = 0;        // of a workgroup, in elements
  int thread_m = 1, thread_n = 1;
  int subgroup = 0;  // threads that run in step; 0: the driver's choice
  int depth = 1;     // tiles of the operands in flight
  int split = 1;     // workgroups that share a sum
  int pad = 0;       // words between the columns of a tile in shared memory, against bank conflicts
  int unroll = 1;    // steps of k written out

  template <class V>
  void visit(V& v) {
    v("variant", variant), v("unit", unit), v("m", m), v("n", n), v("k", k), v("thread_m", thread_m);
    v("thread_n", thread_n), v("subgroup", subgroup), v("depth", depth), v("split", split), v("pad", pad), v("unroll", unroll);
  }
  friend bool operator==(const TileSchedule&, const TileSchedule&) = default;
};

}  // namespace sparkle
