// Pairs of elements of a row turned by the angle whose cosine and sine are given; what is behind the pairs stays. x: row;
// scale: cosines; bias: sines. own[0]: pairs; flags: 1 where neighbours are pairs, else elements half a turned row apart.
#include "backends/cuda/kernels/rows/rows.cuh"

using namespace sparkle::cuda;

SPARKLE_KERNEL(sparkle_rotary_rows, RowsRecord, kRowsThreads, 8) {
  const RowOfThread row(record);
  if (!row.valid(record)) return;
  const uint32_t pairs = record.own[0];
  const auto type = static_cast<DType>(record.type[kRowY]);
  for (uint32_t i = row.place; i < record.elements - pairs; i += record.depth) {
    if (i >= pairs) {
      const RowPlaces at = row.element(record, i + pairs);
      stored(type, record.y, at.at[kRowY], row_value<float>(record, kRowX, record.x, at));
      continue;
    }
    const bool neighbours = record.flags & 1;
    const RowPlaces first = row.element(record, neighbours ? 2 * i : i), angle = row.element(record, i);
    const RowPlaces second = row.element(record, neighbours ? 2 * i + 1 : i + pairs);
    const float a = row_value<float>(record, kRowX, record.x, first), b = row_value<float>(record, kRowX, record.x, second);
    const float c = row_value<float>(record, kRowScale, record.scale, angle);
    const float s = row_value<float>(record, kRowBias, record.bias, angle);
    stored(type, record.y, first.at[kRowY], c * a - s * b);
    stored(type, record.y, second.at[kRowY], s * a + c * b);
  }
}
