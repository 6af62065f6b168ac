// Non-maximum suppression: the boxes that a class of an image keeps, best first; a workgroup each. Every round strikes out what
// overlaps the box that was taken last and finds the best of what is left.
// build: non_max_pick
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "non_max.glsl"
#include "quotient.glsl"

layout(constant_id = 3) const bool kCenters = false;  // x, y of the centre, width, height; else two corners y, x, y, x
layout(constant_id = 4) const bool kThreshold = false;

shared float scores[kThreads];
shared uint boxes_at[kThreads];

// As families/non_max/non_max.cc has them, bit for bit: NaN is passed on as its comparisons do.
float least(float a, float b) { return b < a ? b : a; }
float largest(float a, float b) { return a < b ? b : a; }
// Top, left, bottom, right.
vec4 box_at(uint image, uint i) {
  const int at = int(image) * R.box[0] + int(i) * R.box[1];
  precise vec4 v = vec4(push.boxes.v[at], push.boxes.v[at + R.box[2]], push.boxes.v[at + 2 * R.box[2]],
                        push.boxes.v[at + 3 * R.box[2]]);
  if (!kCenters) return vec4(least(v.x, v.z), least(v.y, v.w), largest(v.x, v.z), largest(v.y, v.w));
  precise vec2 half_size = vec2(v.w, v.z) * 0.5;
  precise vec4 box = vec4(v.yx - half_size, v.yx + half_size);
  return box;
}
bool overlaps(vec4 a, vec4 b) {
  precise float height = least(a.z, b.z) - largest(a.x, b.x), width = least(a.w, b.w) - largest(a.y, b.y);
  if (!(height > 0.0) || !(width > 0.0)) return false;
  precise float common_area = height * width;
  precise float area_a = (a.z - a.x) * (a.w - a.y), area_b = (b.z - b.x) * (b.w - b.y);
  precise float joined = area_a + area_b - common_area;
  if (!(joined > 0.0)) return false;
  // Devices may divide 2.5 units off: near the limit the quotient is found by hand.
  const float share = common_area / joined;
  return (abs(share - R.overlap) > 1e-5 ? share : divided(common_area, joined)) > R.overlap;
}
bool is_better(float score, uint place, float other, uint other_place) {
  if (place == kNone || other_place == kNone) return other_place == kNone && place != kNone;
  return score > other || (score == other && place < other_place);
}

void main() {
  const uint task = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x, thread = gl_LocalInvocationID.x;
  if (task >= R.tasks) return;
  const uint image = task / R.classes, bits = R.out_at + task * R.words * kThreads + thread;
  const int first_score = int(image) * R.score[0] + int(task - image * R.classes) * R.score[1];
  uint kept = 0u, taken = kNone;
  vec4 box = vec4(0.0);
  while (kept < R.most) {
    float score = 0.0;
    uint place = kNone;
    for (uint word = 0u; word < R.words; ++word) {
      const uint first = word * 32u * kThreads + thread;  // this thread's boxes lie a workgroup apart
      uint is_out = 0u;
      if (kept > 0u) {
        is_out = push.work.v[bits + word * kThreads];
      } else if (first + 31u * kThreads >= R.boxes) {
        const uint there = first < R.boxes ? (R.boxes - first + kThreads - 1u) / kThreads : 0u;
        is_out = 0xffffffffu << there;
      }
      for (uint left = ~is_out; left != 0u; left &= left - 1u) {
        const int bit = findLSB(left);
        const uint i = first + uint(bit) * kThreads;
        const float its = push.scores.v[first_score + int(i) * R.score[2]];
        if (kept == 0u ? !(kThreshold ? its > R.threshold : !is_nan(its)) : i == taken || overlaps(box_at(image, i), box))
          is_out |= 1u << bit;
        else if (is_better(its, i, score, place))
          score = its, place = i;
      }
      push.work.v[bits + word * kThreads] = is_out;
    }
    scores[thread] = score, boxes_at[thread] = place;
    barrier();
    for (uint step = kThreads / 2u; step > 0u; step /= 2u) {
      if (thread < step && is_better(scores[thread + step], boxes_at[thread + step], scores[thread], boxes_at[thread]))
        scores[thread] = scores[thread + step], boxes_at[thread] = boxes_at[thread + step];
      barrier();
    }
    taken = boxes_at[0];
    barrier();
    if (taken == kNone) break;
    if (thread == 0u) push.work.v[R.kept + task * R.most + kept] = taken;
    box = box_at(image, taken);
    ++kept;
  }
  if (thread == 0u) push.work.v[task] = kept;
}
