// How a camera was held: the Orientation of EXIF (tag 0x0112, values 1 to 8), and pictures turned as it says.
#pragma once

#include <cstddef>
#include <span>

#include "vision/pictures/picture.h"

namespace sparkle {

// Of an EXIF block, which is a TIFF header with directories; 1, upright, where it says nothing that can be understood.
int exif_orientation(std::span<const std::byte> exif);
// The picture as it is to be looked at; orientations 5 to 8 swap width and height.
Picture turned_upright(Picture picture, int orientation);

}  // namespace sparkle
