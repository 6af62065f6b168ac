#include "vision/pictures/comparison_picture.h"

#include <algorithm>
#include <cmath>

#include "vision/pictures/lettering.h"
#include "vision/pictures/resample.h"

namespace sparkle {
namespace {

constexpr int kPanel = 960;  // widest panel
constexpr int kMagnify = 4;  // of the detail, pixels shown as squares
constexpr int kGap = 8;
constexpr float kPaper = 250;
constexpr int kLargeLetters = 480;  // panels from this width on have captions twice as large

struct Rectangle {
  int x = 0, y = 0, width = 0, height = 0;
};

// Where the two differ most: there the eye finds something to compare.
Rectangle detail_box(const Image& a, const Image& b, int width, int height) {
  Rectangle best{0, 0, width, height};
  double most = -1;
  for (int y = 0; y + height <= a.height; y += std::max(1, height / 2))
    for (int x = 0; x + width <= a.width; x += std::max(1, width / 2)) {
      double sum = 0;
      for (int row = y; row < y + height; row += 2)
        for (int column = x; column < x + width; column += 2) {
          const double d = static_cast<double>(*a.at(column, row)) - static_cast<double>(*b.at(column, row));
          sum += d * d;
        }
      if (sum > most) most = sum, best.x = x, best.y = y;
    }
  return best;
}

void frame(Image& image, const Rectangle& box) {
  for (int ring = 0; ring < 2; ++ring)
    for (int y = box.y - ring; y <= box.y + box.height + ring; ++y)
      for (int x = box.x - ring; x <= box.x + box.width + ring; ++x) {
        const bool edge =
            y == box.y - ring || y == box.y + box.height + ring || x == box.x - ring || x == box.x + box.width + ring;
        if (!edge || x < 0 || y < 0 || x >= image.width || y >= image.height) continue;
        constexpr float color[3] = {255, 196, 0};
        std::copy_n(color, 3, image.at(x, y));
      }
}

}  // namespace

Image comparison_picture(const Image& plain_any, const Image& better_any, const Captions& captions) {
  const Image sources[2] = {to_rgb(plain_any), to_rgb(better_any)};
  const int width = std::min(kPanel, sources[0].width);
  const int height =
      std::max(1, static_cast<int>(std::lround(static_cast<double>(sources[0].height) * width / sources[0].width)));
  const double shrink = static_cast<double>(width) / sources[0].width;
  const int detail_w = std::clamp(width / kMagnify, 1, sources[0].width);
  const int detail_h = std::clamp(height / kMagnify, 1, sources[0].height);
  const Rectangle box = detail_box(sources[0], sources[1], detail_w, detail_h);
  const int letters = width >= kLargeLetters ? 2 : 1;  // scale of the font
  const int columns = width / (kLetterWidth * letters), line = kLineHeight * letters;
  const std::vector<std::string> text[2] = {wrap(captions.plain, columns), wrap(captions.better, columns)};
  const int head = kGap + static_cast<int>(std::max(text[0].size(), text[1].size())) * line;
  Image canvas = Image::filled(2 * width + 3 * kGap, head + height + detail_h * kMagnify + 2 * kGap, 3, kPaper);
  for (int side = 0; side < 2; ++side) {
    Image whole = resample(sources[side], width, height, Filter::bicubic);
    const auto scaled = [shrink](int v) { return static_cast<int>(v * shrink); };
    frame(whole, {scaled(box.x), scaled(box.y), scaled(box.width), scaled(box.height)});
    const int x = kGap + side * (width + kGap);
    for (size_t i = 0; i < text[side].size(); ++i)
      draw_text(canvas, x, kGap + static_cast<int>(i) * line, letters, text[side][i]);
    paste(canvas, whole, x, head);
    const Image detail = crop(sources[side], box.x, box.y, box.width, box.height);
    const Image magnified = resample(detail, detail_w * kMagnify, detail_h * kMagnify, Filter::nearest);
    paste(canvas, magnified, x, head + height + kGap);
  }
  return canvas;
}

}  // namespace sparkle
