// What the kernels of the quantize family share: operands in the order of families/quantize/quantize.h behind x and y, and the
// axes of y with each operand's strides (quantize.cc has the same record).
#include "bytes.glsl"

const int kAxes = 6, kOperands = 9;
struct ElementRecord {
  int count;         // of elements
  int axes;          // in use, outermost first
  int size[kAxes];
  int strides[kOperands][kAxes];
};
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer ElementRecords { ElementRecord v; };

layout(push_constant, scalar) uniform Push {
  Bytes x, y;
  Elements scale;
  Bytes zero, b;
  Elements b_scale;
  Bytes b_zero;
  Elements y_scale;
  Bytes y_zero;
  ElementRecords record;
  ivec2 range;
} push;

#define E push.record.v
