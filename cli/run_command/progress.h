// A progress bar on standard error: on a terminal only, drawn at most ten times a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace sparkle::cli {

class Progress {
 public:
  Progress(std::string what, int64_t total, bool wanted);
  ~Progress() { clear(); }
  void step(int64_t count = 1);
  void clear();

 private:
  void draw();
  std::string what_;
  int64_t total_, done_ = 0;
  bool shown_, drawn_ = false;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace sparkle::cli
