// Kernels that move chunks of BYTES bytes, whatever they mean. A workgroup takes kSteps chunks a thread, those of a step side by side.
#if BYTES == 1
#extension GL_EXT_shader_8bit_storage : require
#define CHUNK uint8_t
#elif BYTES == 2
#extension GL_EXT_shader_16bit_storage : require
#define CHUNK uint16_t
#elif BYTES == 4
#define CHUNK uint
#elif BYTES == 8
#define CHUNK uvec2
#else
#define CHUNK uvec4
#endif
// Single and paired bytes wait in whole words: other variables of those types are features of their own.
#if BYTES < 4
#define WORD uint
#else
#define WORD CHUNK
#endif
layout(buffer_reference, scalar, buffer_reference_align = BYTES) buffer Chunks { CHUNK v[]; };

const int kSteps = 4;
const int kMostAxes = 8;

#include "divide.glsl"

// The first chunk of this thread; the next ones follow a workgroup apart.
uint first_chunk() {
  const uint group = gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x;
  return group * kSteps * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
}
