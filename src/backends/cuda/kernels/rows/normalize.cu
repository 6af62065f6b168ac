// (x - mean) / divisor over a row, then scale and bias. kind: the number of NormalizeDivisor; flags: 1 a mean is taken off, 2 scale,
// 4 bias.
#include "backends/cuda/kernels/rows/rows.cuh"

using namespace sparkle::cuda;

namespace {

SPARKLE_DEVICE float factor_of(uint8_t divisor, float total, float count, float epsilon) {
  switch (divisor) {
    case 0: return 1 / std::sqrt(total / count + epsilon);
    case 1: return 1 / (std::sqrt(total / count) + epsilon);
    case 2: return total == 0 ? 0 : 1 / total;
    default: return total == 0 ? 0 : 1 / std::sqrt(total);
  }
}

}  // namespace

SPARKLE_KERNEL(sparkle_normalize_rows, RowsRecord, kRowsThreads, 8) {
  const RowOfThread row(record);
  const auto value = [&](const RowPlaces& p) { return row_value<float>(record, kRowX, record.x, p); };
  const auto add = [](float a, float b) { return a + b; };
  const auto count = static_cast<float>(record.elements);
  float mean = 0;
  if (record.flags & 1) {
    for_each_element(record, row, [&](const RowPlaces& p) { mean += value(p); });
    mean = over_row(record, row, mean, add) / count;
  }
  float sum = 0;
  for_each_element(record, row, [&](const RowPlaces& p) {
    const float v = value(p) - mean;
    sum += record.kind == 2 ? std::fabs(v) : v * v;
  });
  sum = over_row(record, row, sum, add);
  if (!row.valid(record)) return;
  const float factor = factor_of(record.kind, sum, count, record.epsilon);
  for_each_element(record, row, [&](const RowPlaces& p) {
    float y = (value(p) - mean) * factor;
    if (record.flags & 2) y *= row_value<float>(record, kRowScale, record.scale, p);
    if (record.flags & 4) y += row_value<float>(record, kRowBias, record.bias, p);
    stored(static_cast<DType>(record.type[kRowY]), record.y, p.at[kRowY], y);
  });
}
