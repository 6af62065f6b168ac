#include "vision/tasks/guess_preprocess.h"

#include <algorithm>

namespace sparkle {
namespace {

constexpr int kSideOfRtdetr = 640;

std::string guessed(const PictureInput& input, DType type, const std::vector<OutputForm>& outputs) {
  const std::string known = guess_preset(outputs, input.width, input.height);
  if (!known.empty() && input.channels == 3 && !(type == DType::u8 && known == "unit")) return known;
  if (type == DType::u8) return "raw";
  return input.channels == 1 || input.width == 0 ? "unit" : "imagenet";
}

// The order of colours, and the range of values (docs of the ONNX format).
void apply_metadata(const std::map<std::string, std::string>& metadata, Preprocess& p) {
  const auto said = [&](const char* key) {
    const auto at = metadata.find(key);
    return at == metadata.end() ? std::string() : at->second;
  };
  const std::string format = said("Image.BitmapPixelFormat"), range = said("Image.NominalPixelRange");
  if (format == "Bgr8") p.color = Color::bgr;
  if (format == "Rgb8") p.color = Color::rgb;
  if (range.empty()) return;
  p.mean = {0, 0, 0}, p.std = {1, 1, 1}, p.scale = 1;
  if (range == "Normalized_0_1") p.scale = 1.f / 255;
  if (range == "Normalized_1_1") p.scale = 1.f / 127.5f, p.mean = {1, 1, 1};
}

}  // namespace

Result<Preprocess> guess_preprocess(const PictureInput& input, DType type, const std::vector<OutputForm>& outputs,
                                    const std::map<std::string, std::string>& metadata, const std::string& preset) {
  SPARKLE_TRY(p, preprocess_preset(!preset.empty() ? preset : guessed(input, type, outputs)));
  // Bytes are what pixels are; what a detector wants beyond that is in its graph.
  if (preset.empty() && type == DType::u8) p.scale = 1, p.mean = {0, 0, 0}, p.std = {1, 1, 1};
  if (preset.empty()) apply_metadata(metadata, p);
  p.channels_last = input.channels_last, p.batched = input.batched;
  if (type == DType::u8) p.type = DType::u8;
  if (input.channels == 1) p.color = Color::grey;
  if (input.channels == 1 && p.preset == "imagenet") p.mean[0] = 0.449f, p.std[0] = 0.226f;  // means over the three colours
  p.height = input.height, p.width = input.width;
  if (p.preset == "rtdetr" && p.width == 0) p.width = p.height = kSideOfRtdetr;  // the one that they are trained with
  return p;
}

int usual_shorter_side(const Preprocess& p) {
  const int target = std::min(p.width, p.height);
  return p.preset == "imagenet" && target >= 128 ? (target * 8 + 3) / 7 : 0;
}

}  // namespace sparkle
