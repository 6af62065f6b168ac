#include "measure/checks/layer_check.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <mutex>
#include <random>

#include "families/values/element.h"
#include "families/gemm/gemm_shape.h"
#include "families/gemm/gemm_tiles.h"
#include "families/windows/window.h"
#include "base/system/out_of_memory.h"
#include "base/record.h"
#include "measure/choice_errors.h"

namespace sparkle {
namespace {

// The largest whole number among operands: f16 holds all whole numbers up to 2^11, so all sums of kShortRun products.
constexpr int64_t kMostWhole = 16;
static_assert(kMostWhole * kMostWhole * kShortRun <= 1 << 11);
constexpr double kLeastUnit = 0x1p-14;  // of products: below are f16's subnormal numbers, which devices may flush
constexpr double kMostSum = 0x1p22;     // of a sum, in whole numbers: scale and residuals add to it below 2^24
constexpr int64_t kChunk = 128;         // rows of one task
constexpr double kRounding = 1.2e-7;    // of an operation of fp32

uint64_t mixed(uint64_t x) {  // splitmix64's finaliser
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Whole numbers in [-most, most] times `unit` as an operand, and as they are.
Result<HostTensor> whole_tensor(const TensorDesc& desc, uint64_t seed, int64_t most, double unit, std::vector<int16_t>* kept) {
  SPARKLE_TRY(t, allocate_tensor(desc.dtype, {extent(desc.shape, desc.layout)}, "An operand"));
  std::mt19937_64 random(seed);
  const auto range = static_cast<uint64_t>(2 * most + 1);
  if (kept) kept->resize(static_cast<size_t>(t.elements()));
  for (int64_t i = 0; i < t.elements(); ++i) {
    const auto value = static_cast<int64_t>(random() % range) - most;
    if (kept) (*kept)[static_cast<size_t>(i)] = static_cast<int16_t>(value);
    store_element(desc.dtype, static_cast<double>(value) * unit, t.bytes.get() + i * size_of(desc.dtype));
  }
  return t;
}

// Where rows of an operand shaped like the output lie, and how far its channels are apart; axes of size 1 broadcast.
class Rows {
 public:
  Rows(const AnchorCall& call, const TensorDesc& desc) : desc_(desc), shape_(call.output.shape) {
    matrix_ = call.problem.kind == ProblemKind::matmul;
    if (matrix_) {
      stride_ = stride_from_end(desc, 0);
    } else {
      map_ = feature_map(desc);
      out_ = call.problem.out;
      stride_ = map_.c > 1 ? map_.channel_stride : 0;
    }
  }
  int64_t stride() const { return stride_; }
  int64_t at(int64_t row) const {
    int64_t place = desc_.layout.offset;
    if (matrix_) {
      const int rank = shape_.size();
      for (int axis = rank - 2; axis >= 0; --axis) {
        place += row % shape_[axis] * stride_from_end(desc_, rank - 1 - axis);
        row /= shape_[axis];
      }
      return place;
    }
    const int64_t q = row % out_[2], r = row / out_[2] % out_[1], z = row / out_[2] / out_[1] % out_[0];
    const int64_t n = row / out_[2] / out_[1] / out_[0];
    return place + (map_.n > 1 ? n * map_.image_stride : 0) + (map_.d > 1 ? z * map_.plane_stride : 0) +
           (map_.h > 1 ? r * map_.row_stride : 0) + (map_.w > 1 ? q * map_.pixel_stride : 0);
  }

 private:
  TensorDesc desc_;
  Dims shape_;
  bool matrix_ = false;
  FeatureMap map_;
  Triple out_{};
  int64_t stride_ = 0;
};

int64_t columns_of(const AnchorCall& call) {
  return call.problem.kind == ProblemKind::matmul ? call.output.shape.back() : call.problem.k;
}
int64_t rows_of(const AnchorCall& call) { return call.output.shape.product() / std::max<int64_t>(1, columns_of(call)); }

Error wrong(const AnchorCall& call, const std::string& who, const std::string& what) {
  return {Reason::internal, who + " computes " + short_name(call.problem) + " wrongly: " + what};
}

std::string place_text(int64_t row, int64_t column) {
  return "row " + std::to_string(row) + ", column " + std::to_string(column);
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

}  // namespace

void Checked::add(const Checked& other) {
  if (times == 0) {
    *this = other;
    return;
  }
  exact &= other.exact;
  bound = std::max(bound, other.bound), error = std::max(error, other.error);
  rows = std::min(rows, other.rows), times += other.times;
}

std::string to_text(const Checked& c) {
  if (c.times == 0) return "not compared";
  char text[160];
  const std::string rows = c.whole() ? "whole output" : std::to_string(c.rows) + " of " + std::to_string(c.of_rows) + " rows";
  if (c.exact) std::snprintf(text, sizeof text, "%s exact", rows.c_str());
  else std::snprintf(text, sizeof text, "%s within %.1e", rows.c_str(), c.bound);
  return text + std::string(", ") + std::to_string(c.times) + " times, seed " + std::to_string(c.seed);
}

uint64_t base_seed(uint64_t base) {
  // Short enough to be typed again.
  static const uint64_t drawn = [] {
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    return 1 + mixed(std::random_device{}() ^ static_cast<uint64_t>(now)) % 999999;
  }();
  return base != 0 ? base : drawn;
}

uint64_t next_seed(uint64_t base, const Problem& problem) {
  static std::mutex mutex;
  static std::map<std::pair<uint64_t, std::string>, uint64_t> drawn;
  const std::string text = to_text(problem);
  uint64_t turn = 0;
  {
    const std::lock_guard lock(mutex);
    turn = ++drawn[{base_seed(base), text}];
  }
  return mixed(mixed(base_seed(base) + hash_text(text)) + turn) >> 32;
}

double rounding_of(DType type) { return type == DType::f16 ? 0x1p-10 : type == DType::bf16 ? 0x1p-7 : 0; }

uint64_t seed_of(uint64_t seed, size_t operand) { return mixed(seed * 64 + operand + 1); }

Result<std::unique_ptr<LayerCheck>> LayerCheck::make(const AnchorCall& call, uint64_t seed, uint64_t weights,
                                                     Executor& executor, double most_products) {
  std::unique_ptr<LayerCheck> check(new LayerCheck(call, seed));
  SPARKLE_CHECK(check->prepare(weights, executor, most_products));
  return check;
}

Status LayerCheck::prepare(uint64_t weights, Executor& executor, double most_products) {
  const Problem& p = call_.problem;
  const Epilogue& e = p.epilogue;
  const double depth = std::max(1.0, depth_of(p));
  const int64_t most = std::clamp<int64_t>(static_cast<int64_t>(std::sqrt(kMostSum / depth)), 1, kMostWhole);
  // Operands and sums of about one, as in networks: activations see all of their range, f16 does not overflow.
  const double x_unit = std::exp2(-std::ceil(std::log2(static_cast<double>(most))));
  const double w_unit = std::max(x_unit * std::exp2(-std::round(std::log2(depth) / 2)), kLeastUnit / x_unit);
  unit_ = x_unit * w_unit;
  std::vector<int16_t> x, w;
  for (size_t i = 0; i < call_.inputs.size(); ++i) {
    const uint64_t seed = seed_of(i == 0 ? seed_ : weights, i);
    const size_t place = i - 2;
    const bool scale = i >= 2 && place < static_cast<size_t>(e.scale);
    // A scale of 1 or -1 or 0; biases and residuals as large as sums.
    const int64_t largest = i < 2 ? most : scale ? 1 : std::max<int64_t>(1, static_cast<int64_t>(1 / unit_) / 2);
    const double unit = i == 0 ? x_unit : i == 1 ? w_unit : scale ? 1 : unit_;
    SPARKLE_TRY(operand, whole_tensor(call_.inputs[i], seed, std::min<int64_t>(largest, 1 << 21), unit,
                                      i == 0   ? &x
                                      : i == 1 ? &w
                                               : nullptr));
    inputs_.push_back(std::move(operand));
  }
  const auto piecewise =
      e.activation == Activation::none || e.activation == Activation::relu || e.activation == Activation::clip;
  const auto f32 = [](const TensorDesc& d) { return d.dtype == DType::f32; };
  exact_ = depth <= kMostSum && e.alpha == 1 && piecewise && !e.has_post_op() && f32(call_.output) &&
           std::all_of(call_.inputs.begin(), call_.inputs.end(), f32);

  const int64_t rows = rows_of(call_), columns = columns_of(call_);
  const double per_row = depth * static_cast<double>(columns);
  const auto count = static_cast<int64_t>(std::clamp(most_products / per_row, 1.0, static_cast<double>(rows)));
  if (count == rows) {
    for (int64_t row = 0; row < rows; ++row) rows_.push_back(row);
  } else {
    std::mt19937_64 random(seed_of(seed_, call_.inputs.size()));
    for (int64_t i = 0; i < count; ++i) rows_.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(rows)));
    std::sort(rows_.begin(), rows_.end());
    rows_.erase(std::unique(rows_.begin(), rows_.end()), rows_.end());
  }
  wanted_.resize(rows_.size() * static_cast<size_t>(columns));
  const ExactSums exact(call_, x, w);
  const auto chunks = (static_cast<int64_t>(rows_.size()) + kChunk - 1) / kChunk;
  std::vector<double> largest(static_cast<size_t>(chunks), 0);
  parallel_for(executor, static_cast<int>(chunks), [&](int chunk, int) {
    const auto first = static_cast<int64_t>(chunk) * kChunk;
    const auto rows_here = std::min<int64_t>(kChunk, static_cast<int64_t>(rows_.size()) - first);
    std::vector<int32_t> sums(static_cast<size_t>(rows_here * columns));
    exact.compute({rows_.data() + first, static_cast<size_t>(rows_here)}, sums.data());
    for (int64_t i = 0; i < rows_here; ++i) {
      float* y = wanted_.data() + (first + i) * columns;
      finish_row(rows_[static_cast<size_t>(first + i)], sums.data() + i * columns, y);
      for (int64_t k = 0; k < columns; ++k)
        largest[static_cast<size_t>(chunk)] =
            std::max(largest[static_cast<size_t>(chunk)], std::abs(static_cast<double>(y[k])));
    }
  });
  // At least the deviation of a sum of uniform numbers: few outputs may all be small by chance, their errors are not.
  largest_ = static_cast<double>(most * most) * unit_ / 3 * std::sqrt(depth);
  for (const double value : largest) largest_ = std::max(largest_, value);
  return ok();
}

// What an epilogue makes of a row of sums, by its definition in families/values/epilogue.h.
void LayerCheck::finish_row(int64_t row, const int32_t* sums, float* y) const {
  const Epilogue& e = call_.problem.epilogue;
  const int64_t columns = columns_of(call_);
  struct Operand {
    const TensorDesc& desc;
    const std::byte* bytes;
    int64_t at, stride;
    double operator()(int64_t k) const { return load_element(desc.dtype, bytes + (at + k * stride) * size_of(desc.dtype)); }
  };
  std::vector<Operand> operands;
  for (size_t i = 2; i < call_.inputs.size(); ++i) {
    const TensorDesc& desc = call_.inputs[i];
    const bool vector = i - 2 < static_cast<size_t>(e.scale + e.bias);
    if (vector) {
      operands.push_back({desc, inputs_[i].bytes.get(), desc.layout.offset, stride_from_end(desc, 0)});
    } else {
      const Rows rows(call_, desc);
      operands.push_back({desc, inputs_[i].bytes.get(), rows.at(row), rows.stride()});
    }
  }
  std::vector<double> values;
  for (int64_t k = 0; k < columns; ++k) {
    size_t next = 0;
    double v = e.alpha * (sums[k] * unit_);
    if (e.scale) v *= operands[next++](k);
    if (e.bias) v += operands[next++](k);
    for (int i = 0; i < e.residuals_before; ++i) v += operands[next++](k);
    v = activate(e.activation, e.a, e.b, v);
    for (int i = 0; i < e.residuals_after; ++i) v += operands[next++](k);
    if (e.has_post_op()) {
      values.assign(1, v);
      while (next < operands.size()) values.push_back(operands[next++](k));
      v = evaluate(e.post_op, values);
    }
    y[k] = static_cast<float>(v);
  }
}

double LayerCheck::bound_of(double error, double accuracy) const {
  // What comes behind the sums may round: activations, narrow types.
  if (!exact_) return std::max(accuracy, error + rounding_of(call_.output.dtype));
  return error == 0 ? 0 : error + kRounding * (8 + 2 * std::sqrt(depth_of(call_.problem)));
}

Status LayerCheck::accept(const float* y, double bound, const std::string& who, Checked& checked) const {
  const Rows rows(call_, call_.output);
  const int64_t columns = columns_of(call_), stride = rows.stride();
  const bool whole = static_cast<int64_t>(rows_.size()) == rows_of(call_);
  if (!whole) SPARKLE_CHECK(all_written(call_, y, who));
  const double allowed = bound * largest_;
  double worst = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const float *got = y + rows.at(rows_[i]), *want = wanted_.data() + static_cast<int64_t>(i) * columns;
    for (int64_t k = 0; k < columns; ++k) {
      const double difference = std::abs(static_cast<double>(got[k * stride]) - static_cast<double>(want[k]));
      if (!(difference <= allowed))
        return wrong(call_, who,
                     (std::isnan(got[k * stride]) ? "nothing was written to " : "it gave " + number(got[k * stride]) + " at ") +
                         place_text(rows_[i], k) + (bound > 0 ? ", not within " + number(allowed) + " of " : " instead of ") +
                         number(want[k]) + " (seed " + std::to_string(seed_) + ").");
      worst = std::max(worst, difference);
    }
  }
  Checked now;
  now.exact = bound == 0, now.bound = bound, now.error = worst / largest_;
  now.rows = static_cast<int64_t>(rows_.size()), now.of_rows = rows_of(call_), now.times = 1, now.seed = seed_;
  checked.add(now);
  return ok();
}

Status all_written(const AnchorCall& call, const float* y, const std::string& who) {
  const Rows rows(call, call.output);
  const int64_t columns = columns_of(call), count = rows_of(call), stride = rows.stride();
  for (int64_t row = 0; row < count; ++row) {
    const float* got = y + rows.at(row);
    for (int64_t k = 0; k < columns; ++k)
      if (std::isnan(got[k * stride])) return wrong(call, who, "nothing was written to " + place_text(row, k) + ".");
  }
  return ok();
}

}  // namespace sparkle
