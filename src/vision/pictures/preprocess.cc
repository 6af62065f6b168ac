#include "vision/pictures/preprocess.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/system/out_of_memory.h"
#include "vision/pictures/resample.h"

namespace sparkle {
namespace {

std::string number(float v) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", static_cast<double>(v));
  return text;
}

std::string per_channel(const std::array<float, 3>& v, int channels) {
  if (channels == 1 || (v[0] == v[1] && v[1] == v[2])) return number(v[0]);
  return "(" + number(v[0]) + ", " + number(v[1]) + ", " + number(v[2]) + ")";
}

bool whole(const Preprocess& p) { return p.fit == PictureFit::none || p.width == 0 || p.height == 0; }

// Grey or RGB, as the network takes it.
Rows colored(const Rows& rows, bool grey) {
  const int channels = grey ? 1 : 3;
  if (rows.channels == channels) return rows;
  return {
      rows.width, rows.height, channels,
      [rows, grey, line = std::vector<float>(static_cast<size_t>(rows.width) * static_cast<size_t>(channels))](int y) mutable {
        const float* from = rows.row(y);
        if (grey)
          for (size_t x = 0; x < line.size(); ++x, from += 3) line[x] = luma(from);
        else
          for (size_t i = 0; i < line.size(); ++i) line[i] = from[i / 3];
        return static_cast<const float*>(line.data());
      }};
}

Rows cropped(const Rows& rows, int x, int y, int width, int height) {
  return {width, height, rows.channels, [rows, x, y](int line) { return rows.row(y + line) + ptrdiff_t{x} * rows.channels; }};
}

// The part of the picture that the network sees, in its size; not for the whole in its own.
Image fitted(const Rows& image, const Preprocess& p) {
  if (p.fit == PictureFit::stretch) return resample(image, p.width, p.height, Filter::bilinear);
  const double across = static_cast<double>(p.width) / image.width, down = static_cast<double>(p.height) / image.height;
  if (p.fit == PictureFit::letterbox) {
    const double factor = std::min(across, down);
    const auto size = [factor](int from, int most) { return std::clamp(static_cast<int>(from * factor), 1, most); };
    Image canvas = Image::filled(p.width, p.height, image.channels, p.pad_value);
    const Image part = resample(image, size(image.width, p.width), size(image.height, p.height), Filter::bilinear);
    paste(canvas, part, p.centred ? (p.width - part.width) / 2 : 0, p.centred ? (p.height - part.height) / 2 : 0);
    return canvas;
  }
  double factor = std::max(across, down);
  if (p.shorter_side > 0) factor *= std::max(1.0, static_cast<double>(p.shorter_side) / std::min(p.width, p.height));
  // Only the part that the crop keeps is resized, so a picture of 1 x 10,000 pixels costs no more than others.
  const int keep_w = std::clamp(static_cast<int>(std::ceil(p.width / factor)) + 8, 1, image.width);
  const int keep_h = std::clamp(static_cast<int>(std::ceil(p.height / factor)) + 8, 1, image.height);
  const bool extreme = image.width * factor > 16384 || image.height * factor > 16384;
  const Rows part = extreme ? cropped(image, (image.width - keep_w) / 2, (image.height - keep_h) / 2, keep_w, keep_h) : image;
  const int w = std::max(p.width, static_cast<int>(std::lround(part.width * factor)));
  const int h = std::max(p.height, static_cast<int>(std::lround(part.height * factor)));
  return crop(resample(part, w, h, Filter::bilinear), (w - p.width) / 2, (h - p.height) / 2, p.width, p.height);
}

}  // namespace

Result<Preprocess> preprocess_preset(const std::string& name) {
  Preprocess p;
  p.preset = name;
  if (name == "imagenet") {
    p.scale = 1.f / 255;
    p.mean = {0.485f, 0.456f, 0.406f};
    p.std = {0.229f, 0.224f, 0.225f};
  } else if (name == "unit") {
    p.scale = 1.f / 255;
  } else if (name == "mobilenet") {
    p.scale = 1.f / 127.5f;
    p.mean = {1, 1, 1};
  } else if (name == "ultraface") {
    p.fit = PictureFit::stretch;
    p.mean = {127, 127, 127};
    p.std = {128, 128, 128};
  } else if (name == "yolox") {
    p.fit = PictureFit::letterbox;
    p.color = Color::bgr;
  } else if (name == "yolo") {
    p.fit = PictureFit::letterbox;
    p.centred = true;
    p.scale = 1.f / 255;
  } else if (name == "yolov10") {
    p.fit = PictureFit::letterbox;
    p.centred = true;
    p.scale = 1.f / 255;
  } else if (name == "detr") {
    p.fit = PictureFit::stretch;
    p.scale = 1.f / 255;
    p.mean = {0.485f, 0.456f, 0.406f};
    p.std = {0.229f, 0.224f, 0.225f};
  } else if (name == "rtdetr" || name == "torchvision") {
    p.fit = PictureFit::stretch;
    p.scale = 1.f / 255;
  } else if (name == "deeplab") {
    p.fit = PictureFit::stretch;
    p.scale = 1.f / 127.5f;
    p.mean = {1, 1, 1};
  } else if (name != "raw") {
    return Error{Reason::bad_usage, "There is no preset '" + name + "'; use " + preset_names() + "."};
  }
  return p;
}

std::string preset_names() {
  return "imagenet, unit, raw, mobilenet, ultraface, yolox, yolo, yolov10, detr, rtdetr, torchvision or deeplab";
}

std::optional<PictureInput> picture_input(DType type, const Dims& shape) {
  constexpr int64_t kMost = 65536;
  const bool batched = shape.size() == 4;
  if ((!is_float(type) && type != DType::u8) || (!batched && shape.size() != 3) || (batched && shape[0] > 1)) return {};
  // Three axes of which one is 1 are rather a sequence.
  const auto channels = [&](int axis) { return (batched && shape[axis] == 1) || shape[axis] == 3; };
  const int first = batched ? 1 : 0;
  const bool last = !channels(first) && channels(first + 2);
  if (!channels(last ? first + 2 : first)) return {};
  const int64_t height = shape[last ? first : first + 1], width = shape[last ? first + 1 : first + 2];
  if (height > kMost || width > kMost) return {};
  const bool open = height <= 0 || width <= 0;
  return PictureInput{static_cast<int>(shape[last ? first + 2 : first]), open ? 0 : static_cast<int>(width),
                      open ? 0 : static_cast<int>(height), last, batched};
}

std::string to_text(const Preprocess& p) {
  constexpr const char* colors[] = {"RGB", "BGR", "grey (luma)"};
  std::string s = colors[static_cast<int>(p.color)];
  const std::string size = std::to_string(p.width) + "x" + std::to_string(p.height);
  if (p.fit == PictureFit::none || p.width == 0) {
    s += ", size as it is";
  } else if (p.fit == PictureFit::stretch) {
    s += ", stretched to " + size + " (bilinear)";
  } else if (p.fit == PictureFit::letterbox) {
    s += ", fitted into " + size + (p.centred ? " in the middle" : " at the top left") + " (bilinear), rest " +
         number(p.pad_value);
  } else {
    s += ", " + (p.shorter_side > 0 ? "shorter side to " + std::to_string(p.shorter_side) : "resized to cover") +
         " (bilinear), centre crop " + size;
  }
  if (p.scale == 1.f) {
    s += ", values 0..255";
  } else {
    s += p.scale < 1 ? ", /" + number(1 / p.scale) : ", times " + number(p.scale);
  }
  if (p.mean != std::array<float, 3>{0, 0, 0}) s += ", minus " + per_channel(p.mean, p.channels());
  if (p.std != std::array<float, 3>{1, 1, 1}) s += ", divided by " + per_channel(p.std, p.channels());
  return s + (p.type == DType::u8 ? ", bytes" : "") + (p.batched ? ", N" : ", ") + (p.channels_last ? "HWC" : "CHW");
}

Dims tensor_shape(int width, int height, const Preprocess& p) {
  const int64_t h = whole(p) ? height : p.height, w = whole(p) ? width : p.width;
  if (!p.batched) return p.channels_last ? Dims{h, w, p.channels()} : Dims{p.channels(), h, w};
  return p.channels_last ? Dims{1, h, w, p.channels()} : Dims{1, p.channels(), h, w};
}

namespace {

Result<HostTensor> converted(const Rows& rows, const Preprocess& p) {
  Rows sized = colored(rows, p.color == Color::grey);
  Image resized;
  if (!whole(p)) {
    resized = fitted(sized, p);
    sized = rows_of(resized);
  }
  const int channels = p.channels();
  SPARKLE_TRY(tensor, allocate_tensor(p.type, tensor_shape(sized.width, sized.height, p), "The picture"));
  const auto width = static_cast<size_t>(sized.width), plane = width * static_cast<size_t>(sized.height);
  const size_t step = p.channels_last ? static_cast<size_t>(channels) : 1, apart = p.channels_last ? 1 : plane;
  for (int y = 0; y < sized.height; ++y) {
    const float* line = sized.row(y);
    for (int c = 0; c < channels; ++c) {
      const int from = p.color == Color::bgr ? 2 - c : c;
      const size_t first = static_cast<size_t>(c) * apart + static_cast<size_t>(y) * width * step;
      const auto value = [&](size_t x) { return (line[x * channels + from] * p.scale - p.mean[c]) / p.std[c]; };
      if (p.type == DType::u8) {
        auto* to = tensor.data<uint8_t>() + first;
        for (size_t x = 0; x < width; ++x) to[x * step] = static_cast<uint8_t>(std::clamp(std::round(value(x)), 0.f, 255.f));
      } else {
        float* to = tensor.data<float>() + first;
        for (size_t x = 0; x < width; ++x) to[x * step] = value(x);
      }
    }
  }
  return tensor;
}

}  // namespace

Result<HostTensor> to_tensor(const Rows& rows, const Preprocess& p) {
  return guard_memory("The picture in this size", [&] { return converted(rows, p); });
}

Result<HostTensor> to_tensor(const Image& image, const Preprocess& p) { return to_tensor(rows_of(image), p); }

Image to_image(const HostTensor& tensor, float scale) {
  const int channels = static_cast<int>(tensor.shape[1]);
  Image image = Image::filled(static_cast<int>(tensor.shape[3]), static_cast<int>(tensor.shape[2]), channels, 0);
  const size_t plane = image.pixels.size() / channels;
  for (int c = 0; c < channels; ++c)
    for (size_t i = 0; i < plane; ++i) image.pixels[i * channels + c] = tensor.data<float>()[c * plane + i] * scale;
  return image;
}

}  // namespace sparkle
