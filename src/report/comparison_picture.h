// A picture that shows an enlargement beside a plain one: both whole, and below a detail of each magnified.
#pragma once

#include "report/image.h"

namespace sparkle {

// `plain` and `better` have one size. Left is `plain`, right is `better`.
Image comparison_picture(const Image& plain, const Image& better);

}  // namespace sparkle
