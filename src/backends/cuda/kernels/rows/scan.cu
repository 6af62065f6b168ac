// Running sums of rows: threads of a row take neighbouring elements, add them up among themselves and carry the sum to the next
// ones; floats in double precision. Long rows of which there are few are cut into parts: one launch adds up each, a second one
// begins with the sums of the parts before. flags: 1 exclusive, 2 from the end.
#include "backends/cuda/kernels/rows/rows.cuh"

using namespace sparkle::cuda;

namespace {

constexpr int kExclusive = 1, kReverse = 2;

// Element `i` in the order of the sum.
SPARKLE_DEVICE RowPlaces in_order(const RowsRecord& record, const RowOfThread& row, uint32_t i) {
  return row.element(record, record.flags & kReverse ? record.elements - 1 - i : i);
}

// This part's elements.
struct Part {
  uint32_t first, end;
  SPARKLE_DEVICE explicit Part(const RowsRecord& record)
      : first(block_y() * record.part_length), end(first + record.part_length) {
    if (end > record.elements) end = record.elements;
  }
};

template <class T>
SPARKLE_DEVICE void scan_totals(const RowsRecord& record) {
  const RowOfThread row(record);
  const Part part(record);
  T sum = 0;
  for (uint32_t i = part.first + row.place; i < part.end; i += record.depth)
    sum += row_value<T>(record, kRowX, record.x, in_order(record, row, i));
  sum = over_row(record, row, sum, [](T a, T b) { return a + b; });
  if (row.valid(record) && row.place == 0) store_global(static_cast<T*>(record.work) + block_y() * record.rows + row.row, sum);
}

template <class T>
SPARKLE_DEVICE void scan_rows(const RowsRecord& record) {
  const RowOfThread row(record);
  const Part part(record);
  T carried = 0;
  if (row.valid(record))
    for (uint32_t i = 0; i < block_y(); ++i)
      carried += load_global(static_cast<const T*>(record.work) + i * record.rows + row.row);
  // As many rounds for all threads: they wait for each other.
  for (uint32_t base = part.first; base < part.end; base += record.depth) {
    const uint32_t i = base + row.place;
    const bool within = row.valid(record) && i < part.end;
    const RowPlaces at = in_order(record, row, within ? i : base);
    T sum = within ? row_value<T>(record, kRowX, record.x, at) : T{0}, before = 0, total;
    sync_block();  // what was read before has been
    put_shared(row.slot(record, row.place), sum);
    sync_block();
    for (uint32_t step = 1; step < record.depth; step *= 2) {
      if (row.place >= step) take_shared(row.slot(record, row.place - step), before);
      sync_block();
      if (row.place >= step) {
        sum = before + sum;
        put_shared(row.slot(record, row.place), sum);
      }
      sync_block();
    }
    before = 0;
    if (row.place > 0) take_shared(row.slot(record, row.place - 1), before);
    take_shared(row.slot(record, record.depth - 1), total);
    if (within)
      stored(static_cast<DType>(record.type[kRowY]), record.y, at.at[kRowY],
             carried + (record.flags & kExclusive ? before : sum));
    carried += total;
  }
}

}  // namespace

SPARKLE_KERNEL(sparkle_scan_totals_f64, RowsRecord, kRowsThreads, 8) { scan_totals<double>(record); }
SPARKLE_KERNEL(sparkle_scan_totals_u64, RowsRecord, kRowsThreads, 8) { scan_totals<uint64_t>(record); }
SPARKLE_KERNEL(sparkle_scan_rows_f64, RowsRecord, kRowsThreads, 8) { scan_rows<double>(record); }
SPARKLE_KERNEL(sparkle_scan_rows_u64, RowsRecord, kRowsThreads, 8) { scan_rows<uint64_t>(record); }
