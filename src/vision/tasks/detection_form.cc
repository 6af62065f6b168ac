#include "vision/tasks/detection_form.h"

namespace sparkle {
namespace {

constexpr int64_t kStrides[] = {8, 16, 32};
constexpr int64_t kMostRows = 1000;  // of detectors that choose their boxes themselves; 300 is usual
constexpr int64_t kQueriesOfDetr = 100, kClassesOfDetr = 92, kCocoNumbers = 91;

int64_t cells_of(int64_t width, int64_t height) {
  int64_t n = 0;
  for (const int64_t s : kStrides) n += (width / s) * (height / s);
  return n;
}

bool is_pair(const Dims& scores, const Dims& boxes, int64_t fewest) {
  return scores.size() == 3 && boxes.size() == 3 && boxes[2] == 4 && scores[1] == boxes[1] && scores[2] >= fewest &&
         scores[0] <= 1 && boxes[0] <= 1;
}

bool tells_queries(const std::vector<OutputForm>& outputs, const BoxPlaces& at) {
  return name_has(outputs[static_cast<size_t>(at.scores)].name, {"logits"}) ||
         name_has(outputs[static_cast<size_t>(at.boxes)].name, {"pred_boxes"});
}

}  // namespace

int64_t priors_of(int64_t width, int64_t height) {
  int64_t n = 0;
  for (const PriorLevel& l : kPriors) n += ((width + l.stride - 1) / l.stride) * ((height + l.stride - 1) / l.stride) * l.count;
  return n;
}

BoxPlaces pair_places(const std::vector<OutputForm>& outputs) {
  BoxPlaces named;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (name_has(outputs[i].name, {"pred_boxes"})) named.boxes = static_cast<int>(i);
    else if (name_has(outputs[i].name, {"logits"})) named.scores = static_cast<int>(i);
  }
  if (named.boxes >= 0 && named.scores >= 0 &&
      is_pair(outputs[static_cast<size_t>(named.scores)].shape, outputs[static_cast<size_t>(named.boxes)].shape, 1))
    return named;
  if (outputs.size() != 2) return {};
  const Dims &a = outputs[0].shape, &b = outputs[1].shape;
  const bool first = is_pair(b, a, 2), second = is_pair(a, b, 2);
  // Four classes look like four corners: then the name decides.
  if (first && (!second || name_has(outputs[0].name, {"box"}))) return {0, 1, -1};
  return second ? BoxPlaces{1, 0, -1} : BoxPlaces{};
}

BoxPlaces list_places(const std::vector<OutputForm>& outputs) {
  BoxPlaces at;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputForm& o = outputs[i];
    const int rank = o.shape.size(), index = static_cast<int>(i);
    if (rank >= 2 && rank <= 3 && o.shape[rank - 1] == 4 && is_float(o.dtype) && (rank == 2 || o.shape[0] == 1))
      at.boxes = index;
    else if ((rank == 1 || (rank == 2 && o.shape[0] == 1)) && is_float(o.dtype)) at.scores = index;
    else if ((rank == 1 || (rank == 2 && o.shape[0] == 1)) && (o.dtype == DType::i64 || o.dtype == DType::i32))
      at.labels = index;
  }
  return at.boxes >= 0 && at.scores >= 0 && at.labels >= 0 ? at : BoxPlaces{};
}

DetectionForm detection_form(const std::vector<OutputForm>& outputs, int64_t width, int64_t height, const std::string& preset) {
  if (outputs.size() >= 3 && list_places(outputs).boxes >= 0) return DetectionForm::list;
  if (const BoxPlaces at = pair_places(outputs); at.boxes >= 0)
    return preset == "detr" || preset == "rtdetr" || tells_queries(outputs, at) ? DetectionForm::queries
                                                                                : DetectionForm::priors;
  if (outputs.size() != 1 || !is_float(outputs[0].dtype)) return DetectionForm::none;
  const Dims& s = outputs[0].shape;
  const bool six = s.size() == 3 && s[0] <= 1 && s[2] == 6;
  if (six && preset == "yolov10") return DetectionForm::rows;
  if (width <= 0 || height <= 0) return six && s[1] > 1 && s[1] <= kMostRows ? DetectionForm::rows : DetectionForm::none;
  const int64_t cells = cells_of(width, height);
  if (s.size() == 3 && s[0] <= 1) {
    if (s[1] == cells && s[2] >= 6) return DetectionForm::grid;
    if (s[1] == 3 * cells && s[2] >= 6) return DetectionForm::anchors;
    if (s[2] == cells && s[1] >= 5) return DetectionForm::columns;
    if (six && s[1] != 1 && s[1] <= kMostRows) return DetectionForm::rows;
  }
  // A box a cell: far fewer cells than pixels, and classes behind object and box.
  if (s.size() == 4 && s[0] <= 1 && s[1] >= 6 && s[2] > 1 && s[3] > 1 && s[2] * 16 == height && s[3] * 16 == width)
    return DetectionForm::cells;
  return DetectionForm::none;
}

std::string preset_of(DetectionForm form, const std::vector<OutputForm>& outputs) {
  switch (form) {
    case DetectionForm::grid: return "yolox";
    case DetectionForm::priors: return "ultraface";
    case DetectionForm::anchors:
    case DetectionForm::columns: return "yolo";
    case DetectionForm::rows: return "yolov10";
    case DetectionForm::cells: return "unit";
    case DetectionForm::list: return "torchvision";
    case DetectionForm::queries: {
      // Detectors with COCO's 91 numbers are of the older kind, which took over the mean and deviation of ImageNet.
      const Dims& scores = outputs[static_cast<size_t>(pair_places(outputs).scores)].shape;
      const bool older = scores[1] == kQueriesOfDetr || scores[2] == kClassesOfDetr || scores[2] == kCocoNumbers;
      return older ? "detr" : "rtdetr";
    }
    default: return "";
  }
}

}  // namespace sparkle
