// A progress bar on standard error: on a terminal only, drawn at most ten times a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace sparkle::cli {

class Progress {
 public:
  // `total` 0: nobody knows. `rates`: how many a second, and the time that is left.
  Progress(std::string what, int64_t total, bool wanted, bool rates = false);
  ~Progress() { clear(); }
  void step(int64_t count = 1);
  void clear();

 private:
  void draw();
  std::string what_;
  int64_t total_, done_ = 0;
  bool shown_, rates_, drawn_ = false;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now(), last_;
};

}  // namespace sparkle::cli
