// What a loop nest asks a memory level for, from the bytes that each of its loops touches.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <vector>

namespace sparkle {

// Loops from the innermost one outwards, each around those before it.
template <size_t kOperands>
class LoopNest {
 public:
  using Touched = std::array<double, kOperands>;  // distinct bytes of each operand
  // What one pass of the innermost body touches; `beside`: bytes that every pass touches as well.
  explicit LoopNest(const Touched& body, double beside = 0) : loops_{{1, body}}, beside_(beside) {}
  // A loop of `times` passes, which together touch so much.
  void around(double times, const Touched& touched) { loops_.push_back({std::max(1.0, times), touched}); }

  // Bytes of an operand that come from beyond a memory of `inner` bytes. What one pass of a loop touches is found there by the
  // next pass where all that is touched meanwhile fits.
  double asked(size_t operand, double inner) const {
    double bytes = loops_[0].touched[operand];
    for (size_t i = 1; i < loops_.size(); ++i) {
      const double once = loops_[i - 1].touched[operand], all = loops_[i].touched[operand];
      if (once == 0) {
        bytes = all;
        continue;
      }
      // An operand that inner loops touch as a whole in each of their passes is as near as their last one.
      size_t near = i - 1;
      while (near > 0 && loops_[near - 1].touched[operand] == once) --near;
      const double again = loops_[i].times * bytes;
      bytes = set(near) <= inner ? std::min(again, all) : again;
    }
    return bytes;
  }
  // What all operands touch in the whole nest.
  double touched() const { return set(loops_.size() - 1); }

 private:
  struct Loop {
    double times;
    Touched touched;
  };
  double set(size_t loop) const {
    double bytes = beside_;
    for (const double touched : loops_[loop].touched) bytes += touched;
    return bytes;
  }
  std::vector<Loop> loops_;
  double beside_;
};

}  // namespace sparkle
