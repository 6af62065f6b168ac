// A line on a terminal about what a command waits for.
#include "base/waiting.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <mutex>

#include "command.h"

namespace sparkle::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPatience{300}, kBetween{100};

void draw(const char* what, size_t done, size_t total) {
  static std::mutex mutex;
  static Clock::time_point since, last;
  static bool waiting = false, shown = false;
  const std::lock_guard lock(mutex);
  const auto now = Clock::now();
  if (!waiting) since = now;
  waiting = done < total;
  if (!waiting) {
    if (!shown) return;
    std::fputs("\r\033[K", stderr);
    shown = false;
  } else {
    if (shown ? now - last < kBetween : now - since < kPatience) return;
    if (done > 0) std::fprintf(stderr, "\rsparkle: %s, %zu of %zu\033[K", what, done, total);
    else std::fprintf(stderr, "\rsparkle: %s, %zu in all\033[K", what, total);
    shown = true, last = now;
  }
  std::fflush(stderr);
}

}  // namespace

void show_waiting() {
  if (isatty(STDERR_FILENO)) set_waiting(draw);
}

}  // namespace sparkle::cli
