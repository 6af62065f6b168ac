// From a picture to a network's input tensor and back: size, colour and scaling by options that print as one line.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "base/tensor.h"
#include "vision/pictures/image.h"

namespace sparkle {

enum class PictureFit : uint8_t { crop, stretch, letterbox, none };
enum class Color : uint8_t { rgb, bgr, grey };

// value = (pixel * scale - mean) / std; pixels are 0..255.
struct Preprocess {
  std::string preset = "imagenet";
  PictureFit fit = PictureFit::crop;
  Color color = Color::rgb;
  int width = 0, height = 0;  // of the tensor; 0: the picture's own
  int shorter_side = 0;       // fit crop: resized to this before cropping; 0: just large enough
  float scale = 1;
  std::array<float, 3> mean{0, 0, 0}, std{1, 1, 1};
  float pad_value = 114;       // letterbox: the rest has this pixel value
  bool centred = false;        // letterbox: in the middle, else at the top left
  bool channels_last = false;  // NHWC, else NCHW
  bool batched = true;         // a leading axis of 1, N; else CHW or HWC
  DType type = DType::f32;     // or u8: rounded to 0..255

  int channels() const { return color == Color::grey ? 1 : 3; }
};

// The preset's values; size and colour are set by the caller. Errors: bad_usage naming the presets.
Result<Preprocess> preprocess_preset(const std::string& name);
// "RGB, shorter side to 256 (bilinear), centre crop 224x224, /255, minus (...), divided by (...)".
std::string to_text(const Preprocess& p);
// The presets' names, for sentences: "imagenet, unit, ...".
std::string preset_names();

// How an input of a model takes a picture, floats or bytes: four axes, 1 or 3 channels first or last; or three of them, without
// that of the batch, as torchvision's detectors do, and 3 channels.
struct PictureInput {
  int channels = 3;
  int width = 0, height = 0;  // 0: open
  bool channels_last = false, batched = true;
};
// Nothing where it does not. Sizes of `shape` below 0 are open.
std::optional<PictureInput> picture_input(DType type, const Dims& shape);

// The shape that to_tensor() gives: N = 1, where there is one.
Dims tensor_shape(int width, int height, const Preprocess& p);
// Of that shape the axis of the height, before that of the width.
inline int height_axis(const Preprocess& p) { return (p.batched ? 1 : 0) + (p.channels_last ? 0 : 1); }
inline Dims tensor_shape(const Image& image, const Preprocess& p) { return tensor_shape(image.width, image.height, p); }
// Of p.type. Errors: out_of_memory.
Result<HostTensor> to_tensor(const Image& image, const Preprocess& p);
Result<HostTensor> to_tensor(const Rows& rows, const Preprocess& p);
// A 1xCxHxW fp32 tensor, C 1 or 3, times `scale`, as a picture.
Image to_image(const HostTensor& tensor, float scale);

}  // namespace sparkle
