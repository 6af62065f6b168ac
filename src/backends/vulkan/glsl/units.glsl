// Kernels that move units of BYTES bytes, whatever they mean. A workgroup takes kSteps units a thread, those of a step side by side.
#if BYTES == 1
#extension GL_EXT_shader_8bit_storage : require
#define UNIT uint8_t
#elif BYTES == 2
#extension GL_EXT_shader_16bit_storage : require
#define UNIT uint16_t
#elif BYTES == 4
#define UNIT uint
#elif BYTES == 8
#define UNIT uvec2
#else
#define UNIT uvec4
#endif
// Single and paired bytes wait in whole words: other variables of those types are features of their own.
#if BYTES < 4
#define WORD uint
#else
#define WORD UNIT
#endif
layout(buffer_reference, scalar, buffer_reference_align = BYTES) buffer Units { UNIT v[]; };

const int kSteps = 4;
const int kMostAxes = 8;

#include "divide.glsl"

// The first unit of this thread; the next ones follow a workgroup apart.
uint first_unit() {
  const uint group = gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x;
  return group * kSteps * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
}
