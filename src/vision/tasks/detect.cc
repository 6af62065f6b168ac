#include "vision/tasks/detect.h"

#include <algorithm>

#include "vision/tasks/decode_boxes.h"

namespace sparkle {
namespace {

constexpr int kMostCandidates = 30000;  // before boxes are compared with each other

float shared_part(const FoundBox& a, const FoundBox& b) {
  const float w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0), h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  if (w <= 0 || h <= 0) return 0;
  const float both = w * h;
  return both / ((a.x1 - a.x0) * (a.y1 - a.y0) + (b.x1 - b.x0) * (b.y1 - b.y0) - both);
}

std::vector<FoundBox> best_boxes(std::vector<FoundBox> boxes, bool each_once, const DetectOptions& o) {
  std::stable_sort(boxes.begin(), boxes.end(), [](const FoundBox& a, const FoundBox& b) { return a.score > b.score; });
  if (boxes.size() > kMostCandidates) boxes.resize(kMostCandidates);
  std::vector<FoundBox> kept;
  for (const FoundBox& box : boxes) {
    if (static_cast<int>(kept.size()) >= o.most) break;
    const bool taken = !each_once && std::any_of(kept.begin(), kept.end(), [&](const FoundBox& k) {
      return k.label == box.label && shared_part(k, box) > o.overlap;
    });
    if (!taken) kept.push_back(box);
  }
  return kept;
}

}  // namespace

Result<FoundBoxes> detect(const std::vector<std::string>& names, const std::vector<HostTensor>& outputs, int64_t width,
                          int64_t height, const Placement& at, const DetectOptions& options) {
  std::vector<OutputForm> forms;
  for (size_t i = 0; i < outputs.size(); ++i)
    forms.push_back({i < names.size() ? names[i] : "", outputs[i].dtype, outputs[i].shape});
  const DetectionForm form = detection_form(forms, width, height, options.preset);
  if (form == DetectionForm::none) {
    std::string text;
    for (const OutputForm& f : forms) text += (text.empty() ? "" : ", ") + f.shape.to_string();
    return Error{Reason::bad_input,
                 "The outputs (" + text +
                     ") are of no form of detectors that is known; see docs/vision.md for those that are, or "
                     "write the tensors by --output."};
  }
  SPARKLE_TRY(candidates, decode_boxes(form, forms, outputs, width, height, options));
  SPARKLE_CHECK(check_values(candidates, width, height));
  FoundBoxes found{best_boxes(std::move(candidates.boxes), candidates.each_once, options), candidates.form};
  for (FoundBox& b : found.boxes) {
    const auto x = [&](float v) {
      return static_cast<float>(
          std::clamp(static_cast<double>(v) * at.scale_x + at.offset_x, 0.0, static_cast<double>(at.width)));
    };
    const auto y = [&](float v) {
      return static_cast<float>(
          std::clamp(static_cast<double>(v) * at.scale_y + at.offset_y, 0.0, static_cast<double>(at.height)));
    };
    b.x0 = x(b.x0), b.x1 = x(b.x1), b.y0 = y(b.y0), b.y1 = y(b.y1);
  }
  return found;
}

}  // namespace sparkle
