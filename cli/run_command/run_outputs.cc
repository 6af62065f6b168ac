// Outputs of `sparkle run`: classes, figures, files.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>

#include "base/printable.h"
#include "onnx/npy.h"
#include "run_command/run_options.h"

namespace sparkle::cli {
namespace {

std::string file_name(const std::string& name) {
  std::string s;
  for (const char c : name) s += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' ? c : '_';
  s.resize(std::min<size_t>(s.size(), 100));
  return s.empty() || s[0] == '.' ? "_" + s : s;
}

struct Range {
  double min = 0, mean = 0, max = 0;
  bool finite = true;
};

Range range_of(const HostTensor& t) {
  Range r;
  const int64_t n = t.elements();
  if (t.dtype != DType::f32 || n == 0) return r;
  r.min = INFINITY, r.max = -INFINITY;
  for (int64_t i = 0; i < n; ++i) {
    const double v = t.data<float>()[i];
    r.finite = r.finite && std::isfinite(v);
    r.min = std::min(r.min, v), r.max = std::max(r.max, v), r.mean += v / static_cast<double>(n);
  }
  return r;
}

nlohmann::json show_classes(const std::string& name, const HostTensor& output, const std::vector<std::string>& labels, int top,
                            bool quiet) {
  const auto count = static_cast<size_t>(output.elements());
  std::vector<double> p(output.data<float>(), output.data<float>() + count);
  const bool distribution = std::abs(std::accumulate(p.begin(), p.end(), 0.0) - 1) < 1e-3 &&
                            std::all_of(p.begin(), p.end(), [](double v) { return v >= 0; });
  const double largest = *std::max_element(p.begin(), p.end());
  if (!distribution) {
    for (double& v : p) v = std::exp(v - largest);
    const double sum = std::accumulate(p.begin(), p.end(), 0.0);
    for (double& v : p) v /= sum;
  }
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t shown = std::min(count, static_cast<size_t>(std::max(top, 1)));
  std::partial_sort(order.begin(), order.begin() + static_cast<long>(shown), order.end(), [&](size_t a, size_t b) {
    const float x = output.data<float>()[a], y = output.data<float>()[b];
    return x != y ? x > y : a < b;
  });
  nlohmann::json rows = nlohmann::json::array();
  if (!quiet)
    std::printf("output   '%s', %zu classes, %s\n", printable(name).c_str(), count,
                distribution ? "probabilities as the model gives them" : "probabilities by softmax");
  for (size_t i = 0; i < shown; ++i) {
    const size_t c = order[i];
    const std::string label = c < labels.size() ? labels[c] : "";
    if (!quiet) std::printf("  %6.2f %%  %4zu  %s\n", 100 * p[c], c, printable(label).c_str());
    rows.push_back({{"class", c}, {"label", label}, {"probability", p[c]}, {"value", output.data<float>()[c]}});
  }
  return {{"classes", count}, {"softmax_applied", !distribution}, {"top", rows}};
}

}  // namespace

int64_t class_count(const HostTensor& output) {
  if (output.dtype != DType::f32 || output.elements() < 2 || !range_of(output).finite) return 0;
  const int64_t widest = *std::max_element(output.shape.begin(), output.shape.end());
  return widest == output.elements() ? widest : 0;
}

nlohmann::json show_output(const std::string& name, const HostTensor& output, DType stored,
                           const std::vector<std::string>& labels, int top, bool quiet) {
  nlohmann::json json{
      {"name", name}, {"dtype", name_of(stored)}, {"shape", std::vector<int64_t>(output.shape.begin(), output.shape.end())}};
  if (top > 0 && class_count(output) > 0) {
    json.update(show_classes(name, output, labels, top, quiet));
    return json;
  }
  const std::string head = std::string(name_of(stored)) + " " + output.shape.to_string();
  if (output.dtype != DType::f32 || output.elements() == 0) {
    if (!quiet) std::printf("output   '%s', %s\n", printable(name).c_str(), head.c_str());
    return json;
  }
  const Range r = range_of(output);
  if (!quiet)
    std::printf("output   '%s', %s, min %.6g, mean %.6g, max %.6g%s\n", printable(name).c_str(), head.c_str(), r.min, r.mean,
                r.max, r.finite ? "" : " (not all values are finite)");
  json.update({{"min", r.min}, {"mean", r.mean}, {"max", r.max}, {"finite", r.finite}});
  return json;
}

std::optional<Image> picture_of(const HostTensor& t) {
  if (t.dtype != DType::f32 || t.shape.size() != 4 || t.shape[0] != 1 || (t.shape[1] != 1 && t.shape[1] != 3)) return {};
  if (t.shape[2] < 8 || t.shape[3] < 8 || t.shape[2] * t.shape[3] > 4 * kMaxPixels) return {};
  const Range r = range_of(t);
  if (!r.finite) return {};
  if (r.min >= -1e-3 && r.max <= 1.001) return to_image(t, 255.f);
  // Networks overshoot 0..255 a little; writing clamps.
  if (r.min >= -1e-3 ? r.max > 320 : r.min < -64 || r.max < 64 || r.max > 320) return {};
  return to_image(t, 1.f);
}

std::string tensor_path(const std::string& directory, const std::string& name) {
  return (std::filesystem::path(directory) / (file_name(name) + ".npy")).string();
}

Status save_output(const std::string& directory, const std::string& name, const HostTensor& output, const HostTensor& figures,
                   std::vector<std::string>& written) {
  const std::string base = (std::filesystem::path(directory) / file_name(name)).string();
  SPARKLE_CHECK(write_npy(base + ".npy", output));
  written.push_back(base + ".npy");
  if (const auto picture = picture_of(figures)) {
    SPARKLE_CHECK(write_png(base + ".png", *picture));
    written.push_back(base + ".png");
  }
  return ok();
}

}  // namespace sparkle::cli
