// From a picture to a network's input tensor and back: size, colour and scaling by options that print as one line.
#pragma once

#include <array>
#include <string>

#include "base/tensor.h"
#include "report/pictures/image.h"

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
  float pad_value = 114;  // letterbox: the picture lies at the top left, the rest has this pixel value

  int channels() const { return color == Color::grey ? 1 : 3; }
};

// The preset's values; size and colour are set by the caller. Errors: bad_usage naming the presets.
Result<Preprocess> preprocess_preset(const std::string& name);
// "RGB, shorter side to 256 (bilinear), centre crop 224x224, /255, minus (...), divided by (...)".
std::string to_text(const Preprocess& p);
// The shape that to_tensor() gives: NCHW, N = 1.
Dims tensor_shape(int width, int height, const Preprocess& p);
inline Dims tensor_shape(const Image& image, const Preprocess& p) { return tensor_shape(image.width, image.height, p); }
// fp32. Errors: out_of_memory.
Result<HostTensor> to_tensor(const Image& image, const Preprocess& p);
Result<HostTensor> to_tensor(const Rows& rows, const Preprocess& p);
// A 1xCxHxW fp32 tensor, C 1 or 3, times `scale`, as a picture.
Image to_image(const HostTensor& tensor, float scale);

}  // namespace sparkle
