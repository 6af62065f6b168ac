// The normalize family: a row's mean, then its deviations from it, then the application with scale and bias. Long rows of which
// there are few are cut into parts: one dispatch finds the figures of each, a second one joins and applies them.
// build: normalize
// build: normalize_half -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "rows.glsl"

layout(constant_id = 4) const uint kDivisor = 0;  // families/normalize/normalize.h
layout(constant_id = 5) const bool kCenter = true;
layout(constant_id = 6) const bool kScale = false;
layout(constant_id = 7) const bool kBias = false;
const uint kVariance = 0, kDeviation = 1, kL1 = 2, kL2 = 3;

float total_of(float x) {
  const uint thread = gl_LocalInvocationID.x;
  gathered[thread].x = x;
  barrier();
  for (uint step = R.depth / 2; step > 0; step /= 2) {
    if (depth() < step) gathered[thread].x += gathered[thread + step * apart()].x;
    barrier();
  }
  const float total = gathered[thread - depth() * apart()].x;
  barrier();
  return total;
}
// Elements, their mean, and the sum of what they are off it.
struct Figures { float count, mean, sum; };
shared float counts[kThreads];
// Chan, Golub and LeVeque: figures of two parts to those of both.
Figures joined(Figures a, Figures b) {
  if (b.count == 0.0) return a;
  if (a.count == 0.0) return b;
  const float apart_by = b.mean - a.mean, share = b.count / (a.count + b.count);
  return Figures(a.count + b.count, a.mean + apart_by * share,
                 a.sum + b.sum + (kCenter ? apart_by * apart_by * a.count * share : 0.0));
}
Figures joined_by_threads(Figures mine) {
  const uint thread = gl_LocalInvocationID.x;
  counts[thread] = mine.count, gathered[thread] = vec2(mine.mean, mine.sum);
  barrier();
  for (uint step = R.depth / 2; step > 0; step /= 2) {
    if (depth() < step) {
      const uint other = thread + step * apart();
      mine = joined(mine, Figures(counts[other], gathered[other].x, gathered[other].y));
      counts[thread] = mine.count, gathered[thread] = vec2(mine.mean, mine.sum);
    }
    barrier();
  }
  const uint first = thread - depth() * apart();
  return Figures(counts[first], gathered[first].x, gathered[first].y);
}
float factor_of(float sum) {
  const float count = float(R.elements);
  switch (kDivisor) {
    case kVariance: return 1.0 / sqrt(sum / count + R.epsilon);
    case kDeviation: return 1.0 / (sqrt(sum / count) + R.epsilon);
    case kL1: return sum == 0.0 ? 0.0 : 1.0 / sum;
    default: return sum == 0.0 ? 0.0 : 1.0 / sqrt(sum);
  }
}

void main() {
  const uint row = row_of_thread(), part = gl_WorkGroupID.z, first = part * R.part_length;
  const uint end = min(first + R.part_length, R.elements);
  const bool there = row < R.rows;
  const ivec4 origin = there ? place_of(kRows, row) : ivec4(0);
  float mean = 0.0, sum = 0.0;
  if (kStage < 2) {
    if (kCenter) {
      if (there)
        for (uint i = first + depth(); i < end; i += R.depth) sum += float(push.x.v[origin.x + place_of(kElements, i).x]);
      mean = total_of(sum) / float(end - first);
      sum = 0.0;
    }
    if (there)
      for (uint i = first + depth(); i < end; i += R.depth) {
        const float x = float(push.x.v[origin.x + place_of(kElements, i).x]) - mean;
        sum += kDivisor == kL1 ? abs(x) : x * x;
      }
    sum = total_of(sum);
    if (kStage == 1) {
      if (there && depth() == 0) {
        const uint at = 2 * (part * R.rows + row);
        push.work.v[at] = mean;
        push.work.v[at + 1] = sum;
      }
      return;
    }
  } else {
    // Each thread joins some of the parts, then threads join theirs.
    Figures all = Figures(0.0, 0.0, 0.0);
    if (there)
      for (uint i = depth(); i < R.parts; i += R.depth) {
        const uint at = 2 * (i * R.rows + row);
        all = joined(all, Figures(float(min(R.part_length, R.elements - i * R.part_length)), push.work.v[at], push.work.v[at + 1]));
      }
    all = joined_by_threads(all);
    mean = all.mean, sum = all.sum;
  }
  if (!there) return;
  const float factor = factor_of(sum);
  for (uint i = first + depth(); i < end; i += R.depth) {
    const ivec4 at = origin + place_of(kElements, i);
    float y = (float(push.x.v[at.x]) - mean) * factor;
    if (kScale) y *= float(push.scale.v[at.y]);
    if (kBias) y += float(push.bias.v[at.z]);
    push.y.v[at.w] = ELEMENT(y);
  }
}
