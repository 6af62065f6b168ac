#include "vision/tasks/answer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/system/out_of_memory.h"
#include "base/text/format.h"
#include "report/float_type.h"
#include "vision/pictures/resample.h"

namespace sparkle {
namespace {

std::string label_of(int64_t index, const std::vector<std::string>& labels) {
  return index >= 0 && index < static_cast<int64_t>(labels.size()) ? labels[static_cast<size_t>(index)] : "";
}

Error unfit(Task task, const HostTensor& t, const std::string& wants) {
  return {Reason::bad_input, std::string("The task ") + name_of(task) + " does not fit an output of " + t.shape.to_string() +
                                 "; it wants " + wants + "."};
}

void classify(const HostTensor& t, const AnswerOptions& o, Answer& answer) {
  const auto count = static_cast<size_t>(t.elements());
  const float* v = t.data<float>();
  std::vector<double> p(v, v + count);
  const bool distribution = std::abs(std::accumulate(p.begin(), p.end(), 0.0) - 1) < 1e-3 &&
                            std::all_of(p.begin(), p.end(), [](double x) { return x >= 0; });
  if (!distribution) {
    const double largest = *std::max_element(p.begin(), p.end());
    for (double& x : p) x = std::exp(x - largest);
    const double sum = std::accumulate(p.begin(), p.end(), 0.0);
    for (double& x : p) x /= sum;
  }
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t shown = std::min(count, static_cast<size_t>(std::max(o.top, 1)));
  std::partial_sort(order.begin(), order.begin() + static_cast<long>(shown), order.end(),
                    [&](size_t a, size_t b) { return v[a] != v[b] ? v[a] > v[b] : a < b; });
  for (size_t i = 0; i < shown; ++i) answer.classes.push_back({static_cast<int64_t>(order[i]), p[order[i]], v[order[i]]});
}

// Scores or classes of pixels: [1, C, h, w], [1, h, w, C], [1, h, w] or [h, w], the last two of integers.
struct Plane {
  int64_t classes = 1, height = 0, width = 0, apart = 0, step = 1;  // between classes, between pixels
};

bool plane_of(const HostTensor& t, const Preprocess& p, Plane& plane) {
  Dims s = t.shape;
  while (s.size() > 2 && s[0] == 1 && !(s.size() == 3 && is_float(t.dtype))) {
    Dims rest;
    for (int a = 1; a < s.size(); ++a) rest.push_back(s[a]);
    s = rest;
  }
  if (s.size() == 2) plane = {1, s[0], s[1], 0, 1};
  else if (s.size() != 3) return false;
  else if (p.channels_last || (s[2] < s[0] && s[2] < s[1])) plane = {s[2], s[0], s[1], 1, s[2]};
  else plane = {s[0], s[1], s[2], s[1] * s[2], 1};
  return plane.height > 0 && plane.width > 0 && plane.classes > 0;
}

// Where a pixel of the picture lies in a plane over the input tensor; nearest, and the edge beyond it.
struct Under {
  Under(const Placement& at, int64_t tensor_width, int64_t tensor_height, const Plane& plane)
      : at_(at),
        across_(static_cast<double>(plane.width) / static_cast<double>(tensor_width)),
        down_(static_cast<double>(plane.height) / static_cast<double>(tensor_height)),
        plane_(plane) {}
  int64_t x(int px) const { return inside((px + 0.5 - at_.offset_x) / at_.scale_x * across_, plane_.width); }
  int64_t y(int py) const { return inside((py + 0.5 - at_.offset_y) / at_.scale_y * down_, plane_.height); }

 private:
  static int64_t inside(double v, int64_t size) {
    return std::clamp(static_cast<int64_t>(std::floor(v)), int64_t{0}, size - 1);
  }
  Placement at_;
  double across_, down_;
  Plane plane_;
};

Status segment(const HostTensor& t, const Preprocess& p, int64_t width, int64_t height, const Placement& at, Answer& answer) {
  Plane plane;
  const bool integers = t.dtype == DType::i64 || t.dtype == DType::i32 || t.dtype == DType::u8;
  if (!plane_of(t, p, plane) || (integers ? plane.classes != 1 : t.dtype != DType::f32) || plane.classes > 65535)
    return unfit(Task::segment, t, "scores 1xCxHxW, or classes 1xHxW of integers");
  std::vector<uint16_t> classes(static_cast<size_t>(plane.height * plane.width));
  for (size_t i = 0; i < classes.size(); ++i) {
    int64_t best = 0;
    if (integers) {
      best = t.dtype == DType::i64 ? t.data<int64_t>()[i] : t.dtype == DType::i32 ? t.data<int32_t>()[i] : t.data<uint8_t>()[i];
    } else {
      const float* v = t.data<float>() + static_cast<int64_t>(i) * plane.step;
      if (plane.classes == 1) best = v[0] > 0.5f;  // one class against the rest
      for (int64_t c = 1; c < plane.classes; ++c)
        if (v[c * plane.apart] > v[best * plane.apart]) best = c;
    }
    classes[i] = static_cast<uint16_t>(std::clamp<int64_t>(best, 0, 65535));
  }
  const Under under(at, width, height, plane);
  answer.mask = {at.width, at.height, {}};
  answer.mask.classes.reserve(static_cast<size_t>(at.width) * static_cast<size_t>(at.height));
  for (int y = 0; y < at.height; ++y)
    for (int x = 0; x < at.width; ++x)
      answer.mask.classes.push_back(classes[static_cast<size_t>(under.y(y) * plane.width + under.x(x))]);
  return ok();
}

Status depth(const HostTensor& t, const Preprocess& p, int64_t width, int64_t height, const Placement& at, Answer& answer) {
  Plane plane;
  HostTensor flat = t;
  while (flat.shape.size() > 2 && flat.shape[0] == 1) {
    Dims rest;
    for (int a = 1; a < flat.shape.size(); ++a) rest.push_back(flat.shape[a]);
    flat.shape = rest;
  }
  if (flat.dtype != DType::f32 || !plane_of(flat, p, plane) || plane.classes != 1)
    return unfit(Task::depth, t, "one value a pixel, 1x1xHxW or 1xHxW");
  const float* v = flat.data<float>();
  const auto [least, most] = std::minmax_element(v, v + flat.elements());
  answer.least = *least, answer.most = *most;
  const Under under(at, width, height, plane);
  answer.picture = Image::filled(at.width, at.height, 1, 0);
  for (int y = 0; y < at.height; ++y)
    for (int x = 0; x < at.width; ++x) *answer.picture.at(x, y) = v[under.y(y) * plane.width + under.x(x)];
  return ok();
}

// As 1xCxHxW: [C, H, W] and channels last are turned around. Errors: out_of_memory.
Result<HostTensor> channels_first(const HostTensor& t, const Preprocess& p) {
  HostTensor whole = t;
  if (t.shape.size() == 3) whole.shape = {1, t.shape[0], t.shape[1], t.shape[2]};
  if (!p.channels_last || whole.shape.size() != 4 || (whole.shape[3] != 1 && whole.shape[3] != 3)) return whole;
  const int64_t pixels = whole.shape[1] * whole.shape[2], channels = whole.shape[3];
  SPARKLE_TRY(turned, allocate_tensor(DType::f32, {1, channels, whole.shape[1], whole.shape[2]}, "The enlarged picture"));
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t i = 0; i < pixels; ++i) turned.data<float>()[c * pixels + i] = t.data<float>()[i * channels + c];
  return turned;
}

// A grey network on a colour picture enlarges its luma; the colours are enlarged by bicubic interpolation.
Status upscale(const HostTensor& output, const Preprocess& p, const Rows& picture, Answer& answer) {
  constexpr const char* kWanted = "a picture 1x1xHxW or 1x3xHxW";
  if (output.dtype != DType::f32) return unfit(Task::upscale, output, kWanted);
  SPARKLE_TRY(t, channels_first(output, p));
  if (t.shape.size() != 4 || t.shape[0] != 1 || (t.shape[1] != 1 && t.shape[1] != 3))
    return unfit(Task::upscale, output, kWanted);
  answer.picture = undone(t, p);
  Image& out = answer.picture;
  if (out.channels == 3 || picture.channels != 3) return ok();
  Preprocess colors = p;
  colors.color = Color::rgb, colors.scale = 1, colors.mean = {0, 0, 0}, colors.std = {1, 1, 1};
  colors.channels_last = false, colors.batched = true, colors.type = DType::f32;
  SPARKLE_TRY(seen, to_tensor(picture, colors));
  Image enlarged = resample(to_image(seen, 1), out.width, out.height, Filter::bicubic);
  for (size_t i = 0; i < out.pixels.size(); ++i) {
    float* rgb = enlarged.pixels.data() + 3 * i;
    const float change = out.pixels[i] - luma(rgb);  // the same difference in each channel keeps Cb and Cr
    for (int c = 0; c < 3; ++c) rgb[c] = std::clamp(rgb[c] + change, 0.f, 255.f);
  }
  out = std::move(enlarged);
  return ok();
}

Result<Answer> answered(Task task, const std::vector<std::string>& names, std::vector<HostTensor> outputs, const Preprocess& p,
                        const Rows& picture, const AnswerOptions& o) {
  Answer answer;
  answer.task = task;
  for (HostTensor& t : outputs) {
    SPARKLE_TRY(figures, in_float_type(t, DType::f32));
    t = std::move(figures);
  }
  if (outputs.empty() || outputs[0].elements() == 0)
    return Error{Reason::bad_input,
                 std::string("The model gives nothing that the task ") + name_of(task) + " could be answered from."};
  const Dims input = tensor_shape(picture.width, picture.height, p);
  const int64_t height = input[height_axis(p)], width = input[height_axis(p) + 1];
  const Placement at = placement_of(p, picture.width, picture.height);
  const HostTensor& first = outputs[0];
  switch (task) {
    case Task::classify:
      if (first.dtype != DType::f32) return unfit(task, first, "one row of scores");
      classify(first, o, answer);
      break;
    case Task::detect: {
      DetectOptions options = o.detect;
      options.preset = p.preset;
      SPARKLE_TRY(found, detect(names, outputs, width, height, at, options));
      answer.boxes = std::move(found.boxes), answer.form = std::move(found.form);
      break;
    }
    case Task::segment: SPARKLE_CHECK(segment(first, p, width, height, at, answer)); break;
    case Task::depth: SPARKLE_CHECK(depth(first, p, width, height, at, answer)); break;
    case Task::upscale: SPARKLE_CHECK(upscale(first, p, picture, answer)); break;
    case Task::embed:
      if (first.dtype != DType::f32) return unfit(task, first, "numbers");
      answer.embedding.assign(first.data<float>(), first.data<float>() + first.elements());
      break;
  }
  return answer;
}

double length_of(const std::vector<float>& v) {
  double sum = 0;
  for (const float x : v) sum += static_cast<double>(x) * static_cast<double>(x);
  return std::sqrt(sum);
}

}  // namespace

std::map<uint16_t, double> shares_of(const Mask& mask) {
  std::map<uint16_t, double> shares;
  for (const uint16_t c : mask.classes) shares[c] += 1;
  for (auto& [c, share] : shares) share /= static_cast<double>(mask.classes.size());
  return shares;
}

Image undone(const HostTensor& output, const Preprocess& p) {
  Image image = to_image(output, 1);
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    const size_t c = image.channels == 3 ? i % 3 : 0;
    image.pixels[i] = std::clamp((image.pixels[i] * p.std[c] + p.mean[c]) / (p.scale != 0 ? p.scale : 1), 0.f, 255.f);
  }
  if (image.channels == 3 && p.color == Color::bgr)
    for (size_t i = 0; i + 2 < image.pixels.size(); i += 3) std::swap(image.pixels[i], image.pixels[i + 2]);
  return image;
}

Result<Answer> make_answer(Task task, const std::vector<std::string>& names, const std::vector<HostTensor>& outputs,
                           const Preprocess& preprocess, const Rows& picture, const AnswerOptions& options) {
  return guard_memory("The answer", [&] { return answered(task, names, outputs, preprocess, picture, options); });
}

nlohmann::json to_json(const Answer& a, const std::vector<std::string>& labels) {
  nlohmann::json json{{"task", name_of(a.task)}};
  switch (a.task) {
    case Task::classify:
      json["classes"] = nlohmann::json::array();
      for (const ClassScore& c : a.classes)
        json["classes"].push_back(
            {{"class", c.index}, {"label", label_of(c.index, labels)}, {"probability", c.probability}, {"value", c.value}});
      break;
    case Task::detect:
      if (!a.form.empty()) json["form"] = a.form;
      json["boxes"] = nlohmann::json::array();
      for (const FoundBox& b : a.boxes)
        json["boxes"].push_back(
            {{"class", b.label}, {"label", label_of(b.label, labels)}, {"score", b.score}, {"box", {b.x0, b.y0, b.x1, b.y1}}});
      break;
    case Task::segment:
      json["width"] = a.mask.width, json["height"] = a.mask.height, json["classes"] = nlohmann::json::array();
      for (const auto& [c, share] : shares_of(a.mask))
        json["classes"].push_back({{"class", c}, {"label", label_of(c, labels)}, {"share", share}});
      break;
    case Task::depth: json["least"] = a.least, json["most"] = a.most; [[fallthrough]];
    case Task::upscale: json["width"] = a.picture.width, json["height"] = a.picture.height; break;
    case Task::embed: json["length"] = length_of(a.embedding), json["embedding"] = a.embedding; break;
  }
  return json;
}

std::vector<std::string> to_lines(const Answer& a, const std::vector<std::string>& labels) {
  std::vector<std::string> lines;
  const auto name = [&](int64_t c) {
    const std::string label = label_of(c, labels);
    return label.empty() ? "class " + std::to_string(c) : label;
  };
  for (const ClassScore& c : a.classes)
    lines.push_back(format("%6.2f %%  %4lld  ", 100 * c.probability, static_cast<long long>(c.index)) +
                    label_of(c.index, labels));
  for (const FoundBox& b : a.boxes)
    lines.push_back(format("%6.2f %%  %7.1f %7.1f %7.1f %7.1f  ", 100.0 * static_cast<double>(b.score),
                           static_cast<double>(b.x0), static_cast<double>(b.y0), static_cast<double>(b.x1),
                           static_cast<double>(b.y1)) +
                    name(b.label));
  if (a.task == Task::detect && a.boxes.empty()) lines.emplace_back("nothing found above the threshold");
  if (a.task == Task::segment)
    for (const auto& [c, share] : shares_of(a.mask))
      lines.push_back(format("%6.2f %%  %4d  ", 100 * share, static_cast<int>(c)) + label_of(c, labels));
  if (a.task == Task::upscale) lines.push_back("picture of " + a.picture.size_text());
  if (a.task == Task::depth)
    lines.push_back(format("from %.6g to %.6g", static_cast<double>(a.least), static_cast<double>(a.most)));
  if (a.task == Task::embed) lines.push_back(format("%zu numbers of length %.6g", a.embedding.size(), length_of(a.embedding)));
  return lines;
}

}  // namespace sparkle
