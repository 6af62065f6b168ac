// The attention family: a workgroup takes 32 queries and 64 columns of the values over all keys, 32 at a time, with a running
// largest score and sum; scores never leave shared memory unless they are asked for, which is a dispatch of its own.
// build: attention
// build: attention_bytes -DBYTES
// build: attention_half -DHALF
// build: attention_bytes_half -DBYTES -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#ifdef BYTES
#extension GL_EXT_shader_8bit_storage : require
#endif
#include "buffers.glsl"
#include "attention.glsl"

layout(constant_id = 4) const bool kKeep = false;  // each query's largest score and sum go to the workspace

const int kQueries = 32, kKeys = 32, kColumns = 64, kSlice = 32;
// Slices of queries and keys lie where values do later: together they stay within the 16 KB that every device has.
const int kKeySlices = kQueries * (kSlice + 1);
shared float scratch[kKeySlices + kKeys * (kSlice + 1)];
shared float weights[kQueries * (kKeys + 1)];
shared float row_largest[kQueries], row_sum[kQueries], row_factor[kQueries];

// Scores of 32 queries and 32 keys into `weights`: two queries and four keys a thread.
void find_scores(int query0, int key0) {
  const int thread = int(gl_LocalInvocationID.x), row = thread / 8 * 2, column = thread % 8;
  float sums[2][4];
  [[unroll]] for (int i = 0; i < 2; ++i)
    [[unroll]] for (int j = 0; j < 4; ++j) sums[i][j] = 0.0;
  for (int at = 0; at < A.size; at += kSlice) {
    for (int i = thread; i < kQueries * kSlice; i += 128) {
      const int line = i / kSlice, c = i % kSlice, query = query0 + line, key = key0 + line;
      const bool within = at + c < A.size;
      scratch[line * (kSlice + 1) + c] =
          within && query < A.queries ? float(push.q.v[origin[0] + query * A.strides[0].x + (at + c) * A.strides[0].y]) : 0.0;
      scratch[kKeySlices + line * (kSlice + 1) + c] =
          within && key < A.keys ? float(push.k.v[origin[1] + key * A.strides[1].x + (at + c) * A.strides[1].y]) : 0.0;
    }
    barrier();
    for (int c = 0; c < kSlice; ++c) {
      float q[2], k[4];
      [[unroll]] for (int i = 0; i < 2; ++i) q[i] = scratch[(row + i) * (kSlice + 1) + c];
      [[unroll]] for (int j = 0; j < 4; ++j) k[j] = scratch[kKeySlices + (column + 8 * j) * (kSlice + 1) + c];
      [[unroll]] for (int i = 0; i < 2; ++i)
        [[unroll]] for (int j = 0; j < 4; ++j) sums[i][j] = fma(q[i], k[j], sums[i][j]);
    }
    barrier();
  }
  [[unroll]] for (int i = 0; i < 2; ++i)
    [[unroll]] for (int j = 0; j < 4; ++j) {
      const int query = query0 + row + i, key = key0 + column + 8 * j;
      weights[(row + i) * (kKeys + 1) + column + 8 * j] =
          query < A.queries && key < A.keys ? score_of(sums[i][j], query, key) : -infinity_of();
    }
  barrier();
}

void show(int batch, int query0) {
  const int key0 = int(gl_WorkGroupID.y) * kKeys;
  find_scores(query0, key0);
  for (int i = int(gl_LocalInvocationID.x); i < kQueries * kKeys; i += 128) {
    const int query = query0 + i / kKeys, key = key0 + i % kKeys;
    if (query >= A.queries || key >= A.keys) continue;
    float s = weights[i / kKeys * (kKeys + 1) + i % kKeys];
    if (kShown == kSoftmax) {
      const int at = 2 * (batch * A.queries + query);
      const float sum = push.work.v[at + 1];
      s = sum == 0.0 ? A.unseen : weight_of(s, push.work.v[at]) / sum;
    }
    push.scores.v[origin[6] + query * A.strides[5].x + key * A.strides[5].y] = ELEMENT(s);
  }
}

void main() {
  const int thread = int(gl_LocalInvocationID.x), batch = push.first_batch + int(gl_WorkGroupID.z);
  const int query0 = int(gl_WorkGroupID.x) * kQueries;
  seek(batch);
  if (kShown != 0) {
    show(batch, query0);
    return;
  }
  const int column0 = int(gl_WorkGroupID.y) * kColumns;
  if (thread < kQueries) row_largest[thread] = -infinity_of(), row_sum[thread] = 0.0;
  float sums[4][4];
  [[unroll]] for (int i = 0; i < 4; ++i)
    [[unroll]] for (int j = 0; j < 4; ++j) sums[i][j] = 0.0;
  const int line = thread / 4, quarter = thread % 4;    // of scores
  const int row = thread / 16 * 4, column = thread % 16;  // of sums
  // Later queries see later keys.
  const int begin = range_of(query0).x / kKeys * kKeys, end = range_of(min(query0 + kQueries, A.queries) - 1).y;
  for (int key0 = begin; key0 < end; key0 += kKeys) {
    find_scores(query0, key0);
    const float before = row_largest[line];
    float largest = before;
    for (int i = 0; i < kKeys; ++i) {
      const float s = weights[line * (kKeys + 1) + i];
      largest = s > largest ? s : largest;
    }
    barrier();
    [[unroll]] for (int i = 0; i < kKeys / 4; ++i) {
      const int at = line * (kKeys + 1) + quarter + 4 * i;
      weights[at] = weight_of(weights[at], largest);
    }
    for (int i = thread; i < kKeys * kColumns; i += 128) {
      const int key = key0 + i / kColumns, c = column0 + i % kColumns;
      scratch[i] = key < A.keys && c < A.columns ? float(push.v.v[origin[2] + key * A.strides[2].x + c * A.strides[2].y]) : 0.0;
    }
    barrier();
    if (quarter == 0) {
      float sum = 0.0;
      for (int i = 0; i < kKeys; ++i) sum += weights[line * (kKeys + 1) + i];
      const float factor = before == largest ? 1.0 : weight_of(before, largest);
      row_factor[line] = factor;
      row_sum[line] = row_sum[line] * factor + sum;
      row_largest[line] = largest;
    }
    barrier();
    [[unroll]] for (int i = 0; i < 4; ++i)
      [[unroll]] for (int j = 0; j < 4; ++j) sums[i][j] *= row_factor[row + i];
    for (int key = 0; key < kKeys; ++key) {
      float w[4], v[4];
      [[unroll]] for (int i = 0; i < 4; ++i) w[i] = weights[(row + i) * (kKeys + 1) + key];
      [[unroll]] for (int j = 0; j < 4; ++j) v[j] = scratch[key * kColumns + column + 16 * j];
      [[unroll]] for (int i = 0; i < 4; ++i)
        [[unroll]] for (int j = 0; j < 4; ++j) sums[i][j] = fma(w[i], v[j], sums[i][j]);
    }
    barrier();
  }
  barrier();
  [[unroll]] for (int i = 0; i < 4; ++i) {
    const int query = query0 + row + i;
    if (query >= A.queries) continue;
    const float sum = row_sum[row + i];
    [[unroll]] for (int j = 0; j < 4; ++j) {
      const int c = column0 + column + 16 * j;
      if (c < A.columns) push.y.v[origin[5] + query * A.strides[4].x + c * A.strides[4].y] = ELEMENT(sum == 0.0 ? A.unseen : sums[i][j] / sum);
    }
  }
  if (kKeep && thread < kQueries && query0 + thread < A.queries && column0 == 0) {
    const int at = 2 * (batch * A.queries + query0 + thread);
    push.work.v[at] = row_largest[thread];
    push.work.v[at + 1] = row_sum[thread];
  }
}
