// Into how many tasks a kernel's work is cut, where that is all the same to the result.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sparkle::cpu {

// `work` in some unit of which `grain` takes about 5 us, sixteen times what handing a task over costs (0.3 us): smaller tasks
// are not worth a thread's attention. Not more than four a thread, which evens out what delays one of them, and where there are
// more tasks than threads as many for each: three tasks on two threads take as long as four.
inline int64_t task_count(double work, double grain, int width) {
  if (width <= 1 || !(work >= 2 * grain)) return 1;
  const auto tasks = static_cast<int64_t>(std::min(work / grain, 4.0 * width));
  return tasks > width ? tasks / width * width : tasks;
}

}  // namespace sparkle::cpu
