// Of updates that fall on one place the last one stays: claims are cleared (0), each place is claimed by the highest number among
// its updates (1), which then writes (2). A thread an update. Claims alone look at indices and report them, even where there is nothing to write (3).
// build: scatter_last_1 -DCELL_BYTES=1 -DCELL=uint8_t
// build: scatter_last_2 -DCELL_BYTES=2 -DCELL=uint16_t
// build: scatter_last_4 -DCELL_BYTES=4 -DCELL=uint
// build: scatter_last_8 -DCELL_BYTES=8 -DCELL=uvec2
#version 460
#extension GL_GOOGLE_include_directive : require
#if CELL_BYTES == 1
#extension GL_EXT_shader_8bit_storage : require
#elif CELL_BYTES == 2
#extension GL_EXT_shader_16bit_storage : require
#endif
#include "buffers.glsl"
#include "scatter.glsl"

layout(constant_id = 4) const uint kStep = 0;
const uint kClear = 0, kClaim = 1, kWrite = 2;

void main() {
  const uint i = thread_number();
  if (i >= R.parallel * R.serial) return;
  if (kStep == kClear) {
    push.claims.v[i] = 0u;
    return;
  }
  Offsets p = begin_of_all();
  move_along(p, i, 0, R.rank);
  move_to_target(p, kStep != kWrite);
  const uint claim = uint(p.order) + 1u;
  if (kStep == kClaim) atomicMax(push.claims.v[p.slot], claim);
  if (kStep == kWrite && push.claims.v[p.slot] == claim) push.y.v[p.y] = push.updates.v[p.update];
}
