// Answers drawn: boxes with their names, masks as colours over the picture, and a legend below it.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/text/format.h"
#include "vision/pictures/lettering.h"
#include "vision/tasks/answer.h"

namespace sparkle {
namespace {

constexpr float kPaper = 250, kOver = 0.55f;  // of the mask's colour over the picture
constexpr int kGap = 4, kMostLegend = 40;

// Far apart for neighbouring classes: hues in steps of the golden ratio.
std::array<float, 3> color_of(int label) {
  const float hue = std::fmod(0.02f + static_cast<float>(label) * 0.618034f, 1.f) * 6;
  const auto channel = [&](float shift) {
    const float k = std::fmod(hue + shift, 6.f);
    return 255 * (1 - 0.85f * std::clamp(std::min(k, 4 - k), 0.f, 1.f));
  };
  return {channel(5), channel(3), channel(1)};
}

void fill(Image& image, int x0, int y0, int x1, int y1, const std::array<float, 3>& color) {
  for (int y = std::max(0, y0); y < std::min(image.height, y1); ++y)
    for (int x = std::max(0, x0); x < std::min(image.width, x1); ++x) std::copy_n(color.data(), 3, image.at(x, y));
}

void draw_boxes(Image& image, const Answer& a, const std::vector<std::string>& names, int letters, int line) {
  for (size_t i = a.boxes.size(); i-- > 0;) {  // the best on top
    const FoundBox& b = a.boxes[i];
    const auto color = color_of(b.label);
    const int x0 = static_cast<int>(b.x0), y0 = static_cast<int>(b.y0), x1 = static_cast<int>(b.x1),
              y1 = static_cast<int>(b.y1);
    fill(image, x0, y0, x1, y0 + line, color), fill(image, x0, y1 - line, x1, y1, color);
    fill(image, x0, y0, x0 + line, y1, color), fill(image, x1 - line, y0, x1, y1, color);
    const std::string text = names[i] + format(" %.0f %%", 100.0 * static_cast<double>(b.score));
    const int high = kLineHeight * letters + kGap, wide = static_cast<int>(text.size()) * kLetterWidth * letters + kGap;
    const int top = y0 >= high ? y0 - high : y0;
    fill(image, x0, top, x0 + wide, top + high, color);
    draw_text(image, x0 + kGap / 2, top + kGap, letters, text);
  }
}

}  // namespace

Image picture_of_mask(const Mask& mask) {
  Image image = Image::filled(mask.width, mask.height, 1, 0);
  for (size_t i = 0; i < mask.classes.size(); ++i) image.pixels[i] = std::min<float>(mask.classes[i], 255);
  return image;
}

Image draw_answer(const Image& picture, const Answer& a, const std::vector<std::string>& labels) {
  if (a.task == Task::upscale) return a.picture;
  if (a.task == Task::depth) {
    Image grey = a.picture;
    const float range = a.most > a.least ? a.most - a.least : 1;
    for (float& v : grey.pixels) v = (v - a.least) / range * 255;
    return grey;
  }
  Image image = to_rgb(picture);
  if (a.task != Task::detect && a.task != Task::segment) return image;
  const auto name = [&](int label) {
    return label < static_cast<int>(labels.size()) ? labels[static_cast<size_t>(label)] : "class " + std::to_string(label);
  };
  const int letters = std::clamp(std::min(image.width, image.height) / 300, 1, 8);
  std::map<int, std::string> legend;
  if (a.task == Task::detect) {
    std::vector<std::string> names;
    std::map<int, int> counts;
    for (const FoundBox& b : a.boxes) names.push_back(name(b.label)), ++counts[b.label];
    draw_boxes(image, a, names, letters, std::max(2, letters * 2));
    for (const auto& [label, count] : counts) legend[label] = name(label) + " " + std::to_string(count);
  } else if (a.mask.width == image.width && a.mask.height == image.height) {
    std::map<int, double> counts;
    for (size_t i = 0; i < a.mask.classes.size(); ++i) {
      const int c = a.mask.classes[i];
      counts[c] += 1;
      if (c == 0) continue;  // background stays as it is
      const auto color = color_of(c);
      for (size_t k = 0; k < 3; ++k) image.pixels[3 * i + k] = image.pixels[3 * i + k] * (1 - kOver) + color[k] * kOver;
    }
    for (const auto& [label, count] : counts)
      legend[label] = name(label) + format(" %.1f %%", 100 * count / static_cast<double>(a.mask.classes.size()));
  }
  while (legend.size() > kMostLegend) legend.erase(std::prev(legend.end()));
  const int row = kLineHeight * letters + kGap;
  Image canvas = Image::filled(image.width, image.height + static_cast<int>(legend.size()) * row, 3, kPaper);
  paste(canvas, image, 0, 0);
  int y = image.height;
  for (const auto& [label, text] : legend) {
    const bool background = a.task == Task::segment && label == 0;
    fill(canvas, kGap, y + kGap / 2, kGap + row, y + row - kGap / 2,
         background ? std::array<float, 3>{kPaper, kPaper, kPaper} : color_of(label));
    draw_text(canvas, 2 * kGap + row, y + kGap, letters, text);
    y += row;
  }
  return canvas;
}

}  // namespace sparkle
