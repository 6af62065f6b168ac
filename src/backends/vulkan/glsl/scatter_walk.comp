// Updates that meet what they fall on, in row-major order of the indices: a thread takes those that differ along the serial axes
// alone, one after the other. Elements as bits, added and multiplied modulo 2^BITS, or floats.
// build: scatter_walk_1 -DBITS=8 -DCELL=uint8_t
// build: scatter_walk_2 -DBITS=16 -DCELL=uint16_t
// build: scatter_walk_4 -DBITS=32 -DCELL=uint
// build: scatter_walk_8 -DBITS=64 -DCELL=uvec2
// build: scatter_walk -DVALUE=float
// build: scatter_walk_half -DVALUE=float -DHALF
// build: scatter_walk_doubles -DVALUE=double -DCELL=double -DCELL_BYTES=8
#version 460
#extension GL_GOOGLE_include_directive : require
#ifdef BITS
#define CELL_BYTES (BITS / 8)
#if BITS == 8
#extension GL_EXT_shader_8bit_storage : require
#elif BITS == 16
#extension GL_EXT_shader_16bit_storage : require
#endif
#endif
#include "buffers.glsl"
#ifndef CELL
#define CELL ELEMENT
#define CELL_BYTES ELEMENT_BYTES
#endif
#include "scatter.glsl"

layout(constant_id = 4) const uint kReduction = 0;  // families/scatter/scatter.h
layout(constant_id = 5) const bool kSigned = false;
const uint kAdd = 1, kMul = 2, kMax = 3;

#ifdef BITS
#include "pointwise_integers.glsl"
#if BITS == 64
#define VALUE uvec2
#define SIGNED ivec2
#else
#define VALUE uint
#define SIGNED int
#endif
bool is_less(VALUE a, VALUE b) {
  if (!kSigned) return less_of(a, b);
#if BITS < 32
  return less_of(bitfieldExtract(int(a), 0, BITS), bitfieldExtract(int(b), 0, BITS));
#else
  return less_of(SIGNED(a), SIGNED(b));
#endif
}
VALUE sum_of(VALUE a, VALUE b) { return add_of(a, b); }
VALUE product_of(VALUE a, VALUE b) { return mul_of(a, b); }
#else
bool is_less(VALUE a, VALUE b) { return a < b; }
VALUE sum_of(VALUE a, VALUE b) { return a + b; }
VALUE product_of(VALUE a, VALUE b) { return a * b; }
bool is_number(VALUE a) { return a >= VALUE(0) || a < VALUE(0); }
#endif

VALUE combined(VALUE old, VALUE update) {
  switch (kReduction) {
    case kAdd: return sum_of(old, update);
    case kMul: return product_of(old, update);
    default: break;
  }
  if (kReduction == 0u) return update;
#ifndef BITS
  if (!is_number(old)) return old;
  if (!is_number(update)) return update;
#endif
  return (kReduction == kMax ? is_less(old, update) : is_less(update, old)) ? update : old;
}

void main() {
  const uint i = thread_number();
  if (i >= R.parallel) return;
  Offsets own = begin_of_all();
  move_along(own, i, R.serial_rank, R.rank);
  for (uint step = 0u; step < R.serial; ++step) {
    Offsets p = own;
    move_along(p, step, 0, R.serial_rank);
    move_to_target(p, true);
    push.y.v[p.y] = CELL(combined(VALUE(push.y.v[p.y]), VALUE(push.updates.v[p.update])));
  }
}
