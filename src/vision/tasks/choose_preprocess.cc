#include "vision/tasks/choose_preprocess.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "base/record.h"
#include "prepare/shape_advice.h"
#include "vision/tasks/guess_preprocess.h"

namespace sparkle {
namespace {

Error not_understood(const std::string& option, const std::string& text, const std::string& example) {
  return {Reason::bad_usage, option + " '" + text + "' is not understood; write " + example + "."};
}

// "W x H" or one number for both; 1 to 65536.
Result<std::pair<int, int>> parse_size(const std::string& option, const std::string& text) {
  const size_t x = text.find('x');
  int64_t width = 0, height = 0;
  const bool good = record_detail::parse_number(std::string_view(text).substr(0, x), width) &&
                    (x == std::string::npos || record_detail::parse_number(std::string_view(text).substr(x + 1), height));
  if (x == std::string::npos) height = width;
  if (!good || width < 1 || height < 1 || width > 65536 || height > 65536)
    return not_understood(option, text, "224 or 320x240");
  return std::pair(static_cast<int>(width), static_cast<int>(height));
}

// "0.5", "1/255"
bool parse_fraction(std::string_view text, float& value) {
  const size_t slash = text.find('/');
  double top = 0, bottom = 1;
  if (!record_detail::parse_number(text.substr(0, slash), top)) return false;
  if (slash != std::string_view::npos && !record_detail::parse_number(text.substr(slash + 1), bottom)) return false;
  value = static_cast<float>(top / bottom);
  return bottom != 0 && value - value == 0;
}

// One value for all channels or three with commas.
Status parse_channels(const std::string& option, const std::string& text, bool divisor, std::array<float, 3>& values) {
  if (text.empty()) return ok();
  std::istringstream stream(text);
  int count = 0;
  for (std::string part; std::getline(stream, part, ',') && count <= 3; ++count)
    if (count == 3 || !parse_fraction(part, values[static_cast<size_t>(count)]) ||
        (divisor && values[static_cast<size_t>(count)] == 0))
      return not_understood(option, text, "one number or three, as in 0.485,0.456,0.406");
  if (count == 1) values[1] = values[2] = values[0];
  if (count != 1 && count != 3) return not_understood(option, text, "one number or three, as in 0.485,0.456,0.406");
  return ok();
}

Status parse_fit(const PreprocessWords& words, PictureFit& fit) {
  if (words.fit == "crop") fit = PictureFit::crop;
  else if (words.fit == "stretch") fit = PictureFit::stretch;
  else if (words.fit == "letterbox") fit = PictureFit::letterbox;
  else if (words.fit == "none") fit = PictureFit::none;
  else if (!words.fit.empty()) return not_understood(words.dashes + "fit", words.fit, "crop, stretch, letterbox or none");
  return ok();
}

Status parse_color(const PreprocessWords& words, Color& color) {
  if (words.color == "rgb") color = Color::rgb;
  else if (words.color == "bgr") color = Color::bgr;
  else if (words.color == "grey" || words.color == "y") color = Color::grey;
  else if (!words.color.empty()) return not_understood(words.dashes + "color", words.color, "rgb, bgr, grey or y");
  return ok();
}

// Size of the tensor, and what a picture is resized to before it is cropped.
Status parse_sizes(const PreprocessWords& words, Preprocess& p) {
  int shorter_side = 0;
  if (!words.size.empty()) {
    SPARKLE_TRY(size, parse_size(words.dashes + "size", words.size));
    if (words.size.find('x') == std::string::npos) shorter_side = size.first;
    else p.width = size.first, p.height = size.second;
  }
  if (!words.crop.empty()) {
    SPARKLE_TRY(size, parse_size(words.dashes + "crop", words.crop));
    p.width = size.first, p.height = size.second;
  }
  if (shorter_side > 0 && p.width == 0) p.width = p.height = shorter_side;
  const int target = std::min(p.width, p.height);
  if (p.fit == PictureFit::crop) p.shorter_side = shorter_side > 0 ? shorter_side : usual_shorter_side(p);
  if (p.shorter_side > 0 && p.shorter_side < target)
    return Error{Reason::bad_usage,
                 words.dashes + "size " + words.size + " is smaller than the crop of " + std::to_string(target) + "."};
  return ok();
}

}  // namespace

Result<Preprocess> choose_preprocess(const SessionInput& input, const std::vector<OutputForm>& outputs,
                                     const std::map<std::string, std::string>& metadata, const PreprocessWords& words) {
  const auto wanted = picture_input(input.dtype, input.shape);
  if (!wanted)
    return Error{Reason::bad_input, "Input " + listed_inputs({input}) + " does not take a picture; give a .npy or .pb tensor."};
  SPARKLE_TRY(p, guess_preprocess(*wanted, input.dtype, outputs, metadata, words.preset));
  SPARKLE_CHECK(parse_fit(words, p.fit));
  SPARKLE_CHECK(parse_color(words, p.color));
  if (p.channels() != wanted->channels)
    return Error{Reason::bad_usage, words.dashes + "color " + words.color + " does not fit input '" + input.name +
                                        "', which has " + std::to_string(wanted->channels) + " channels."};
  SPARKLE_CHECK(parse_sizes(words, p));
  if (!words.scale.empty() && !parse_fraction(words.scale, p.scale))
    return not_understood(words.dashes + "scale", words.scale, "1/255 or 0.5");
  if (p.scale == 0)
    return Error{Reason::bad_usage, words.dashes + "scale 0 would make every pixel the same; write 1/255 or 0.5."};
  SPARKLE_CHECK(parse_channels(words.dashes + "mean", words.mean, false, p.mean));
  SPARKLE_CHECK(parse_channels(words.dashes + "std", words.std, true, p.std));
  if (!words.pad_value.empty() && !parse_fraction(words.pad_value, p.pad_value))
    return not_understood(words.dashes + (words.dashes.empty() ? "pad_value" : "pad-value"), words.pad_value,
                          "a number, as in 114");
  return p;
}

std::string preprocess_note(const Preprocess& p, const std::map<std::string, std::string>& metadata,
                            const PreprocessWords& words) {
  std::string note = p.preset + ", " + to_text(p);
  if (!words.preset.empty()) return note;
  if (metadata.count("Image.NominalPixelRange") || metadata.count("Image.BitmapPixelFormat"))
    return note + " (range or colours by the model's metadata)";
  for (const std::string* word : {&words.fit, &words.color, &words.scale, &words.mean, &words.std, &words.size, &words.crop})
    if (!word->empty()) return note;
  return note + " (a guess from the model's shapes; " + words.dashes + "preset says otherwise)";
}

}  // namespace sparkle
