#include "vision/tasks/detect.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace sparkle {
namespace {

constexpr int kMostCandidates = 30000;  // before boxes are compared with each other

constexpr std::array<int64_t, 3> kStrides = {8, 16, 32};

int64_t cells_of(int64_t width, int64_t height) {
  int64_t n = 0;
  for (const int64_t s : kStrides) n += (width / s) * (height / s);
  return n;
}

// Priors of Ultra-Light-Fast-Generic-Face-Detector: sides in pixels of each stride.
struct PriorLevel {
  int64_t stride;
  std::array<float, 3> sides;
  int count;
};
constexpr PriorLevel kPriors[] = {{8, {10, 16, 24}, 3}, {16, {32, 48}, 2}, {32, {64, 96}, 2}, {64, {128, 192, 256}, 3}};
constexpr float kCentreVariance = 0.1f, kSizeVariance = 0.2f;

int64_t priors_of(int64_t width, int64_t height) {
  int64_t n = 0;
  for (const PriorLevel& l : kPriors) n += ((width + l.stride - 1) / l.stride) * ((height + l.stride - 1) / l.stride) * l.count;
  return n;
}

float sigmoid(float v) { return 1 / (1 + std::exp(-v)); }

struct Found {
  std::vector<FoundBox> boxes;
  float threshold = 0;

  // Corners in pixels of the tensor.
  void add(float x0, float y0, float x1, float y1, float score, int64_t label) {
    if (!(score >= threshold) || !std::isfinite(x0 + y0 + x1 + y1)) return;
    boxes.push_back({x0, y0, x1, y1, score, static_cast<int>(label)});
  }
  void add_centred(float x, float y, float w, float h, float score, int64_t label) {
    add(x - w / 2, y - h / 2, x + w / 2, y + h / 2, score, label);
  }
};

int64_t best_of(const float* scores, int64_t count, int64_t step = 1) {
  int64_t best = 0;
  for (int64_t c = 1; c < count; ++c)
    if (scores[c * step] > scores[best * step]) best = c;
  return best;
}

void from_grid(const HostTensor& t, int64_t width, int64_t height, Found& found) {
  const int64_t row = t.shape[2], classes = row - 5;
  const float* values = t.data<float>();
  const auto each = [&](const auto& visit) {
    const float* v = values;
    for (const int64_t s : kStrides)
      for (int64_t y = 0; y < height / s; ++y)
        for (int64_t x = 0; x < width / s; ++x, v += row)
          visit(v, static_cast<float>(x), static_cast<float>(y), static_cast<float>(s));
  };
  // Decoded centres lie near their cells in pixels, raw ones near the middle of a cell of side 1.
  double raw = 0, decoded = 0;
  each([&](const float* v, float x, float, float s) {
    raw += std::abs(v[0] - 0.5f), decoded += std::abs(v[0] - (x + 0.5f) * s) / s;
  });
  const bool in_cells = raw < decoded;
  each([&](const float* v, float x, float y, float s) {
    const int64_t best = best_of(v + 5, classes);
    const float score = v[4] * v[5 + best];
    if (in_cells) found.add_centred((v[0] + x) * s, (v[1] + y) * s, std::exp(v[2]) * s, std::exp(v[3]) * s, score, best);
    else found.add_centred(v[0], v[1], v[2], v[3], score, best);
  });
}

void from_anchors(const HostTensor& t, Found& found) {
  const int64_t row = t.shape[2], classes = row - 5;
  const float* v = t.data<float>();
  for (int64_t i = 0; i < t.shape[1]; ++i, v += row) {
    const int64_t best = best_of(v + 5, classes);
    found.add_centred(v[0], v[1], v[2], v[3], v[4] * v[5 + best], best);
  }
}

void from_columns(const HostTensor& t, Found& found) {
  const int64_t classes = t.shape[1] - 4, n = t.shape[2];
  const float* v = t.data<float>();
  for (int64_t i = 0; i < n; ++i, ++v) {
    const int64_t best = best_of(v + 4 * n, classes, n);
    found.add_centred(v[0], v[n], v[2 * n], v[3 * n], v[(4 + best) * n], best);
  }
}

void from_cells(const HostTensor& t, int64_t width, int64_t height, Found& found) {
  const int64_t classes = t.shape[1] - 5, h = t.shape[2], w = t.shape[3], plane = h * w;
  for (int64_t y = 0; y < h; ++y)
    for (int64_t x = 0; x < w; ++x) {
      const float* v = t.data<float>() + y * w + x;
      const int64_t best = best_of(v + 5 * plane, classes, plane);
      const float score = std::pow(std::max(v[0], 0.f), 0.6f) * std::pow(std::max(v[(5 + best) * plane], 0.f), 0.4f);
      const float cx = (std::tanh(v[plane]) + static_cast<float>(x)) / static_cast<float>(w);
      const float cy = (std::tanh(v[2 * plane]) + static_cast<float>(y)) / static_cast<float>(h);
      const auto across = static_cast<float>(width), down = static_cast<float>(height);
      found.add_centred(cx * across, cy * down, sigmoid(v[3 * plane]) * across, sigmoid(v[4 * plane]) * down, score, best);
    }
}

void from_priors(const HostTensor& scores, const HostTensor& boxes, int64_t width, int64_t height, Found& found) {
  const int64_t n = boxes.shape[1], classes = scores.shape[2];
  const float* b = boxes.data<float>();
  int64_t ordered = 0;
  for (int64_t i = 0; i < n; ++i) ordered += b[4 * i + 2] > b[4 * i] && b[4 * i + 3] > b[4 * i + 1];
  // Corners are in order all but always, distances from priors by chance.
  const bool corners = ordered * 10 >= n * 9 || priors_of(width, height) != n;
  const auto across = static_cast<float>(width), down = static_cast<float>(height);
  const auto take = [&](int64_t i, float x0, float y0, float x1, float y1) {
    const float* s = scores.data<float>() + i * classes + 1;
    const int64_t best = best_of(s, classes - 1);
    found.add(x0 * across, y0 * down, x1 * across, y1 * down, s[best], best);
  };
  if (corners) {
    for (int64_t i = 0; i < n; ++i) take(i, b[4 * i], b[4 * i + 1], b[4 * i + 2], b[4 * i + 3]);
    return;
  }
  int64_t i = 0;
  for (const PriorLevel& l : kPriors) {
    const int64_t w = (width + l.stride - 1) / l.stride, h = (height + l.stride - 1) / l.stride;
    const auto stride = static_cast<float>(l.stride);
    for (int64_t y = 0; y < h; ++y)
      for (int64_t x = 0; x < w; ++x)
        for (int k = 0; k < l.count; ++k, ++i) {
          const float* v = b + 4 * i;
          const float pw = l.sides[static_cast<size_t>(k)] / across, ph = l.sides[static_cast<size_t>(k)] / down;
          const float cx = v[0] * kCentreVariance * pw + (static_cast<float>(x) + 0.5f) * stride / across;
          const float cy = v[1] * kCentreVariance * ph + (static_cast<float>(y) + 0.5f) * stride / down;
          const float bw = std::exp(v[2] * kSizeVariance) * pw, bh = std::exp(v[3] * kSizeVariance) * ph;
          take(i, cx - bw / 2, cy - bh / 2, cx + bw / 2, cy + bh / 2);
        }
  }
}

struct ListPlaces {
  int boxes = -1, scores = -1, labels = -1;
  bool whole() const { return boxes >= 0 && scores >= 0 && labels >= 0; }
};

ListPlaces list_places(const std::vector<OutputForm>& outputs) {
  ListPlaces at;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputForm& o = outputs[i];
    const int rank = o.shape.size(), index = static_cast<int>(i);
    if (rank >= 2 && rank <= 3 && o.shape[rank - 1] == 4 && is_float(o.dtype) && (rank == 2 || o.shape[0] == 1))
      at.boxes = index;
    else if ((rank == 1 || (rank == 2 && o.shape[0] == 1)) && is_float(o.dtype)) at.scores = index;
    else if ((rank == 1 || (rank == 2 && o.shape[0] == 1)) && (o.dtype == DType::i64 || o.dtype == DType::i32))
      at.labels = index;
  }
  return at;
}

void from_list(const std::vector<HostTensor>& outputs, const ListPlaces& at, Found& found) {
  const HostTensor &boxes = outputs[static_cast<size_t>(at.boxes)], &scores = outputs[static_cast<size_t>(at.scores)],
                   &labels = outputs[static_cast<size_t>(at.labels)];
  const int64_t n = std::min({boxes.elements() / 4, scores.elements(), labels.elements()});
  const float* b = boxes.data<float>();
  for (int64_t i = 0; i < n; ++i, b += 4) {
    const int64_t label = labels.dtype == DType::i64 ? labels.data<int64_t>()[i] : labels.data<int32_t>()[i];
    if (label >= 0 && label < (int64_t{1} << 30)) found.add(b[0], b[1], b[2], b[3], scores.data<float>()[i], label);
  }
}

float shared_part(const FoundBox& a, const FoundBox& b) {
  const float w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0), h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  if (w <= 0 || h <= 0) return 0;
  const float both = w * h;
  return both / ((a.x1 - a.x0) * (a.y1 - a.y0) + (b.x1 - b.x0) * (b.y1 - b.y0) - both);
}

std::vector<FoundBox> best_boxes(std::vector<FoundBox> boxes, const DetectOptions& o) {
  std::stable_sort(boxes.begin(), boxes.end(), [](const FoundBox& a, const FoundBox& b) { return a.score > b.score; });
  if (boxes.size() > kMostCandidates) boxes.resize(kMostCandidates);
  std::vector<FoundBox> kept;
  for (const FoundBox& box : boxes) {
    if (static_cast<int>(kept.size()) >= o.most) break;
    const bool taken = std::any_of(kept.begin(), kept.end(),
                                   [&](const FoundBox& k) { return k.label == box.label && shared_part(k, box) > o.overlap; });
    if (!taken) kept.push_back(box);
  }
  return kept;
}

}  // namespace

DetectionForm detection_form(const std::vector<OutputForm>& outputs, int64_t width, int64_t height) {
  if (outputs.size() >= 3 && list_places(outputs).whole()) return DetectionForm::list;
  if (outputs.size() == 2) {
    const Dims &a = outputs[0].shape, &b = outputs[1].shape;
    const auto pair = [](const Dims& s, const Dims& x) {
      return s.size() == 3 && x.size() == 3 && x[2] == 4 && s[1] == x[1] && s[2] >= 2 && s[0] <= 1 && x[0] <= 1;
    };
    if (pair(a, b) || pair(b, a)) return DetectionForm::priors;
  }
  if (outputs.size() != 1 || !is_float(outputs[0].dtype) || width <= 0 || height <= 0) return DetectionForm::none;
  const Dims& s = outputs[0].shape;
  const int64_t cells = cells_of(width, height);
  if (s.size() == 3 && s[0] <= 1) {
    if (s[1] == cells && s[2] >= 6) return DetectionForm::grid;
    if (s[1] == 3 * cells && s[2] >= 6) return DetectionForm::anchors;
    if (s[2] == cells && s[1] >= 5) return DetectionForm::columns;
  }
  // A box a cell: far fewer cells than pixels, and classes behind object and box.
  if (s.size() == 4 && s[0] <= 1 && s[1] >= 6 && s[2] > 1 && s[3] > 1 && s[2] * 16 == height && s[3] * 16 == width)
    return DetectionForm::cells;
  return DetectionForm::none;
}

Result<std::vector<FoundBox>> detect(const std::vector<std::string>& names, const std::vector<HostTensor>& outputs,
                                     int64_t width, int64_t height, const Placement& at, const DetectOptions& options) {
  std::vector<OutputForm> forms;
  for (size_t i = 0; i < outputs.size(); ++i)
    forms.push_back({i < names.size() ? names[i] : "", outputs[i].dtype, outputs[i].shape});
  Found found;
  found.threshold = options.threshold;
  switch (detection_form(forms, width, height)) {
    case DetectionForm::grid: from_grid(outputs[0], width, height, found); break;
    case DetectionForm::anchors: from_anchors(outputs[0], found); break;
    case DetectionForm::columns: from_columns(outputs[0], found); break;
    case DetectionForm::cells: from_cells(outputs[0], width, height, found); break;
    case DetectionForm::priors: {
      // Four classes look like four corners: then the name decides.
      const bool named_first = !names.empty() && names[0].find("box") != std::string::npos;
      const size_t boxes = outputs[1].shape[2] != 4 || (outputs[0].shape[2] == 4 && named_first) ? 0 : 1;
      from_priors(outputs[1 - boxes], outputs[boxes], width, height, found);
      break;
    }
    case DetectionForm::list: from_list(outputs, list_places(forms), found); break;
    case DetectionForm::none: {
      std::string text;
      for (const OutputForm& f : forms) text += (text.empty() ? "" : ", ") + f.shape.to_string();
      return Error{Reason::bad_input,
                   "The outputs (" + text +
                       ") are of no form of detectors that is known; see docs/vision.md for those that are, or "
                       "write the tensors by --output."};
    }
  }
  std::vector<FoundBox> boxes = best_boxes(std::move(found.boxes), options);
  for (FoundBox& b : boxes) {
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
  return boxes;
}

}  // namespace sparkle
