// Attention, a query a block: all its scores in shared memory, their softmax, and the values weighted by them. Sums in fp32.
#include "backends/cuda/kernels/elements/elements.cuh"
#include "backends/cuda/kernels/gemm_index.cuh"
#include "backends/cuda/kernels/attention/attention_record.h"

using namespace sparkle::cuda;

namespace {

enum Shown : uint8_t { kNone, kRaw, kCapped, kMasked, kSoftmax };

// What `join` makes of a number of each thread; words [0, threads) of `words` are for it.
template <class Join>
SPARKLE_DEVICE float over_block(SharedAddress words, float value, Join&& join) {
  const uint32_t t = thread_id();
  sync_block();
  store_shared_4(words + 4 * t, bits_of(value));
  sync_block();
  for (uint32_t step = kAttentionThreads / 2; step > 0; step /= 2) {
    if (t < step) {
      value = join(value, float_of(load_shared_4(words + 4 * (t + step))));
      store_shared_4(words + 4 * t, bits_of(value));
    }
    sync_block();
  }
  return float_of(load_shared_4(words));
}

struct Places {
  int64_t v[kAttentionOperands];
};
SPARKLE_DEVICE float element(const AttentionRecord& r, const Places& p, int operand, int32_t row, int32_t column) {
  return loaded<float>(static_cast<DType>(r.type[operand]), r.at[operand],
                       p.v[operand] + int64_t{row} * r.row_strides[operand] + int64_t{column} * r.column_strides[operand]);
}

}  // namespace

SPARKLE_KERNEL(sparkle_attention_queries, AttentionRecord, kAttentionThreads, 4) {
  const uint32_t t = thread_id();
  const SharedAddress words = shared_base(), query = words + 4 * kAttentionThreads,
                      scores = query + 4 * static_cast<uint32_t>(record.depth);
  uint32_t batch = block_x();
  const auto row = static_cast<int32_t>(fast_divmod(batch, record.queries));
  Places at = {};
  for (int i = record.axes - 1; i >= 0; --i) {
    const auto index = static_cast<int32_t>(fast_divmod(batch, record.size[i]));
    SPARKLE_UNROLL
    for (int o = 0; o < kAttentionOperands; ++o) at.v[o] += int64_t{index} * record.batch_strides[i][o];
  }
  const auto show = [&](uint8_t what, int32_t key, float score) {
    if (record.scores == what)
      stored(static_cast<DType>(record.type[kScores]), const_cast<void*>(record.at[kScores]),
             at.v[kScores] + int64_t{row} * record.row_strides[kScores] + int64_t{key} * record.column_strides[kScores], score);
  };
  // Keys that the query may see by position.
  const int32_t keys = record.keys, queries = static_cast<int32_t>(record.queries.size);
  int64_t length = keys;
  if (record.at[kLengths] != nullptr)
    length = static_cast<int64_t>(load_global(static_cast<const uint64_t*>(record.at[kLengths]) + at.v[kLengths]));
  const auto seen_length = static_cast<int32_t>(length < 0 ? 0 : length > keys ? keys : length);
  const int32_t place = row + (record.offset_from_length ? seen_length - queries : record.offset);
  int32_t begin = 0, end = seen_length;
  if (record.left >= 0 && place - record.left > 0) begin = place - record.left;
  if (record.right >= 0 && place + record.right + 1 < end) end = place + record.right + 1;
  if (end < 0) end = 0;
  if (begin > end) begin = end;

  for (int32_t i = static_cast<int32_t>(t); i < record.depth; i += kAttentionThreads)
    store_shared_4(query + 4 * static_cast<uint32_t>(i), bits_of(element(record, at, kQueries, row, i)));
  sync_block();
  float largest = -INFINITY;
  bool nan = false;
  for (int32_t key = static_cast<int32_t>(t); key < keys; key += kAttentionThreads) {
    float score = 0;
    for (int32_t i = 0; i < record.depth; ++i)
      score += float_of(load_shared_4(query + 4 * static_cast<uint32_t>(i))) * element(record, at, kKeys, key, i);
    score *= record.scale;
    show(kRaw, key, score);
    if (record.softcap > 0) score = record.softcap * std::tanh(score / record.softcap);
    show(kCapped, key, score);
    if (key < begin || key >= end || (record.at[kMask] != nullptr && key >= record.mask_keys)) {
      score = -INFINITY;
    } else if (record.at[kMask] != nullptr) {
      const float mask = element(record, at, kMask, row, key);
      if (static_cast<DType>(record.type[kMask]) != DType::boolean) score += mask;
      else if (mask == 0) score = -INFINITY;
    }
    show(kMasked, key, score);
    nan = nan || score != score;
    largest = score > largest ? score : largest;
    store_shared_4(scores + 4 * static_cast<uint32_t>(key), bits_of(score));
  }
  if (nan) largest = NAN;
  largest = over_block(words, largest, [](float a, float b) { return a != a || a > b ? a : b; });
  float sum = 0;
  for (int32_t key = static_cast<int32_t>(t); key < keys; key += kAttentionThreads) {
    const SharedAddress word = scores + 4 * static_cast<uint32_t>(key);
    const float weight = largest == -INFINITY ? 0 : std::exp(float_of(load_shared_4(word)) - largest);
    store_shared_4(word, bits_of(weight));
    sum += weight;
  }
  sum = over_block(words, sum, [](float a, float b) { return a + b; });
  const auto weight_of = [&](int32_t key) {
    const float weight = float_of(load_shared_4(scores + 4 * static_cast<uint32_t>(key)));
    return sum == 0 ? (record.unseen_is_nan ? NAN : 0) : weight / sum;
  };
  for (int32_t key = static_cast<int32_t>(t); key < keys; key += kAttentionThreads) show(kSoftmax, key, weight_of(key));
  for (int32_t column = static_cast<int32_t>(t); column < record.columns; column += kAttentionThreads) {
    float total = 0;
    for (int32_t key = 0; key < keys; ++key) total += weight_of(key) * element(record, at, kValues, key, column);
    stored(static_cast<DType>(record.type[kResult]), const_cast<void*>(record.at[kResult]),
           at.v[kResult] + int64_t{row} * record.row_strides[kResult] + int64_t{column} * record.column_strides[kResult],
           total);
  }
}
