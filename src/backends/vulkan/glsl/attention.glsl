// What the kernels of the attention family share: operands, places, and scores with what hides them.
#include "pointwise_math.glsl"

#ifdef BYTES
layout(buffer_reference, scalar, buffer_reference_align = 1) readonly buffer Mask { uint8_t v[]; };
#else
#define Mask Elements
#endif
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Lengths { ivec2 v[]; };

// attention.cc has the same record.
struct AttentionRecord {
  int queries, keys, size, columns, mask_keys;  // mask_keys: -1 where there is no mask
  int lengths;                                  // 1: given
  int left, right, offset, offset_from_length;
  float scale, cap, unseen;  // unseen: the result of a query that sees no key
  int batch_sizes[6];       // innermost first
  int batch_strides[6 * 7];  // for each batch axis of q, k, v, mask, lengths, y, scores
  ivec2 strides[6];          // rows and columns of q, k, v, mask, y, scores
};
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer AttentionRecords { AttentionRecord v; };
layout(push_constant, scalar) uniform Push {
  Elements q, k, v;
  Mask mask;
  Lengths lengths;
  Elements y, scores;
  Floats work;
  AttentionRecords record;
  int first_batch;
  int parts, part_keys;  // of attention_split alone
} push;
#define A push.record.v

// What is shown of scores, in the order of families/attention/attention.h; 0: they are not.
layout(constant_id = 3) const uint kShown = 0;
const uint kRaw = 1, kCapped = 2, kMasked = 3, kSoftmax = 4;

// Offsets of the batch in q, k, v, mask, lengths, y, scores.
int origin[7];
int batch_length;

void seek(int batch) {
  [[unroll]] for (int i = 0; i < 7; ++i) origin[i] = 0;
  for (int axis = 0; axis < 6; ++axis) {
    const int at = batch % A.batch_sizes[axis];
    batch /= A.batch_sizes[axis];
    [[unroll]] for (int i = 0; i < 7; ++i) origin[i] += at * A.batch_strides[axis * 7 + i];
  }
  batch_length = A.keys;
  if (A.lengths != 0) {
    const ivec2 given = push.lengths.v[origin[4]];
    batch_length = given.y < 0 ? 0 : given.y > 0 || given.x < 0 ? A.keys : min(given.x, A.keys);
  }
}
// The keys [x, y) that a query may see by position.
ivec2 range_of(int query) {
  const int place = query + (A.offset_from_length != 0 ? batch_length - A.queries : A.offset);
  ivec2 range = ivec2(0, batch_length);
  if (A.left >= 0) range.x = max(0, place - A.left);
  if (A.right >= 0) range.y = min(range.y, place + A.right + 1);
  range.y = max(range.y, 0);
  range.x = min(range.x, range.y);
  return range;
}
// A score from its sum of products; hidden ones are the lowest infinity.
float score_of(float sum, int query, int key) {
  float s = sum * A.scale;
  if (kShown == kRaw) return s;
  if (A.cap > 0.0) s = A.cap * tanh_of(s / A.cap);
  if (kShown == kCapped) return s;
  const ivec2 seen = range_of(query);
  if (key < seen.x || key >= seen.y) return -infinity_of();
  if (A.mask_keys >= 0) {
    if (key >= A.mask_keys) return -infinity_of();
    const int at = origin[3] + query * A.strides[3].x + key * A.strides[3].y;
#ifdef BYTES
    if (uint(push.mask.v[at]) == 0u) return -infinity_of();
#else
    s += float(push.mask.v[at]);
#endif
  }
  return s;
}

float weight_of(float score, float largest) { return score == -infinity_of() ? 0.0 : exp_of(score - largest); }
