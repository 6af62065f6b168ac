// What the kernels that rank the elements of rows are launched with, beside RowsRecord.
#pragma once

#include <cstdint>

namespace sparkle::cuda {

// RowsRecord::kind, of numbers.
inline constexpr int kRankUnsigned = 0, kRankSigned = 1, kRankFloat = 2;
// RowsRecord::flags. Values: beside the indices.
inline constexpr int kRankLargest = 1, kRankLastOfEquals = 2, kRankNanFirst = 4, kRankValues = 8;

// RowsRecord::own of sorting: entries of a row that come out; elements of a row that an (outgoing) run is made of, its runs,
// and entries of one; where the incoming and the outgoing runs begin, in entries, and how many both lists of runs have
// together.
inline constexpr int kSortK = 0, kSortWidth = 1, kSortRuns = 2, kSortMost = 3, kSortFrom = 4, kSortTo = 5, kSortAll = 6;

inline constexpr int kSortEntries = 1024;  // that a block sorts

}  // namespace sparkle::cuda
