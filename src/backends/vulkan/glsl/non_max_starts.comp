// Non-maximum suppression: where the rows of each task begin, from how many it has; all of them behind the last. One workgroup.
// build: non_max_starts
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "non_max.glsl"

shared uint sums[kThreads];

void main() {
  const uint thread = gl_LocalInvocationID.x;
  uint before = 0u;
  for (uint first = 0u; first < R.tasks; first += kThreads) {
    const uint task = first + thread, own = task < R.tasks ? push.work.v[task] : 0u;
    sums[thread] = own;
    barrier();
    for (uint step = 1u; step < kThreads; step *= 2u) {
      const uint other = thread >= step ? sums[thread - step] : 0u;
      barrier();
      sums[thread] += other;
      barrier();
    }
    if (task < R.tasks) push.work.v[task] = before + sums[thread] - own;
    before += sums[kThreads - 1u];
    barrier();
  }
  if (thread == 0u) push.work.v[R.tasks] = before;
}
