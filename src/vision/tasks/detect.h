// Boxes from the outputs of detectors: the forms that exporters write, the best box of each object kept.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "vision/tasks/task.h"

namespace sparkle {

// How a detector tells its boxes. C: classes, n: places.
enum class DetectionForm : uint8_t {
  none,
  grid,     // YOLOX: [1, n, 5 + C], n the cells of strides 8, 16 and 32; places in the grid, or decoded
  anchors,  // YOLOv5: [1, n, 5 + C], centre and size in pixels, object and classes
  columns,  // YOLOv8: [1, 4 + C, n], centre and size in pixels, classes
  cells,    // FastestDet: [1, 5 + C, h, w], object, box in the cell, classes
  priors,   // SSD: scores [1, n, C], the first of them background, and boxes [1, n, 4], of priors or decoded to corners in 0..1
  list,     // torchvision and others that choose themselves: boxes [n, 4] in pixels, labels [n], scores [n]
};
DetectionForm detection_form(const std::vector<OutputForm>& outputs, int64_t width, int64_t height);

struct FoundBox {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;  // corners in pixels of the picture
  float score = 0;                       // 0..1
  int label = 0;                         // class; of forms with background, without it
};

struct DetectOptions {
  float threshold = 0.5f;  // boxes with a smaller score are left out
  float overlap = 0.45f;   // of two boxes of a class that share more than this of their union the better one is kept
  int most = 300;
};

// `names` and `outputs`: the model's, in order, floats as f32. `width`, `height`: of the input tensor. Boxes come best first.
// Errors: bad_input where the outputs are of no form of detectors.
Result<std::vector<FoundBox>> detect(const std::vector<std::string>& names, const std::vector<HostTensor>& outputs,
                                     int64_t width, int64_t height, const Placement& placement, const DetectOptions& options);

}  // namespace sparkle
