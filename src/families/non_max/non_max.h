// The non_max family: of boxes that overlap the one with the highest score stays (non-maximum suppression), per image and
// class. Operands: boxes f32 [images, boxes, 4], scores f32 [images, classes, boxes] -> rows i64 [most, 3] of image, class,
// box, in this order, best score first; rows beyond those found hold -1. Of equal scores the lower box comes first.
#pragma once

#include <span>
#include <vector>

#include "base/record.h"
#include "base/tensor.h"

namespace sparkle {

struct NonMaxParams {
  bool centers = false;  // boxes are x, y of the centre, width, height; else two opposite corners y, x, y, x
  int64_t most = 0;      // boxes per image and class
  double overlap = 0;    // suppressed beyond this intersection over union
  bool has_threshold = false;
  double threshold = 0;  // boxes need a higher score than this, if has_threshold

  template <class V>
  void visit(V& v) {
    v("centers", centers), v("most", most), v("overlap", overlap), v("has_threshold", has_threshold), v("threshold", threshold);
  }
  friend bool operator==(const NonMaxParams&, const NonMaxParams&) = default;
};

struct Box {
  float top, left, bottom, right;
};
Box box_of(const NonMaxParams& params, const float* four);
// Whether the intersection over union of two boxes exceeds `overlap`; boxes without area overlap nothing.
bool overlaps(const Box& a, const Box& b, float overlap);
// The boxes that stay, best first, of one image and class.
std::vector<int64_t> kept_boxes(const NonMaxParams& params, std::span<const Box> boxes, const float* scores);

}  // namespace sparkle
