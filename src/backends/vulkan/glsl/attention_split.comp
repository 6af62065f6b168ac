// Attention of few queries over many keys: a workgroup takes one query and part of the keys, 64 at a time, and leaves its largest
// score, sum and sums of values in the workspace, where a second dispatch joins those of all parts.
// build: attention_split
// build: attention_split_bytes -DBYTES
// build: attention_split_half -DHALF
// build: attention_split_bytes_half -DBYTES -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#ifdef BYTES
#extension GL_EXT_shader_8bit_storage : require
#endif
#include "buffers.glsl"
#include "attention.glsl"

layout(constant_id = 4) const bool kJoins = false;  // the second dispatch
layout(constant_id = 5) const int kColumns = 64;    // of a workgroup: 32, 64 or 128

const int kThreads = 128, kKeys = 64, kTeam = 8, kTeams = kThreads / kTeam, kSlice = 128;
const int kShares = kThreads / kColumns;  // threads that share a column's keys, or its parts
const int kMostParts = 128;
shared float query_slice[kSlice];
shared float products[kKeys * (kTeam + 1)];
shared float weights[kMostParts];  // of a block's keys, or of the parts
shared float scratch[kThreads];

// Sums of values, the largest score, and the sum of weights of a query's part.
int work_of(int line, int part) { return (line * push.parts + part) * (A.columns + 2); }

// Scores of the query and 64 keys into `weights`: eight threads a key, side by side in memory.
void find_scores(int query, int key0, int end) {
  const int thread = int(gl_LocalInvocationID.x), team = thread / kTeam, member = thread % kTeam;
  float sums[kKeys / kTeams];
  [[unroll]] for (int j = 0; j < kKeys / kTeams; ++j) sums[j] = 0.0;
  for (int at = 0; at < A.size; at += kSlice) {
    const int length = min(kSlice, A.size - at);
    if (thread < length) query_slice[thread] = float(push.q.v[origin[0] + query * A.strides[0].x + (at + thread) * A.strides[0].y]);
    barrier();
    [[unroll]] for (int j = 0; j < kKeys / kTeams; ++j) {
      const int key = key0 + team + kTeams * j;
      if (key >= end) continue;
      const int from = origin[1] + key * A.strides[1].x + at * A.strides[1].y;
      for (int c = member; c < length; c += kTeam) sums[j] = fma(query_slice[c], float(push.k.v[from + c * A.strides[1].y]), sums[j]);
    }
    barrier();
  }
  [[unroll]] for (int j = 0; j < kKeys / kTeams; ++j) products[(team + kTeams * j) * (kTeam + 1) + member] = sums[j];
  barrier();
  if (thread < kKeys) {
    float sum = 0.0;
    [[unroll]] for (int i = 0; i < kTeam; ++i) sum += products[thread * (kTeam + 1) + i];
    weights[thread] = key0 + thread < end ? score_of(sum, query, key0 + thread) : -infinity_of();
  }
  barrier();
}

// The sum of what the threads of a column have, for the first of them.
float of_column(float mine) {
  const int thread = int(gl_LocalInvocationID.x);
  scratch[thread] = mine;
  barrier();
  float sum = mine;
  if (thread < kColumns)
    for (int i = 1; i < kShares; ++i) sum += scratch[thread + i * kColumns];
  return sum;
}

void find_part(int line, int query, int part, int column) {
  const int thread = int(gl_LocalInvocationID.x), share = thread / kColumns;
  const ivec2 range = range_of(query);
  const int first = part * push.part_keys, end = min(range.y, first + push.part_keys);
  float largest = -infinity_of(), total = 0.0, sum = 0.0;
  for (int key0 = max(first, range.x / kKeys * kKeys); key0 < end; key0 += kKeys) {
    find_scores(query, key0, end);
    const float before = largest;
    for (int i = 0; i < kKeys; ++i) largest = weights[i] > largest ? weights[i] : largest;
    barrier();
    if (thread < kKeys) weights[thread] = weight_of(weights[thread], largest);
    barrier();
    const float factor = before == largest ? 1.0 : weight_of(before, largest);
    total *= factor, sum *= factor;
    for (int i = 0; i < kKeys; ++i) total += weights[i];
    if (column < A.columns)
      for (int i = share; i < kKeys && key0 + i < end; i += kShares)
        sum = fma(weights[i], float(push.v.v[origin[2] + (key0 + i) * A.strides[2].x + column * A.strides[2].y]), sum);
    barrier();
  }
  sum = of_column(sum);
  const int to = work_of(line, part);
  if (thread < kColumns && column < A.columns) push.work.v[to + column] = sum;
  if (thread == 0 && gl_WorkGroupID.y == 0) {
    push.work.v[to + A.columns] = largest;
    push.work.v[to + A.columns + 1] = total;
  }
}

void join_parts(int line, int query, int column) {
  const int thread = int(gl_LocalInvocationID.x), share = thread / kColumns;
  const bool there = thread < push.parts;
  const int from = work_of(line, thread) + A.columns;
  weights[thread] = there ? push.work.v[from] : -infinity_of();
  barrier();
  float largest = -infinity_of();
  for (int i = 0; i < push.parts; ++i) largest = weights[i] > largest ? weights[i] : largest;
  barrier();
  const float weight = weight_of(weights[thread], largest);
  weights[thread] = weight;
  scratch[thread] = there ? weight * push.work.v[from + 1] : 0.0;
  barrier();
  float total = 0.0, sum = 0.0;
  for (int i = 0; i < push.parts; ++i) total += scratch[i];
  barrier();
  if (column < A.columns)
    for (int i = share; i < push.parts; i += kShares) sum = fma(weights[i], push.work.v[work_of(line, i) + column], sum);
  sum = of_column(sum);
  if (thread < kColumns && column < A.columns)
    push.y.v[origin[5] + query * A.strides[4].x + column * A.strides[4].y] = ELEMENT(total == 0.0 ? A.unseen : sum / total);
}

// Workgroups: parts (one where they are joined) of each query along x, columns along y, batches along z.
void main() {
  const int parts = kJoins ? 1 : push.parts, query = int(gl_WorkGroupID.x) / parts, part = int(gl_WorkGroupID.x) % parts;
  const int batch = push.first_batch + int(gl_WorkGroupID.z), line = batch * A.queries + query;
  const int column = int(gl_WorkGroupID.y) * kColumns + int(gl_LocalInvocationID.x) % kColumns;
  seek(batch);
  if (kJoins) join_parts(line, query, column);
  else find_part(line, query, part, column);
}
