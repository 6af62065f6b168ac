// Passes and factors of a transform, and transforms of filters, which are made once and in double precision.

#include "backends/cpu/fft/fft_filters.h"
#include "backends/cpu/fft/fft_lines.h"
#include "families/fft/fft_axis.h"

namespace sparkle::cpu {
namespace {

using Complex = std::complex<double>;

// Where the passes from `level` on leave frequency k of a block: first all k with the same rest, then by quotient.
int64_t place_of(const FftPlan& plan, int64_t k) {
  int64_t place = 0;
  for (const FftPass& pass : plan.passes) {
    place += k % pass.radix * pass.step;
    k /= pass.radix;
  }
  return place;
}

}  // namespace

FftPlan fft_plan(int64_t points, int registers) {
  FftPlan plan;
  plan.points = points;
  int64_t block = points;
  for (const int radix : fft_radices(points, registers)) {
    const int64_t step = block / radix;
    plan.passes.push_back({radix, step, static_cast<int64_t>(plan.twiddles.size())});
    for (int64_t j = 1; j < step; ++j)
      for (int q = 1; q < radix; ++q) {
        const Complex w = fft_root(j * q, block);
        plan.twiddles.push_back(static_cast<float>(w.real()));
        plan.twiddles.push_back(static_cast<float>(w.imag()));
      }
    block = step;
  }
  plan.place.resize(static_cast<size_t>(points));
  for (int64_t k = 0; k < points; ++k) plan.place[static_cast<size_t>(k)] = static_cast<int32_t>(place_of(plan, k));
  return plan;
}

DoubleTransform::DoubleTransform(int64_t points) : points_(points), roots_(static_cast<size_t>(points)) {
  for (int64_t j = 0; j < points; ++j) roots_[static_cast<size_t>(j)] = fft_root(j, points);
}

void DoubleTransform::run(const Complex* from, int64_t stride, Complex* to) const { part(from, stride, to, points_); }

// Every p-th point on its own, then sums of those p transforms.
void DoubleTransform::part(const Complex* from, int64_t stride, Complex* to, int64_t n) const {
  if (n == 1) {
    *to = *from;
    return;
  }
  const int64_t p = n % 4 == 0 ? 4 : n % 2 == 0 ? 2 : n % 3 == 0 ? 3 : 5, m = n / p, scale = points_ / n;
  for (int64_t q = 0; q < p; ++q) part(from + q * stride, stride * p, to + q * m, m);
  Complex terms[5];
  for (int64_t j = 0; j < m; ++j) {
    for (int64_t q = 0; q < p; ++q) terms[q] = to[q * m + j] * roots_[static_cast<size_t>(j * q * scale)];
    for (int64_t s = 0; s < p; ++s) {
      Complex sum = terms[0];
      for (int64_t q = 1; q < p; ++q) sum += terms[q] * roots_[static_cast<size_t>(s * q % p * (points_ / p))];
      to[s * m + j] = sum;
    }
  }
}

}  // namespace sparkle::cpu
