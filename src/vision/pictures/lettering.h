// Captions in pictures: a small bitmap font of capitals, digits and signs, drawn for this project, 5 by 7 pixels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vision/pictures/image.h"

namespace sparkle {

inline constexpr int kLetterWidth = 6, kLineHeight = 10;  // with the space to the next, at scale 1

// Whether the font has a letter; small letters are drawn as capitals, what is missing as a box.
bool has_letter(char letter);
// Dark on what is there, from the upper left corner (x, y) on; what lies outside the picture is left out.
void draw_text(Image& image, int x, int y, int scale, std::string_view text);
// Lines of at most `width` letters, broken at spaces; longer words stay whole.
std::vector<std::string> wrap(std::string_view text, int width);

}  // namespace sparkle
