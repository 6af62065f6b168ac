// Elements ranked: a key that is larger the better an element is, and among equal ones the lower rank (families/top_k/top_k.h).
// BITS, CELL: of an element.
#if BITS == 8
#extension GL_EXT_shader_8bit_storage : require
#elif BITS == 16
#extension GL_EXT_shader_16bit_storage : require
#endif
#if BITS == 64
#define KEY uvec2
#else
#define KEY uint
#endif
layout(buffer_reference, scalar, buffer_reference_align = BITS / 8) buffer Cells { CELL v[]; };

layout(constant_id = 4) const uint kKind = 0;  // of numbers: unsigned, signed, float
layout(constant_id = 5) const bool kLargest = true;
layout(constant_id = 6) const bool kLastOfEquals = false;
layout(constant_id = 7) const bool kNanFirst = false;
layout(constant_id = 8) const bool kValues = false;  // beside the indices
const uint kSigned = 1, kFloat = 2;
const uint kNoRank = 0xffffffffu;  // of what is no element, with the lowest key

struct Entry {
  KEY key;
  uint rank;
};

#if BITS == 64
bool is_above(uvec2 a, uvec2 b) { return a.y > b.y || (a.y == b.y && a.x > b.x); }
uvec2 key_of(uvec2 bits) {
  const uvec2 all = uvec2(0xffffffffu);
  uvec2 key = kKind == kSigned ? bits ^ uvec2(0u, 0x80000000u) : bits;
  if (kKind == kFloat) {
    const uvec2 size = bits & uvec2(0xffffffffu, 0x7fffffffu);
    if (is_above(size, uvec2(0u, 0x7ff00000u)))
      key = all;
    else if (bits == size)
      key = bits | uvec2(0u, 0x80000000u);
    else
      key = uvec2(0u - size.x, 0x80000000u - size.y - (size.x != 0u ? 1u : 0u));
  }
  return kLargest || (kKind == kFloat && kNanFirst && key == all) ? key : ~key;
}
#else
bool is_above(uint a, uint b) { return a > b; }
uint key_of(uint bits) {
  const uint all = 0xffffffffu, top = 1u << (BITS - 1);
  uint key = kKind == kSigned ? bits ^ top : bits;
  if (kKind == kFloat) {
    const uint size = bits & (top - 1u);
    key = size > (BITS == 16 ? 0x7c00u : 0x7f800000u) ? all : bits == size ? bits | top : top - size;
  }
  return kLargest || (kKind == kFloat && kNanFirst && key == all) ? key : ~key;
}
#endif
bool is_better(Entry a, Entry b) { return is_above(a.key, b.key) || (a.key == b.key && a.rank < b.rank); }

// Ranks count the elements of a row from its begin or its end, and so back.
uint rank_of(uint i) { return kLastOfEquals ? R.elements - 1u - i : i; }
Entry entry_at(ivec4 origin, uint i) {
  return Entry(key_of(KEY(Cells(push.x).v[origin.x + place_of(kElements, i).x])), rank_of(i));
}
// The entry that comes out as number `i` of its row.
void put(ivec4 origin, uint i, uint rank) {
  const uint from = rank_of(rank);
  const ivec4 to = origin + place_of(kElements, i);
  if (kValues) Cells(push.scale).v[to.y] = Cells(push.x).v[origin.x + place_of(kElements, from).x];
  Ints(push.y).v[2 * to.w] = int(from);
  Ints(push.y).v[2 * to.w + 1] = 0;
}
