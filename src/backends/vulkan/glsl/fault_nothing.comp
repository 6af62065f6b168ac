// For tests of how faults are found: a kernel that leaves its output as it was.
// build: fault_nothing
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"

void main() {}
