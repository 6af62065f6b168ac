#include "vision/pictures/resample.h"

#include <algorithm>
#include <cmath>

namespace sparkle {
namespace {

struct LineTaps {
  std::vector<int> first;  // per output sample
  std::vector<int> count;
  std::vector<float> weights;  // `widest` per output sample
  int widest = 0;
};

double weight(Filter filter, double x) {
  x = std::abs(x);
  if (filter == Filter::bilinear) return x < 1 ? 1 - x : 0;
  constexpr double a = -0.5;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

LineTaps line_taps(int in, int out, Filter filter) {
  LineTaps taps;
  const double scale = static_cast<double>(in) / out;
  const double stretch = filter == Filter::nearest ? 1 : std::max(1.0, scale);
  const double support = (filter == Filter::bicubic ? 2.0 : 1.0) * stretch;
  taps.widest = filter == Filter::nearest ? 1 : static_cast<int>(std::ceil(support)) * 2 + 1;
  taps.weights.assign(static_cast<size_t>(out) * taps.widest, 0.f);
  for (int o = 0; o < out; ++o) {
    const double centre = (o + 0.5) * scale;
    float* w = taps.weights.data() + static_cast<size_t>(o) * taps.widest;
    if (filter == Filter::nearest) {
      taps.first.push_back(std::min(in - 1, static_cast<int>(centre)));
      taps.count.push_back(1);
      w[0] = 1;
      continue;
    }
    const int begin = std::max(0, static_cast<int>(centre - support + 0.5));
    const int end = std::clamp(static_cast<int>(centre + support + 0.5), begin + 1, std::min(in, begin + taps.widest));
    double sum = 0;
    for (int i = begin; i < end; ++i) sum += weight(filter, (i + 0.5 - centre) / stretch);
    for (int i = begin; i < end; ++i) w[i - begin] = static_cast<float>(weight(filter, (i + 0.5 - centre) / stretch) / sum);
    taps.first.push_back(begin);
    taps.count.push_back(end - begin);
  }
  return taps;
}

}  // namespace

Image resample(const Image& image, int width, int height, Filter filter) {
  return width == image.width && height == image.height ? image : resample(rows_of(image), width, height, filter);
}

Image resample(const Rows& image, int width, int height, Filter filter) {
  const int channels = image.channels;
  if (width == image.width && height == image.height) {
    Image same = Image::filled(width, height, channels, 0);
    for (int y = 0; y < height; ++y) std::copy_n(image.row(y), static_cast<size_t>(width) * channels, same.at(0, y));
    return same;
  }
  const LineTaps across = line_taps(image.width, width, filter), down = line_taps(image.height, height, filter);
  Image middle = Image::filled(width, image.height, channels, 0);
  for (int y = 0; y < image.height; ++y) {
    const float* line = image.row(y);
    for (int x = 0; x < width; ++x) {
      const float* w = across.weights.data() + static_cast<size_t>(x) * across.widest;
      const float* from = line + static_cast<ptrdiff_t>(across.first[x]) * channels;
      float* to = middle.at(x, y);
      for (int t = 0; t < across.count[x]; ++t)
        for (int c = 0; c < channels; ++c) to[c] += w[t] * from[t * channels + c];
    }
  }
  Image result = Image::filled(width, height, channels, 0);
  const int row = width * channels;
  for (int y = 0; y < height; ++y) {
    float* to = result.at(0, y);
    for (int t = 0; t < down.count[y]; ++t) {
      const float w = down.weights[static_cast<size_t>(y) * down.widest + t];
      const float* from = middle.at(0, down.first[y] + t);
      for (int i = 0; i < row; ++i) to[i] += w * from[i];
    }
    for (int i = 0; i < row; ++i) to[i] = std::clamp(to[i], 0.f, 255.f);
  }
  return result;
}

double luma_psnr(const Image& a, const Image& b, int border) {
  const Image x = to_grey(a), y = to_grey(b);
  double sum = 0;
  int64_t count = 0;
  for (int row = border; row < x.height - border; ++row)
    for (int column = border; column < x.width - border; ++column, ++count) {
      const double d = static_cast<double>(*x.at(column, row)) - static_cast<double>(*y.at(column, row));
      sum += d * d;
    }
  return count > 0 ? 10 * std::log10(255.0 * 255.0 * static_cast<double>(count) / std::max(sum, 1e-12)) : 0;
}

}  // namespace sparkle
