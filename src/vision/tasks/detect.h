// Boxes from the outputs of detectors: the forms that exporters write, the best box of each object kept.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "vision/tasks/task.h"

namespace sparkle {

struct FoundBox {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;  // corners in pixels of the picture
  float score = 0;                       // 0..1
  int label = 0;                         // class; of forms with background, without it
};

struct DetectOptions {
  float threshold = 0.5f;  // boxes with a smaller score are left out
  float overlap = 0.45f;   // of two boxes of a class that share more than this of their union the better one is kept
  int most = 300;
  std::string preset;  // that the picture was prepared with; decides between forms of the same shapes
  int names = 0;       // classes that have one; 0: not known
};

struct FoundBoxes {
  std::vector<FoundBox> boxes;  // best first
  std::string form;             // that the outputs were taken for, in words
};

// `names` and `outputs`: the model's, in order, floats as f32. `width`, `height`: of the input tensor.
// Errors: bad_input where the outputs are of no form of detectors, or their values cannot be of the one that was taken.
Result<FoundBoxes> detect(const std::vector<std::string>& names, const std::vector<HostTensor>& outputs, int64_t width,
                          int64_t height, const Placement& placement, const DetectOptions& options);

}  // namespace sparkle
