// Transforms in double precision, for filters: plain recursion over the factors 4, 2, 3 and 5.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace sparkle::cpu {

class DoubleTransform {
 public:
  explicit DoubleTransform(int64_t points);
  // `to`: points next to each other, in the order of their frequencies.
  void run(const std::complex<double>* from, int64_t stride, std::complex<double>* to) const;

 private:
  void part(const std::complex<double>* from, int64_t stride, std::complex<double>* to, int64_t n) const;
  int64_t points_;
  std::vector<std::complex<double>> roots_;
};

}  // namespace sparkle::cpu
