#include "vision/tasks/task.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "vision/tasks/detection_form.h"

namespace sparkle {
namespace {

constexpr const char* kTasks[] = {"classify", "detect", "segment", "upscale", "depth", "embed"};

std::string described(const OutputForm& o) {
  std::string text = "output '" + o.name + "' ";
  for (int a = 0; a < o.shape.size(); ++a) text += (a ? "x" : "") + (o.shape[a] < 0 ? "?" : std::to_string(o.shape[a]));
  return text;
}

// Sizes beside a batch of one.
std::vector<int64_t> sizes_of(const OutputForm& o) {
  std::vector<int64_t> sizes;
  for (int a = 0; a < o.shape.size(); ++a)
    if (!(a == 0 && (o.shape[a] == 1 || o.shape[a] < 0))) sizes.push_back(o.shape[a]);
  return sizes;
}

}  // namespace

bool name_has(const std::string& name, std::initializer_list<const char*> words) {
  std::string small = name;
  std::transform(small.begin(), small.end(), small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(words.begin(), words.end(), [&](const char* w) { return small.find(w) != std::string::npos; });
}

const char* name_of(Task task) { return kTasks[static_cast<int>(task)]; }

Result<Task> task_named(const std::string& name) {
  for (int i = 0; i < 6; ++i)
    if (name == kTasks[i]) return static_cast<Task>(i);
  return Error{Reason::bad_usage, "There is no task '" + name + "'; use classify, detect, segment, upscale, depth or embed."};
}

std::optional<TaskGuess> guess_task(const std::vector<OutputForm>& outputs, int64_t width, int64_t height) {
  if (outputs.empty()) return {};
  if (detection_form(outputs, width, height) != DetectionForm::none)
    return TaskGuess{Task::detect, "guessed from " + described(outputs[0])};
  const OutputForm& first = outputs[0];
  const std::vector<int64_t> sizes = sizes_of(first);
  const std::string why = "guessed from " + described(first);
  if (sizes.size() >= 2 && name_has(first.name, {"depth", "disparity"})) return TaskGuess{Task::depth, why};
  if (sizes.size() == 3 && is_float(first.dtype) && width > 0 && height > 0) {
    const int64_t c = sizes[0], h = sizes[1], w = sizes[2];
    const auto enlarged = [&](int64_t channels, int64_t down, int64_t across) {
      return (channels == 1 || channels == 3) && down >= 2 * height && across * height == down * width && down % height == 0;
    };
    if (enlarged(c, h, w) || enlarged(w, c, h)) return TaskGuess{Task::upscale, why};
    if (c >= 2 && c != 3 && c <= 1024 && h >= 16 && w >= 16 && h <= height && w <= width) return TaskGuess{Task::segment, why};
    if (w >= 2 && w <= 1024 && c >= 16 && h >= 16 && c == height && h == width && w != 3) return TaskGuess{Task::segment, why};
  }
  if (sizes.size() == 2 && !is_float(first.dtype) && sizes[0] == height && sizes[1] == width)
    return TaskGuess{Task::segment, why};
  if (sizes.size() == 1 && name_has(first.name, {"embed", "feature"})) return TaskGuess{Task::embed, why};
  const bool row = std::count_if(sizes.begin(), sizes.end(), [](int64_t n) { return n != 1; }) == 1;
  if (row && is_float(first.dtype)) return TaskGuess{Task::classify, why};
  return {};
}

std::string guess_preset(const std::vector<OutputForm>& outputs, int64_t width, int64_t height) {
  const std::string known = preset_of(detection_form(outputs, width, height), outputs);
  if (!known.empty()) return known;
  // Sides of 32 n + 1 are those of TensorFlow's DeepLab.
  const auto guess = guess_task(outputs, width, height);
  if (guess && guess->task == Task::upscale) return "unit";
  if (guess && guess->task == Task::segment && width == height && width > 64 && width % 32 == 1) return "deeplab";
  return "";
}

Placement placement_of(const Preprocess& p, int width, int height) {
  Placement at;
  at.width = width, at.height = height;
  if (p.fit == PictureFit::none || p.width == 0 || p.height == 0) return at;
  const double across = static_cast<double>(p.width) / width, down = static_cast<double>(p.height) / height;
  if (p.fit == PictureFit::stretch) {
    at.scale_x = 1 / across, at.scale_y = 1 / down;
    return at;
  }
  double factor = p.fit == PictureFit::letterbox ? std::min(across, down) : std::max(across, down);
  if (p.fit == PictureFit::crop && p.shorter_side > 0)
    factor *= std::max(1.0, static_cast<double>(p.shorter_side) / std::min(p.width, p.height));
  at.scale_x = at.scale_y = 1 / factor;
  if (p.fit == PictureFit::crop) {
    at.offset_x = (width - p.width / factor) / 2, at.offset_y = (height - p.height / factor) / 2;
  } else if (p.centred) {
    at.offset_x = -(p.width - width * factor) / 2 / factor, at.offset_y = -(p.height - height * factor) / 2 / factor;
  }
  return at;
}

}  // namespace sparkle
