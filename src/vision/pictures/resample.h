// Resizing pictures by separable filters that widen when shrinking (antialiased), as Pillow's filters of these names do.
#pragma once

#include "vision/pictures/image.h"

namespace sparkle {

enum class Filter : uint8_t { nearest, bilinear, bicubic };  // bicubic: Keys, a = -0.5

Image resample(const Image& image, int width, int height, Filter filter);
// Beside the result this keeps one picture as wide as the result and as high as the rows are many.
Image resample(const Rows& rows, int width, int height, Filter filter);

// Peak signal to noise of luma in dB; a border is left out. Pictures of one size.
double luma_psnr(const Image& a, const Image& b, int border);

}  // namespace sparkle
