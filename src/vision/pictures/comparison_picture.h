// A picture that shows an enlargement beside a plain one: both whole under a caption, and below a detail of each magnified.
#pragma once

#include "vision/pictures/image.h"

namespace sparkle {

// What stands above each side.
struct Captions {
  std::string plain, better;
};

// `plain` and `better` have one size. Left is `plain`, right is `better`.
Image comparison_picture(const Image& plain, const Image& better, const Captions& captions);

}  // namespace sparkle
