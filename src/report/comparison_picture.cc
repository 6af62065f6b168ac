#include "report/comparison_picture.h"

#include <algorithm>
#include <cmath>

#include "report/resample.h"

namespace sparkle {
namespace {

constexpr int kPanel = 960;  // widest panel
constexpr int kMagnify = 4;  // of the detail, pixels shown as squares
constexpr int kGap = 8;
constexpr float kPaper = 250;

struct Box {
  int x = 0, y = 0, width = 0, height = 0;
};

// Where the two differ most: there the eye finds something to compare.
Box detail_box(const Image& a, const Image& b, int width, int height) {
  Box best{0, 0, width, height};
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

void frame(Image& image, const Box& box) {
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

Image comparison_picture(const Image& plain_any, const Image& better_any) {
  const Image sources[2] = {to_rgb(plain_any), to_rgb(better_any)};
  const int width = std::min(kPanel, sources[0].width);
  const int height =
      std::max(1, static_cast<int>(std::lround(static_cast<double>(sources[0].height) * width / sources[0].width)));
  const double shrink = static_cast<double>(width) / sources[0].width;
  const int detail_w = std::clamp(width / kMagnify, 1, sources[0].width);
  const int detail_h = std::clamp(height / kMagnify, 1, sources[0].height);
  const Box box = detail_box(sources[0], sources[1], detail_w, detail_h);
  Image canvas = Image::filled(2 * width + 3 * kGap, height + detail_h * kMagnify + 3 * kGap, 3, kPaper);
  for (int side = 0; side < 2; ++side) {
    Image whole = resample(sources[side], width, height, Filter::bicubic);
    const auto scaled = [shrink](int v) { return static_cast<int>(v * shrink); };
    frame(whole, {scaled(box.x), scaled(box.y), scaled(box.width), scaled(box.height)});
    const int x = kGap + side * (width + kGap);
    paste(canvas, whole, x, kGap);
    const Image detail = crop(sources[side], box.x, box.y, box.width, box.height);
    const Image magnified = resample(detail, detail_w * kMagnify, detail_h * kMagnify, Filter::nearest);
    paste(canvas, magnified, x, height + 2 * kGap);
  }
  return canvas;
}

}  // namespace sparkle
