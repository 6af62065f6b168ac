// Which form of detectors outputs have: what their shapes and names tell, before any value is looked at.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
  queries,  // DETR: logits [1, n, C], and boxes [1, n, 4], centre and size in 0..1; each object once
  rows,     // YOLOv10: [1, n, 6], corners in pixels, score and class; each object once
  list,     // torchvision and others that choose themselves: boxes [n, 4] in pixels, labels [n], scores [n]
};

// `width`, `height`: of the input tensor, 0 where they are open. `preset`: "detr", "rtdetr" and "yolov10" decide where shapes
// fit several forms.
DetectionForm detection_form(const std::vector<OutputForm>& outputs, int64_t width, int64_t height,
                             const std::string& preset = "");

// Which of the outputs hold what; -1: none does.
struct BoxPlaces {
  int boxes = -1, scores = -1, labels = -1;
};
BoxPlaces pair_places(const std::vector<OutputForm>& outputs);  // of priors and queries
BoxPlaces list_places(const std::vector<OutputForm>& outputs);

// The preset that detectors of this form were trained with; "" where they differ.
std::string preset_of(DetectionForm form, const std::vector<OutputForm>& outputs);

// Priors of Ultra-Light-Fast-Generic-Face-Detector: sides in pixels of each stride.
struct PriorLevel {
  int64_t stride;
  float sides[3];
  int count;
};
inline constexpr PriorLevel kPriors[] = {{8, {10, 16, 24}, 3}, {16, {32, 48}, 2}, {32, {64, 96}, 2}, {64, {128, 192, 256}, 3}};
int64_t priors_of(int64_t width, int64_t height);

}  // namespace sparkle
