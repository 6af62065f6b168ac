// Non-maximum suppression of one class: candidates by falling score, each against those that stay.
#include "families/non_max/non_max.h"

#include <algorithm>

namespace sparkle {

Box box_of(const NonMaxParams& params, const float* four) {
  if (params.centers) {
    const float x = four[0], y = four[1], half_width = four[2] / 2, half_height = four[3] / 2;
    return {y - half_height, x - half_width, y + half_height, x + half_width};
  }
  return {std::min(four[0], four[2]), std::min(four[1], four[3]), std::max(four[0], four[2]), std::max(four[1], four[3])};
}

bool overlaps(const Box& a, const Box& b, float overlap) {
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(height > 0) || !(width > 0)) return false;
  const float common = height * width;
  const float area_a = (a.bottom - a.top) * (a.right - a.left), area_b = (b.bottom - b.top) * (b.right - b.left);
  const float joined = area_a + area_b - common;
  return joined > 0 && common / joined > overlap;
}

std::vector<int64_t> kept_boxes(const NonMaxParams& params, std::span<const Box> boxes, const float* scores) {
  std::vector<int64_t> candidates, kept;
  const auto threshold = static_cast<float>(params.threshold), overlap = static_cast<float>(params.overlap);
  // A score that is NaN is no score.
  for (int64_t i = 0; i < static_cast<int64_t>(boxes.size()); ++i)
    if (params.has_threshold ? scores[i] > threshold : scores[i] == scores[i]) candidates.push_back(i);
  std::stable_sort(candidates.begin(), candidates.end(), [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  for (int64_t candidate : candidates) {
    if (static_cast<int64_t>(kept.size()) >= params.most) break;
    const Box& box = boxes[static_cast<size_t>(candidate)];
    const bool free = std::none_of(kept.begin(), kept.end(),
                                   [&](int64_t other) { return overlaps(box, boxes[static_cast<size_t>(other)], overlap); });
    if (free) kept.push_back(candidate);
  }
  return kept;
}

}  // namespace sparkle
