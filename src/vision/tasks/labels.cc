#include "vision/tasks/labels.h"

#include <algorithm>
#include <sstream>

#include "base/files/read_file.h"
#include "base/printable.h"
#include "onnx/metadata.h"

namespace sparkle {

Result<std::vector<std::string>> read_labels(const std::string& path) {
  std::vector<std::string> labels;
  if (path.empty()) return labels;
  SPARKLE_TRY(text, read_file(path, {"list of labels", int64_t{64} << 20, true}));
  std::istringstream file(text);
  for (std::string line; std::getline(file, line) && labels.size() < 1'000'000;) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const bool numbered = line.size() > 10 && line[0] == 'n' && line[9] == ' ' &&
                          std::all_of(line.begin() + 1, line.begin() + 9, [](char c) { return c >= '0' && c <= '9'; });
    labels.push_back(numbered ? line.substr(10) : line);
  }
  if (labels.empty()) return Error{Reason::file_unreadable, "The labels '" + path + "' are empty; give one name per line."};
  return labels;
}

std::vector<std::string> labels_of(const std::map<std::string, std::string>& metadata) {
  std::vector<std::string> labels;
  for (auto& [index, name] : class_names(metadata)) {
    if (static_cast<int>(labels.size()) <= index) labels.resize(static_cast<size_t>(index) + 1);
    labels[static_cast<size_t>(index)] = name;
  }
  return labels;
}

Status check_labels(const std::vector<OutputForm>& outputs, const std::vector<std::string>& labels) {
  if (labels.empty()) return ok();
  const OutputForm* smallest = nullptr;
  for (const OutputForm& output : outputs) {
    const int64_t count = output.shape.product();
    const bool row =
        is_float(output.dtype) && count >= 2 && *std::max_element(output.shape.begin(), output.shape.end()) == count;
    if (row && (!smallest || count < smallest->shape.product())) smallest = &output;
  }
  if (!smallest) {
    std::string forms;
    for (const OutputForm& o : outputs) forms += (forms.empty() ? "'" : ", '") + printable(o.name) + "' " + o.shape.to_string();
    return Error{Reason::bad_usage,
                 "Nothing tells what the labels name, since no output (" + forms +
                     ") is a row of classes; give a picture and the task (detect, segment ...), of detectors "
                     "also the preset, or leave the labels out."};
  }
  const auto classes = static_cast<size_t>(smallest->shape.product());
  if (labels.size() >= classes) return ok();
  return Error{Reason::bad_usage, "The labels are " + std::to_string(labels.size()) + " lines, but output '" + smallest->name +
                                      "' has " + std::to_string(classes) + " classes; give one line for each."};
}

}  // namespace sparkle
