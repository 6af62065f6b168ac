// The scan family: running sums of rows. Threads of a row take neighbouring elements, add them up among themselves and carry
// the sum to the next ones. Long rows of which there are few are cut into parts: one dispatch adds up each, a second one begins with
// the sums of the parts before. Sums of floats are carried with what rounding took from them.
// build: scan
// build: scan_half -DHALF
// build: scan_doubles -DDOUBLES
// build: scan_integers_1 -DBITS=8 -DCELL=uint8_t
// build: scan_integers_2 -DBITS=16 -DCELL=uint16_t
// build: scan_integers_4 -DBITS=32 -DCELL=uint
// build: scan_integers_8 -DBITS=64 -DCELL=uvec2
#version 460
#extension GL_GOOGLE_include_directive : require
#ifdef BITS
#if BITS == 8
#extension GL_EXT_shader_8bit_storage : require
#elif BITS == 16
#extension GL_EXT_shader_16bit_storage : require
#endif
#if BITS == 64
#define SUM uvec2
#else
#define SUM uint
#endif
#elif defined(DOUBLES)
#define SUM double
#else
#define SUM float
#endif
#include "buffers.glsl"
#define GATHERED SUM
#include "rows.glsl"

#ifdef BITS
#define CELL_BYTES (BITS / 8)
#elif defined(DOUBLES)
#define CELL double
#define CELL_BYTES 8
#else
#define CELL ELEMENT
#define CELL_BYTES ELEMENT_BYTES
#endif
layout(buffer_reference, scalar, buffer_reference_align = CELL_BYTES) buffer Cells { CELL v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Totals { SUM v[]; };
layout(constant_id = 4) const bool kExclusive = false;
layout(constant_id = 5) const bool kReverse = false;

SUM plus(SUM a, SUM b) {
#if defined(BITS) && BITS == 64
  uint carry;
  const uint low = uaddCarry(a.x, b.x, carry);
  return uvec2(low, a.y + b.y + carry);
#else
  return a + b;
#endif
}
SUM carried = SUM(0);
#ifdef BITS
void carry(SUM x) { carried = plus(carried, x); }
SUM behind_carried(SUM x) { return plus(carried, x); }
#else
SUM lost = SUM(0);  // to rounding, of what was carried (Knuth's exact sum of two)
void carry(SUM x) {
  precise SUM sum = carried + x, own = sum - carried;
  precise SUM error = (carried - (sum - own)) + (x - own);
  carried = sum;
  if (abs(error) <= abs(sum)) lost += error;  // not so of infinite sums and NaN
}
SUM behind_carried(SUM x) {
  precise SUM sum = carried + (x + lost);
  return sum;
}
#endif

// Element `i` in the order of the sum: places in x and y.
ivec4 place_in_order(uint i) { return place_of(kElements, kReverse ? R.elements - 1u - i : i); }

// Of part `part` of the row in the workspace; two to a part, for doubles and 64 bits fit where two floats do.
uint total_at(uint part, uint row) {
#if defined(DOUBLES) || (defined(BITS) && BITS == 64)
  return part * R.rows + row;
#else
  return 2u * (part * R.rows + row);
#endif
}

void main() {
  const uint row = row_of_thread(), thread = gl_LocalInvocationID.x, part = gl_WorkGroupID.z;
  const uint first = part * R.part_length, end = min(first + R.part_length, R.elements);
  const bool there = row < R.rows;
  const ivec4 origin = there ? place_of(kRows, row) : ivec4(0);
  if (kStage == 1) {
    if (there)
      for (uint i = first + depth(); i < end; i += R.depth) carry(SUM(Cells(push.x).v[origin.x + place_in_order(i).x]));
    gathered[thread] = behind_carried(SUM(0));
    barrier();
    for (uint step = R.depth / 2; step > 0; step /= 2) {
      if (depth() < step) gathered[thread] = plus(gathered[thread], gathered[thread + step * apart()]);
      barrier();
    }
    if (there && depth() == 0) Totals(push.work).v[total_at(part, row)] = gathered[thread];
    return;
  }
  if (kStage == 2 && there)
    for (uint i = 0; i < part; ++i) carry(Totals(push.work).v[total_at(i, row)]);
  // As many rounds for all threads: they wait for each other.
  for (uint base = first; base < end; base += R.depth) {
    const uint i = base + depth();
    const bool within = there && i < end;
    const ivec4 at = within ? origin + place_in_order(i) : ivec4(0);
    gathered[thread] = within ? SUM(Cells(push.x).v[at.x]) : SUM(0);
    barrier();
    for (uint step = 1; step < R.depth; step *= 2) {
      const SUM before = depth() >= step ? gathered[thread - step * apart()] : SUM(0);
      barrier();
      gathered[thread] = plus(before, gathered[thread]);
      barrier();
    }
    SUM sum = gathered[thread];
    if (kExclusive) sum = depth() > 0u ? gathered[thread - apart()] : SUM(0);
    if (within) Cells(push.y).v[at.w] = CELL(behind_carried(sum));
    carry(gathered[thread + (R.depth - 1u - depth()) * apart()]);
    barrier();
  }
}
