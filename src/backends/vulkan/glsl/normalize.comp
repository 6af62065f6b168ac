// The normalize family: a row's mean, then its deviations from it, then the application with scale and bias. Long rows of which
// there are few are cut into parts: one dispatch finds the figures of each, a second one joins and applies them. Rows of
// doubles are whole.
// build: normalize
// build: normalize_half -DHALF
// build: normalize_double -DDOUBLE
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#ifdef DOUBLE
#define REAL double
#define GATHERED dvec2
#define STORED double
#define OF(operand) Doubles(push.operand)
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Doubles { double v[]; };
#else
#define REAL float
#define GATHERED vec2
#define STORED ELEMENT
#define OF(operand) push.operand
#endif
#include "rows.glsl"

layout(constant_id = 4) const uint kDivisor = 0;  // families/normalize/normalize.h
layout(constant_id = 5) const bool kCenter = true;
layout(constant_id = 6) const bool kScale = false;
layout(constant_id = 7) const bool kBias = false;
const uint kVariance = 0, kDeviation = 1, kL1 = 2, kL2 = 3;

REAL total_of(REAL x) {
  const uint thread = gl_LocalInvocationID.x;
  gathered[thread].x = x;
  barrier();
  for (uint step = R.depth / 2; step > 0; step /= 2) {
    if (depth() < step) gathered[thread].x += gathered[thread + step * apart()].x;
    barrier();
  }
  const REAL total = gathered[thread - depth() * apart()].x;
  barrier();
  return total;
}
// Elements, their mean, and the sum of what they are off it.
struct Figures { REAL count, mean, sum; };
shared REAL counts[kThreads];
// Chan, Golub and LeVeque: figures of two parts to those of both.
Figures joined(Figures a, Figures b) {
  if (b.count == REAL(0.0)) return a;
  if (a.count == REAL(0.0)) return b;
  const REAL apart_by = b.mean - a.mean, share = b.count / (a.count + b.count);
  return Figures(a.count + b.count, a.mean + apart_by * share,
                 a.sum + b.sum + (kCenter ? apart_by * apart_by * a.count * share : REAL(0.0)));
}
Figures joined_by_threads(Figures mine) {
  const uint thread = gl_LocalInvocationID.x;
  counts[thread] = mine.count, gathered[thread] = GATHERED(mine.mean, mine.sum);
  barrier();
  for (uint step = R.depth / 2; step > 0; step /= 2) {
    if (depth() < step) {
      const uint other = thread + step * apart();
      mine = joined(mine, Figures(counts[other], gathered[other].x, gathered[other].y));
      counts[thread] = mine.count, gathered[thread] = GATHERED(mine.mean, mine.sum);
    }
    barrier();
  }
  const uint first = thread - depth() * apart();
  return Figures(counts[first], gathered[first].x, gathered[first].y);
}
REAL factor_of(REAL sum) {
  const REAL count = REAL(R.elements), one = REAL(1.0), zero = REAL(0.0);
#ifdef DOUBLE
  const double epsilon = packDouble2x32(uvec2(R.own[0], R.own[1]));
#else
  const float epsilon = R.epsilon;
#endif
  switch (kDivisor) {
    case kVariance: return one / sqrt(sum / count + epsilon);
    case kDeviation: return one / (sqrt(sum / count) + epsilon);
    case kL1: return sum == zero ? zero : one / sum;
    default: return sum == zero ? zero : one / sqrt(sum);
  }
}

void main() {
  const uint row = row_of_thread(), part = gl_WorkGroupID.z, first = part * R.part_length;
  const uint end = min(first + R.part_length, R.elements);
  const bool there = row < R.rows;
  const ivec4 origin = there ? place_of(kRows, row) : ivec4(0);
  REAL mean = REAL(0.0), sum = REAL(0.0);
  if (kStage < 2) {
    if (kCenter) {
      if (there)
        for (uint i = first + depth(); i < end; i += R.depth) sum += REAL(OF(x).v[origin.x + place_of(kElements, i).x]);
      mean = total_of(sum) / REAL(end - first);
      sum = REAL(0.0);
    }
    if (there)
      for (uint i = first + depth(); i < end; i += R.depth) {
        const REAL x = REAL(OF(x).v[origin.x + place_of(kElements, i).x]) - mean;
        sum += kDivisor == kL1 ? abs(x) : x * x;
      }
    sum = total_of(sum);
    if (kStage == 1) {
      if (there && depth() == 0) {
        const uint at = 2 * (part * R.rows + row);
        push.work.v[at] = float(mean);
        push.work.v[at + 1] = float(sum);
      }
      return;
    }
  } else {
    // Each thread joins some of the parts, then threads join theirs.
    Figures all = Figures(REAL(0.0), REAL(0.0), REAL(0.0));
    if (there)
      for (uint i = depth(); i < R.parts; i += R.depth) {
        const uint at = 2 * (i * R.rows + row);
        const REAL count = REAL(min(R.part_length, R.elements - i * R.part_length));
        all = joined(all, Figures(count, REAL(push.work.v[at]), REAL(push.work.v[at + 1])));
      }
    all = joined_by_threads(all);
    mean = all.mean, sum = all.sum;
  }
  if (!there) return;
  const REAL factor = factor_of(sum);
  for (uint i = first + depth(); i < end; i += R.depth) {
    const ivec4 at = origin + place_of(kElements, i);
    REAL y = (REAL(OF(x).v[at.x]) - mean) * factor;
    if (kScale) y *= REAL(OF(scale).v[at.y]);
    if (kBias) y += REAL(OF(bias).v[at.z]);
    OF(y).v[at.w] = STORED(y);
  }
}
