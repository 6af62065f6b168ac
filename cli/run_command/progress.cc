#include "run_command/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace sparkle::cli {

Progress::Progress(std::string what, int64_t total, bool wanted)
    : what_(std::move(what)), total_(std::max<int64_t>(total, 1)), shown_(wanted && isatty(STDERR_FILENO)) {
  if (shown_) draw();
}

void Progress::step(int64_t count) {
  done_ = std::min(total_, done_ + count);
  if (!shown_) return;
  if (drawn_ && done_ < total_ && std::chrono::steady_clock::now() - last_ < std::chrono::milliseconds(100)) return;
  draw();
}

void Progress::draw() {
  constexpr int kWidth = 40;
  const int filled = static_cast<int>(kWidth * done_ / total_);
  std::string bar(static_cast<size_t>(filled), '#');
  bar.resize(kWidth, '.');
  std::fprintf(stderr, "\r%s [%s] %3d %%", what_.c_str(), bar.c_str(), static_cast<int>(100 * done_ / total_));
  std::fflush(stderr);
  drawn_ = true;
  last_ = std::chrono::steady_clock::now();
}

void Progress::clear() {
  if (!drawn_) return;
  std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace sparkle::cli
