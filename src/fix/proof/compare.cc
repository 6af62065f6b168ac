#include "fix/proof/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "graph/evaluate/values.h"

namespace sparkle::fix {
namespace {

constexpr int64_t kFewestClasses = 3;  // two are a score and its complement

size_t largest_at(const std::vector<double>& v, size_t begin, size_t count) {
  return static_cast<size_t>(
      std::max_element(v.begin() + static_cast<long>(begin), v.begin() + static_cast<long>(begin + count)) - v.begin());
}

}  // namespace

bool is_classes(const Dims& shape) {
  if (shape.size() < 2 || shape[1] < kFewestClasses) return false;
  for (int a = 2; a < shape.size(); ++a)
    if (shape[a] != 1) return false;
  return true;
}

void add_sample(Difference& d, const HostTensor& wanted, const HostTensor& found) {
  ++d.samples;
  d.same_bits = d.same_bits && wanted.dtype == found.dtype && wanted.shape == found.shape &&
                std::memcmp(wanted.bytes.get(), found.bytes.get(), static_cast<size_t>(wanted.size_bytes())) == 0;
  const auto want = as_doubles(wanted), have = as_doubles(found);
  double error = 0, most = 0, products = 0, squares_w = 0, squares_h = 0;
  bool lost = want.size() != have.size();
  for (size_t i = 0; i < want.size() && !lost; ++i) {
    const double w = want[i], h = have[i];
    if (w == h || (std::isnan(w) && std::isnan(h))) {
      if (!std::isfinite(w)) continue;
    } else if (!std::isfinite(w) || !std::isfinite(h)) {
      lost = true;
      break;
    }
    error = std::max(error, std::abs(w - h));
    most = std::max(most, std::abs(w));
    products += w * h, squares_w += w * w, squares_h += h * h;
  }
  const double norm = std::sqrt(squares_w) * std::sqrt(squares_h);
  const double cosine = norm > 0 ? products / norm : squares_w == squares_h ? 1 : 0;
  d.largest = std::max(d.largest, lost ? INFINITY : most > 0 ? error / most : error);
  d.cosine = std::min(d.cosine, lost ? -1 : cosine);
  if (!is_classes(wanted.shape) || lost) return;
  d.classes = true;
  const auto count = static_cast<size_t>(wanted.shape[1]);
  bool same = true;
  for (size_t begin = 0; begin + count <= want.size(); begin += count)
    same = same && largest_at(want, begin, count) == largest_at(have, begin, count);
  d.same_top1 += same;
}

void add(Difference& d, const Difference& others) {
  d.same_bits = d.same_bits && others.same_bits;
  d.largest = std::max(d.largest, others.largest);
  d.cosine = std::min(d.cosine, others.cosine);
  d.classes = d.classes || others.classes;
  d.samples += others.samples, d.same_top1 += others.same_top1;
}

double relative_error(const HostTensor& wanted, const HostTensor& found) {
  const auto want = as_doubles(wanted), have = as_doubles(found);
  if (want.size() != have.size()) return INFINITY;
  double errors = 0, squares = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (!std::isfinite(want[i])) continue;
    if (!std::isfinite(have[i])) return INFINITY;
    errors += (want[i] - have[i]) * (want[i] - have[i]);
    squares += want[i] * want[i];
  }
  return squares > 0 ? std::sqrt(errors / squares) : std::sqrt(errors);
}

}  // namespace sparkle::fix
