// One form of detectors after the other: from tensors to candidates, and whether their values can be of that form.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vision/tasks/detect.h"
#include "vision/tasks/detection_form.h"

namespace sparkle {

// Candidates above the threshold, corners in pixels of the tensor, and what was seen on the way.
struct Candidates {
  std::vector<FoundBox> boxes;
  float threshold = 0;
  float least = 0, most = 0;        // of all scores, those below the threshold too
  float nearest = 0, farthest = 0;  // of coordinates that should lie in 0..1
  std::optional<FoundBox> swapped;  // one of many boxes whose corners are not in order
  std::string form, advice;         // in words; what to do where it was not meant
  bool pixels = false;              // the form says boxes in pixels of the tensor
  bool each_once = false;           // no two boxes for an object

  void see(float score) { least = std::min(least, score), most = std::max(most, score); }
  void see_place(float v) { nearest = std::min(nearest, v), farthest = std::max(farthest, v); }
  void add(float x0, float y0, float x1, float y1, float score, int64_t label);
  void add_centred(float x, float y, float w, float h, float score, int64_t label) {
    add(x - w / 2, y - h / 2, x + w / 2, y + h / 2, score, label);
  }
};

// `form` is that of the outputs, f32. Errors: bad_usage where names of classes do not fit.
Result<Candidates> decode_boxes(DetectionForm form, const std::vector<OutputForm>& forms,
                                const std::vector<HostTensor>& outputs, int64_t width, int64_t height,
                                const DetectOptions& options);
// Errors: bad_input with the form, what its values should be, what they are, and what to do.
Status check_values(const Candidates& found, int64_t width, int64_t height);

}  // namespace sparkle
