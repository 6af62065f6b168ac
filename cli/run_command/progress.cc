#include "run_command/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace sparkle::cli {

Progress::Progress(std::string what, int64_t total, bool wanted, bool rates)
    : what_(std::move(what)), total_(std::max<int64_t>(total, 0)), shown_(wanted && isatty(STDERR_FILENO)), rates_(rates) {
  if (shown_) draw();
}

void Progress::step(int64_t count) {
  done_ = total_ > 0 ? std::min(total_, done_ + count) : done_ + count;
  if (!shown_) return;
  if (drawn_ && (done_ < total_ || total_ == 0) && std::chrono::steady_clock::now() - last_ < std::chrono::milliseconds(100))
    return;
  draw();
}

void Progress::draw() {
  constexpr int kWidth = 40;
  const int64_t total = std::max<int64_t>(total_, 1);
  std::fprintf(stderr, "\r%s ", what_.c_str());
  if (total_ > 0) {
    std::string bar(static_cast<size_t>(kWidth * done_ / total), '#');
    bar.resize(kWidth, '.');
    std::fprintf(stderr, "[%s] %3d %%", bar.c_str(), static_cast<int>(100 * done_ / total));
  } else {
    std::fprintf(stderr, "%lld", static_cast<long long>(done_));
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  if (rates_ && done_ > 0 && seconds > 0) {
    const double rate = static_cast<double>(done_) / seconds;
    std::fprintf(stderr, ", %.1f a second", rate);
    const auto left = static_cast<int64_t>(static_cast<double>(total_ - done_) / rate);
    if (total_ > 0)
      std::fprintf(stderr, ", %lld:%02lld left", static_cast<long long>(left / 60), static_cast<long long>(left % 60));
    std::fputs("\033[K", stderr);
  }
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
