// exp(x - largest) / sum over a row, or its logarithm (flags: 1).
#include "backends/cuda/kernels/rows/rows.cuh"

using namespace sparkle::cuda;

SPARKLE_KERNEL(sparkle_softmax_rows, RowsRecord, kRowsThreads, 8) {
  const RowOfThread row(record);
  const auto value = [&](const RowPlaces& p) { return row_value<float>(record, kRowX, record.x, p); };
  float largest = -INFINITY;
  for_each_element(record, row, [&](const RowPlaces& p) { largest = std::fmax(largest, value(p)); });
  largest = over_row(record, row, largest, [](float a, float b) { return std::fmax(a, b); });
  float sum = 0;
  for_each_element(record, row, [&](const RowPlaces& p) { sum += std::exp(value(p) - largest); });
  sum = over_row(record, row, sum, [](float a, float b) { return a + b; });
  if (!row.valid(record)) return;
  const float scale = 1 / sum, shift = std::log(sum);
  for_each_element(record, row, [&](const RowPlaces& p) {
    const float x = value(p) - largest;
    stored(static_cast<DType>(record.type[kRowY]), record.y, p.at[kRowY],
           record.flags & 1 ? x - shift : std::exp(x) * scale);
  });
}
