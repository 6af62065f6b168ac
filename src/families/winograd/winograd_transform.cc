// Points of the transforms and the matrices of weights that follow from them.
#include <cmath>
#include <vector>

#include "families/winograd/winograd.h"

namespace sparkle {
namespace {

// Weights at a point: the polynomial g0 + g1 a + g2 a^2 over the product of the differences to all other points.
WinogradTransform transform(const std::vector<double>& points) {
  WinogradTransform t;
  t.points = static_cast<int>(points.size()) + 1;
  t.tile = t.points - 2;
  for (size_t j = 0; j < points.size(); ++j) {
    double differences = 1;
    for (size_t l = 0; l < points.size(); ++l)
      if (l != j) differences *= points[j] - points[l];
    t.filter[j] = {1 / differences, points[j] / differences, points[j] * points[j] / differences};
  }
  t.filter[points.size()] = {0, 0, 1};
  return t;
}

}  // namespace

const WinogradTransform& winograd_transform(int tile) {
  const double root = std::sqrt(2.0);
  static const WinogradTransform two = transform({0, 1, -1});
  static const WinogradTransform four = transform({0, root / 2, -root / 2, root, -root});
  static const WinogradTransform six = transform({0, 1, -1, 2, -2, 0.5, -0.5});
  return tile == 2 ? two : tile == 4 ? four : six;
}

}  // namespace sparkle
