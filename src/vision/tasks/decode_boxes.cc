#include "vision/tasks/decode_boxes.h"

#include <algorithm>
#include <cmath>

#include "base/printable.h"
#include "base/text/format.h"

namespace sparkle {
namespace {

constexpr int64_t kStrides[] = {8, 16, 32};
constexpr float kCentreVariance = 0.1f, kSizeVariance = 0.2f;
constexpr float kSlack = 0.05f;  // beyond 0 and 1, of values in low precision
constexpr const char* kExportWhole =
    "export the model with its sigmoid and its boxes decoded, or write the tensors by --output";

float sigmoid(float v) { return 1 / (1 + std::exp(-v)); }

int64_t best_of(const float* scores, int64_t count, int64_t step = 1) {
  int64_t best = 0;
  for (int64_t c = 1; c < count; ++c)
    if (scores[c * step] > scores[best * step]) best = c;
  return best;
}

void from_grid(const HostTensor& t, int64_t width, int64_t height, Candidates& found) {
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
  found.form = std::string("YOLOX (box, object and classes a cell, ") + (in_cells ? "places in the grid)" : "in pixels)");
  found.advice = kExportWhole;
  each([&](const float* v, float x, float y, float s) {
    const int64_t best = best_of(v + 5, classes);
    found.see(v[4]), found.see(v[5 + best]);
    const float score = v[4] * v[5 + best];
    if (in_cells) found.add_centred((v[0] + x) * s, (v[1] + y) * s, std::exp(v[2]) * s, std::exp(v[3]) * s, score, best);
    else found.add_centred(v[0], v[1], v[2], v[3], score, best);
  });
}

void from_anchors(const HostTensor& t, Candidates& found) {
  const int64_t row = t.shape[2], classes = row - 5;
  found.form = "YOLOv5 (centre and size in pixels, object and classes a row)", found.advice = kExportWhole, found.pixels = true;
  const float* v = t.data<float>();
  for (int64_t i = 0; i < t.shape[1]; ++i, v += row) {
    const int64_t best = best_of(v + 5, classes);
    found.see(v[4]), found.see(v[5 + best]);
    found.add_centred(v[0], v[1], v[2], v[3], v[4] * v[5 + best], best);
  }
}

void from_columns(const HostTensor& t, Candidates& found) {
  const int64_t classes = t.shape[1] - 4, n = t.shape[2];
  found.form = "YOLOv8 (centre and size in pixels and classes a column)", found.advice = kExportWhole, found.pixels = true;
  const float* v = t.data<float>();
  for (int64_t i = 0; i < n; ++i, ++v) {
    const int64_t best = best_of(v + 4 * n, classes, n);
    found.see(v[(4 + best) * n]);
    found.add_centred(v[0], v[n], v[2 * n], v[3 * n], v[(4 + best) * n], best);
  }
}

void from_cells(const HostTensor& t, int64_t width, int64_t height, Candidates& found) {
  const int64_t classes = t.shape[1] - 5, h = t.shape[2], w = t.shape[3], plane = h * w;
  found.form = "FastestDet (object, box and classes a cell)", found.advice = kExportWhole;
  for (int64_t y = 0; y < h; ++y)
    for (int64_t x = 0; x < w; ++x) {
      const float* v = t.data<float>() + y * w + x;
      const int64_t best = best_of(v + 5 * plane, classes, plane);
      found.see(v[0]), found.see(v[(5 + best) * plane]);
      const float score = std::pow(std::max(v[0], 0.f), 0.6f) * std::pow(std::max(v[(5 + best) * plane], 0.f), 0.4f);
      const float cx = (std::tanh(v[plane]) + static_cast<float>(x)) / static_cast<float>(w);
      const float cy = (std::tanh(v[2 * plane]) + static_cast<float>(y)) / static_cast<float>(h);
      const auto across = static_cast<float>(width), down = static_cast<float>(height);
      found.add_centred(cx * across, cy * down, sigmoid(v[3 * plane]) * across, sigmoid(v[4 * plane]) * down, score, best);
    }
}

void from_priors(const HostTensor& scores, const HostTensor& boxes, int64_t width, int64_t height, Candidates& found) {
  const int64_t n = boxes.shape[1], classes = scores.shape[2];
  const float* b = boxes.data<float>();
  int64_t ordered = 0, swapped = 0;
  for (int64_t i = 0; i < n; ++i) {
    ordered += b[4 * i + 2] > b[4 * i] && b[4 * i + 3] > b[4 * i + 1];
    swapped += b[4 * i + 2] < b[4 * i] || b[4 * i + 3] < b[4 * i + 1];
  }
  for (int64_t i = 0; i < scores.elements(); ++i) found.see(scores.data<float>()[i]);
  // Corners are in order all but always, distances from priors by chance.
  const bool corners = ordered * 10 >= n * 9 || priors_of(width, height) != n;
  found.form = corners ? "SSD (scores with background first, corners in 0..1)"
                       : "UltraFace (scores with background first, boxes as distances from priors)";
  found.advice =
      "give the preset detr (of DETR and YOLOS) or rtdetr (of RT-DETR) where boxes are centre and size, or write the tensors "
      "by --output";
  const auto across = static_cast<float>(width), down = static_cast<float>(height);
  const auto take = [&](int64_t i, float x0, float y0, float x1, float y1) {
    const float* s = scores.data<float>() + i * classes + 1;
    const int64_t best = best_of(s, classes - 1);
    found.add(x0 * across, y0 * down, x1 * across, y1 * down, s[best], best);
  };
  if (corners) {
    for (int64_t i = 0; i < n; ++i) {
      const float* s = scores.data<float>() + i * classes + 1;
      const bool candidate = s[best_of(s, classes - 1)] >= found.threshold;
      for (int k = 0; k < 4 && candidate; ++k) found.see_place(b[4 * i + k]);
      if (swapped * 10 > n && !found.swapped && (b[4 * i + 2] < b[4 * i] || b[4 * i + 3] < b[4 * i + 1]))
        found.swapped = FoundBox{b[4 * i], b[4 * i + 1], b[4 * i + 2], b[4 * i + 3]};
    }
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
          const float pw = l.sides[k] / across, ph = l.sides[k] / down;
          const float cx = v[0] * kCentreVariance * pw + (static_cast<float>(x) + 0.5f) * stride / across;
          const float cy = v[1] * kCentreVariance * ph + (static_cast<float>(y) + 0.5f) * stride / down;
          const float bw = std::exp(v[2] * kSizeVariance) * pw, bh = std::exp(v[3] * kSizeVariance) * ph;
          take(i, cx - bw / 2, cy - bh / 2, cx + bw / 2, cy + bh / 2);
        }
  }
}

// Corners, score and class, each object once.
Status from_rows(const HostTensor& t, Candidates& found) {
  found.form = "YOLOv10 (corners in pixels, score and class a row)", found.pixels = found.each_once = true;
  found.advice = "export the model with such rows, or write the tensors by --output";
  const float* v = t.data<float>();
  for (int64_t i = 0; i < t.shape[1]; ++i, v += 6) {
    found.see(v[4]);
    const float label = std::round(v[5]);
    if (!(v[4] >= found.threshold)) continue;
    if (!(label >= 0 && label < 1e6f && std::abs(v[5] - label) < 1e-2f))
      return Error{Reason::bad_input, format("Read as %s, the last number of a row should be a class, and one is %g; %s.",
                                             found.form.c_str(), static_cast<double>(v[5]), found.advice.c_str())};
    found.add(v[0], v[1], v[2], v[3], v[4], static_cast<int64_t>(label));
  }
  return ok();
}

// Whether the last class of a query says that it found nothing, and all of them share one.
bool has_no_object(int64_t queries, int64_t classes, const DetectOptions& o) {
  if (o.preset == "rtdetr") return false;
  if (o.names > 0 && (classes == o.names || classes == o.names + 1)) return classes > o.names;
  if (classes == 91) return false;  // COCO's numbers as they are
  return o.preset == "detr" || classes == 92 || queries == 100;
}

Status from_queries(const OutputForm& said, const HostTensor& scores, const HostTensor& boxes, int64_t width, int64_t height,
                    const DetectOptions& o, Candidates& found) {
  const int64_t n = boxes.shape[1], classes = scores.shape[2];
  const float *s = scores.data<float>(), *b = boxes.data<float>();
  const bool shared = has_no_object(n, classes, o);
  // Some exporters write probabilities.
  const bool probabilities = std::all_of(s, s + n * classes, [](float v) { return v >= 0 && v <= 1; });
  const std::string how = probabilities ? "probabilities as the model gives them"
                          : shared      ? "softmax over the classes"
                                        : "sigmoid of each class";
  found.form = std::string(shared ? "DETR (" : "RT-DETR (") + how + (shared ? ", the last of them 'no object'" : "") +
               "; boxes as centre and size in 0..1)";
  found.advice = "export the model with such boxes, or write the tensors by --output";
  found.each_once = true;
  const int64_t named = shared ? classes - 1 : classes;
  if (o.names > 0 && o.names < named)
    return Error{Reason::bad_usage,
                 "The labels are " + std::to_string(o.names) + " lines, but output '" + printable(said.name) + "', read as " +
                     found.form + ", has " + std::to_string(named) + " classes; give one line for each" +
                     (!shared && named == o.names + 1 ? ", or the preset detr where the last is 'no object'." : ".")};
  for (int64_t i = 0; i < 4 * n; ++i) found.see_place(b[i]);
  const auto across = static_cast<float>(width), down = static_cast<float>(height);
  for (int64_t i = 0; i < n; ++i, s += classes, b += 4) {
    float sum = 0;
    const float largest = s[best_of(s, classes)];
    if (shared && !probabilities)
      for (int64_t c = 0; c < classes; ++c) sum += std::exp(s[c] - largest);
    const auto probability = [&](int64_t c) {
      if (probabilities) return s[c];
      return shared ? std::exp(s[c] - largest) / sum : sigmoid(s[c]);
    };
    const auto add = [&](int64_t c) {
      found.add_centred(b[0] * across, b[1] * down, b[2] * across, b[3] * down, probability(c), c);
    };
    if (shared && named > 0) add(best_of(s, named));
    for (int64_t c = 0; c < named && !shared; ++c) add(c);
  }
  return ok();
}

void from_list(const std::vector<HostTensor>& outputs, const BoxPlaces& at, Candidates& found) {
  const HostTensor &boxes = outputs[static_cast<size_t>(at.boxes)], &scores = outputs[static_cast<size_t>(at.scores)],
                   &labels = outputs[static_cast<size_t>(at.labels)];
  const int64_t n = std::min({boxes.elements() / 4, scores.elements(), labels.elements()});
  found.form = "torchvision (boxes in pixels, labels and scores)", found.pixels = true;
  found.advice = "export the model with boxes as corners in pixels, or write the tensors by --output";
  const float* b = boxes.data<float>();
  for (int64_t i = 0; i < n; ++i, b += 4) {
    found.see(scores.data<float>()[i]);
    const int64_t label = labels.dtype == DType::i64 ? labels.data<int64_t>()[i] : labels.data<int32_t>()[i];
    if (label >= 0 && label < (int64_t{1} << 30)) found.add(b[0], b[1], b[2], b[3], scores.data<float>()[i], label);
  }
}

}  // namespace

void Candidates::add(float x0, float y0, float x1, float y1, float score, int64_t label) {
  if (!(score >= threshold) || !std::isfinite(x0 + y0 + x1 + y1)) return;
  boxes.push_back({x0, y0, x1, y1, score, static_cast<int>(label)});
}

Result<Candidates> decode_boxes(DetectionForm form, const std::vector<OutputForm>& forms,
                                const std::vector<HostTensor>& outputs, int64_t width, int64_t height,
                                const DetectOptions& options) {
  Candidates found;
  found.threshold = options.threshold;
  switch (form) {
    case DetectionForm::grid: from_grid(outputs[0], width, height, found); break;
    case DetectionForm::anchors: from_anchors(outputs[0], found); break;
    case DetectionForm::columns: from_columns(outputs[0], found); break;
    case DetectionForm::cells: from_cells(outputs[0], width, height, found); break;
    case DetectionForm::rows: SPARKLE_CHECK(from_rows(outputs[0], found)); break;
    case DetectionForm::priors:
    case DetectionForm::queries: {
      const BoxPlaces at = pair_places(forms);
      const auto scores = static_cast<size_t>(at.scores), boxes = static_cast<size_t>(at.boxes);
      if (form == DetectionForm::priors) from_priors(outputs[scores], outputs[boxes], width, height, found);
      else SPARKLE_CHECK(from_queries(forms[scores], outputs[scores], outputs[boxes], width, height, options, found));
      break;
    }
    case DetectionForm::list: from_list(outputs, list_places(forms), found); break;
    case DetectionForm::none: break;
  }
  return found;
}

Status check_values(const Candidates& found, int64_t width, int64_t height) {
  const auto refused = [&](const std::string& wrong) {
    return Error{Reason::bad_input, "Read as " + found.form + ", " + wrong + "; " + found.advice + "."};
  };
  const auto number = [](float v) { return static_cast<double>(v); };
  if (found.least < -kSlack || found.most > 1 + kSlack)
    return refused(format("scores should lie in 0..1, and they are %g to %g", number(found.least), number(found.most)));
  // Priors at the border reach beyond the picture.
  const float beyond = found.each_once ? kSlack : 1.f;
  if (found.nearest < -beyond || found.farthest > 1 + beyond)
    return refused(
        format("boxes should lie in 0..1, and they reach from %g to %g", number(found.nearest), number(found.farthest)));
  const auto out_of_order = [&](const FoundBox& b) {
    return refused(format("boxes should have their corners in order, and one has %g, %g before %g, %g", number(b.x0),
                          number(b.y0), number(b.x1), number(b.y1)));
  };
  if (found.swapped) return out_of_order(*found.swapped);
  bool all_small = !found.boxes.empty() && std::min(width, height) >= 16;
  for (const FoundBox& b : found.boxes) {
    if (b.x1 < b.x0 - 0.01f || b.y1 < b.y0 - 0.01f) return out_of_order(b);
    all_small = all_small && b.x1 <= 1.5f && b.y1 <= 1.5f;
  }
  if (found.pixels && all_small) return refused("boxes should be in pixels of the input, and they lie in 0..1");
  return ok();
}

}  // namespace sparkle
