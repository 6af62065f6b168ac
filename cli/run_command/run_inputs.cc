// Inputs of `sparkle run`: tensor files, and how pictures become tensors.
#include <algorithm>
#include <sstream>

#include "run_command/model_inputs.h"
#include "onnx/npy.h"
#include "onnx/tensor_file.h"
#include "base/printable.h"
#include "vision/tasks/guess_preprocess.h"
#include "vision/decoders/npz.h"
#include "run_command/run_options.h"
#include "vision/tasks/task.h"

namespace sparkle::cli {
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

}  // namespace

bool is_tensor_file(const std::string& path) {
  return path.ends_with(".npy") || path.ends_with(".npz") || path.ends_with(".pb");
}

Result<HostTensor> read_tensor_file(const std::string& path) {
  if (path.ends_with(".npy")) return read_npy(path);
  if (path.ends_with(".npz")) {
    SPARKLE_TRY(arrays, read_npz(path));
    if (arrays.size() == 1) return std::move(arrays[0].value);
    std::string names;
    for (const NamedTensor& array : arrays) names += (names.empty() ? "'" : ", '") + printable(array.name) + "'";
    return Error{Reason::bad_input, "'" + path + "' holds " + std::to_string(arrays.size()) + " arrays (" + names +
                                        "), and one is wanted here; save it alone."};
  }
  SPARKLE_TRY(tensor, read_tensor_pb(path));
  return std::move(tensor.value);
}

Result<std::vector<HostTensor>> read_inputs_together(const std::string& path, const std::vector<SessionInput>& inputs) {
  SPARKLE_TRY(arrays, read_npz(path));
  std::vector<HostTensor> tensors;
  for (const SessionInput& input : inputs) {
    const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const NamedTensor& a) { return a.name == input.name; });
    if (found == arrays.end())
      return Error{Reason::bad_input,
                   "'" + path + "' has no array '" + input.name + "'; the model wants " + listed_inputs(inputs) + "."};
    tensors.push_back(std::move(found->value));
  }
  return tensors;
}

std::string preprocess_note(const Preprocess& p, const RunOptions& o) {
  std::string note = p.preset + ", " + to_text(p);
  if (!o.preset.empty()) return note;
  if (o.metadata.count("Image.NominalPixelRange") || o.metadata.count("Image.BitmapPixelFormat"))
    return note + " (range or colours by the model's metadata)";
  for (const char* option : {"--fit", "--color", "--scale", "--mean", "--std", "--size", "--crop"})
    if (o.command && given(*o.command, option)) return note;
  return note + " (a guess from the model's shapes; --preset says otherwise)";
}

Result<Preprocess> choose_preprocess(const SessionInput& input, const RunOptions& o) {
  const auto wanted = picture_input(input.dtype, input.shape);
  if (!wanted)
    return Error{Reason::bad_input, "Input " + listed_inputs({input}) + " does not take a picture; give a .npy or .pb tensor."};
  SPARKLE_TRY(p, guess_preprocess(*wanted, input.dtype, o.outputs, o.metadata, o.preset));
  if (o.fit == "crop") p.fit = PictureFit::crop;
  if (o.fit == "stretch") p.fit = PictureFit::stretch;
  if (o.fit == "letterbox") p.fit = PictureFit::letterbox;
  if (o.fit == "none") p.fit = PictureFit::none;
  if (o.color == "rgb") p.color = Color::rgb;
  if (o.color == "bgr") p.color = Color::bgr;
  if (o.color == "grey" || o.color == "y") p.color = Color::grey;
  if (p.channels() != wanted->channels)
    return Error{Reason::bad_usage, "--color " + o.color + " does not fit input '" + input.name + "', which has " +
                                        std::to_string(wanted->channels) + " channels."};
  int shorter_side = 0;
  if (!o.size.empty()) {
    SPARKLE_TRY(size, parse_size("--size", o.size));
    if (o.size.find('x') == std::string::npos) shorter_side = size.first;
    else p.width = size.first, p.height = size.second;
  }
  if (!o.crop.empty()) {
    SPARKLE_TRY(size, parse_size("--crop", o.crop));
    p.width = size.first, p.height = size.second;
  }
  if (shorter_side > 0 && p.width == 0) p.width = p.height = shorter_side;
  const int target = std::min(p.width, p.height);
  if (p.fit == PictureFit::crop) p.shorter_side = shorter_side > 0 ? shorter_side : usual_shorter_side(p);
  if (p.shorter_side > 0 && p.shorter_side < target)
    return Error{Reason::bad_usage, "--size " + o.size + " is smaller than the crop of " + std::to_string(target) + "."};
  if (!o.scale.empty() && !parse_fraction(o.scale, p.scale)) return not_understood("--scale", o.scale, "1/255 or 0.5");
  if (p.scale == 0) return Error{Reason::bad_usage, "--scale 0 would make every pixel the same; write 1/255 or 0.5."};
  SPARKLE_CHECK(parse_channels("--mean", o.mean, false, p.mean));
  SPARKLE_CHECK(parse_channels("--std", o.std, true, p.std));
  if (o.pad_value) p.pad_value = *o.pad_value;
  return p;
}

}  // namespace sparkle::cli
