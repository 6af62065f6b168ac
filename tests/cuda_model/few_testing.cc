#include "cuda_model/few_testing.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cuda/stages/products/gemm_few.h"
#include "base/half_floats.h"
#include "cuda_model/model.h"
#include "families/gemm/gemm.h"
#include "families/values/activation.h"

namespace sparkle::cuda {
namespace {

constexpr double kSlope = 0.2, kTop = 1.5;  // parameters of activations

TensorDesc planes(DType type, const Dims& shape, int gap) {
  TensorDesc d{type, shape, row_major(shape)};
  const int64_t row = shape[3] + gap;
  d.layout.strides = {shape[1] * shape[2] * row, shape[2] * row, row, 1};
  return d;
}
Stage stage_of(const FewLayer& v) {
  const DType type = v.fp16 ? DType::f16 : DType::f32;
  GemmParams p;
  p.operands = OperandType::f16;
  p.window.filter = {1, v.r, v.s}, p.window.pad_begin = {0, v.pad_h, v.pad_w};
  p.epilogue.scale = v.scale, p.epilogue.bias = v.bias;
  p.epilogue.activation = static_cast<Activation>(v.activation);
  p.epilogue.alpha = 0.75, p.epilogue.a = kSlope, p.epilogue.b = kTop;
  Stage stage;
  stage.params = p;
  stage.inputs = {planes(type, {v.n, v.c, v.h, v.w}, v.gap_x), planes(type, {v.k, v.c, v.r, v.s}, 0)};
  for (int i = 0; i < v.scale + v.bias; ++i) stage.inputs.push_back({type, {v.k}, row_major({v.k})});
  stage.outputs = {planes(type, {v.n, v.k, v.p, v.q}, v.gap_y)};
  return stage;
}

// A tensor's bytes, gaps of NaN among them, and its elements as kernels multiply them.
struct Data {
  TensorDesc desc;
  std::vector<unsigned char> bytes;

  Data(const TensorDesc& d, std::mt19937& random)
      : desc(d), bytes(static_cast<size_t>(extent(d.shape, d.layout) * size_of(d.dtype)), 0xff) {
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < d.elements(); ++i) {
      const float value = normal(random);
      const uint16_t half = float_to_half(value);
      std::memcpy(bytes.data() + place(i) * static_cast<size_t>(size_of(d.dtype)),
                  d.dtype == DType::f16 ? static_cast<const void*>(&half) : &value, static_cast<size_t>(size_of(d.dtype)));
    }
  }
  size_t place(int64_t element) const {
    int64_t at = 0;
    for (int axis = desc.shape.size() - 1; axis >= 0; --axis) {
      at += element % desc.shape[axis] * desc.layout.strides[axis];
      element /= desc.shape[axis];
    }
    return static_cast<size_t>(at);
  }
  double read(size_t at) const {
    if (desc.dtype == DType::f16) {
      uint16_t half = 0;
      std::memcpy(&half, bytes.data() + at * 2, 2);
      return static_cast<double>(half_to_float(half));
    }
    float value = 0;
    std::memcpy(&value, bytes.data() + at * 4, 4);
    return static_cast<double>(value);
  }
  double rounded(int64_t n, int64_t c, int64_t h, int64_t w) const {
    const auto& s = desc.layout.strides;
    return static_cast<double>(
        half_to_float(float_to_half(static_cast<float>(read(static_cast<size_t>(n * s[0] + c * s[1] + h * s[2] + w * s[3]))))));
  }
};

}  // namespace

std::string FewLayer::text() const {
  const auto number = [](int v) { return std::to_string(v); };
  return "n" + number(n) + " c" + number(c) + " k" + number(k) + " " + number(h) + "x" + number(w) + " filter " + number(r) +
         "x" + number(s) + " pad " + number(pad_h) + "," + number(pad_w) + " out " + number(p) + "x" + number(q) + " gaps " +
         number(gap_x) + "," + number(gap_y) + (fp16 ? " fp16" : "") + (scale ? " scale" : "") + (bias ? " bias" : "") +
         " activation " + number(activation);
}

FewLayer random_few_layer(std::mt19937& random) {
  const auto pick = [&](int low, int high) { return low + static_cast<int>(random() % static_cast<uint32_t>(high - low + 1)); };
  FewLayer v;
  const bool copied = pick(0, 1) == 0;
  v.n = pick(1, 3), v.c = pick(0, 2) == 0 ? 1 : pick(1, 5), v.k = pick(0, 1) ? pick(1, 8) : pick(1, 20);
  v.r = pick(1, 7), v.s = pick(1, 7);
  if (v.c == 1 && pick(0, 2) > 0) v.r = 3 + 2 * pick(0, 2);
  if (v.c * v.r > kFewRows) v.c = 3;
  v.h = v.r + pick(0, 17), v.w = v.s + pick(0, 30);
  if (copied) {
    v.h = (v.h + 3) / 4 * 4, v.w = (v.w + 1) / 2 * 2;
  } else {
    v.pad_h = pick(0, 2), v.pad_w = pick(0, 3), v.gap_x = pick(0, 2), v.gap_y = pick(0, 1);
  }
  v.p = v.h + 2 * v.pad_h - v.r + 1, v.q = v.w + 2 * v.pad_w - v.s + 1;
  v.fp16 = pick(0, 2) == 0, v.scale = pick(0, 1), v.bias = pick(0, 1);
  v.activation = pick(0, 1) ? pick(0, 14) : pick(0, 1);
  return v;
}

std::string few_kernel_of(const FewLayer& layer) {
  Reason unused = Reason::none;
  const auto tile = few_tile(stage_of(layer), unused);
  return tile ? few_kernel_name(*tile) : "";
}

std::string run_few_in_model(const FewLayer& v, uint32_t seed, uint32_t blocks, const std::string& name) {
  const Stage stage = stage_of(v);
  Reason why = Reason::none;
  const auto tile = few_tile(stage, why);
  if (!tile) return "the variant does not run it: " + std::string(sentence_of(why));
  std::mt19937 random(seed);
  const Data x(stage.inputs[0], random), w(stage.inputs[1], random);
  const TensorDesc channels{DType::f32, {v.k}, row_major({v.k})};
  const Data scale(channels, random), bias(channels, random);
  Data y(stage.outputs[0], random);
  std::fill(y.bytes.begin(), y.bytes.end(), 0xa5);

  FewRecord record = few_record(stage, *tile);
  record.x = x.bytes.data(), record.w = w.bytes.data(), record.y = y.bytes.data();
  if (v.scale) record.scale = reinterpret_cast<const float*>(scale.bytes.data());
  if (v.bias) record.bias = reinterpret_cast<const float*>(bias.bytes.data());
  const cuda_model::Kernel* kernel = cuda_model::find_kernel(name.empty() ? few_kernel_name(*tile) : name);
  if (!kernel) return "there is no kernel " + few_kernel_name(*tile);
  if (kernel->record_bytes != sizeof record) return "host and kernel disagree on the record";
  for (const Data* d : {&x, &w, &scale, &bias, static_cast<const Data*>(&y)})
    cuda_model::allow_memory(d->bytes.data(), d->bytes.size());
  cuda_model::Launch launch;
  launch.grid = {blocks, static_cast<uint32_t>(tile->groups), 1}, launch.block.x = kFewThreads;
  launch.shared_bytes = static_cast<uint32_t>(tile->shared_bytes()), launch.seed = seed;
  launch.early = true;
  const std::string error = cuda_model::launch(*kernel, launch, &record);
  for (const Data* d : {&x, &w, &scale, &bias, static_cast<const Data*>(&y)}) cuda_model::forget_memory(d->bytes.data());
  if (!error.empty()) return error;

  // Every output in double precision, and the bytes between them.
  std::vector<bool> is_output(y.bytes.size() / static_cast<size_t>(size_of(y.desc.dtype)));
  for (int64_t i = 0; i < y.desc.elements(); ++i) {
    const int64_t column = i % v.q, row = i / v.q % v.p, map = i / v.q / v.p % v.k, image = i / v.q / v.p / v.k;
    double sum = 0, size = 0;
    for (int64_t c = 0; c < v.c; ++c) {
      for (int64_t r = 0; r < v.r; ++r) {
        for (int64_t s = 0; s < v.s; ++s) {
          const int64_t h = row + r - v.pad_h, at = column + s - v.pad_w;
          if (h < 0 || h >= v.h || at < 0 || at >= v.w) continue;
          const double product = x.rounded(image, c, h, at) * w.rounded(map, c, r, s);
          sum += product, size += std::abs(product);
        }
      }
    }
    const double factor = 0.75 * (v.scale ? scale.read(static_cast<size_t>(map)) : 1.0);
    const double more = v.bias ? bias.read(static_cast<size_t>(map)) : 0;
    sum = sum * factor + more, size = size * std::abs(factor) + std::abs(more);
    const auto kind = static_cast<Activation>(v.activation);
    const auto active = [&](double value) { return activate(kind, kSlope, kTop, value); };
    double bound = size * 0x1p-24 * (v.c * v.r * v.s + 8);
    bound = std::max(std::abs(active(sum + bound) - active(sum)), std::abs(active(sum - bound) - active(sum))) + bound;
    if (v.activation > 2) bound += 4e-6 * (std::abs(sum) + 1);  // of the functions' own
    const double wanted = active(sum);
    bound += (std::abs(wanted) + bound + 1e-7) * (v.fp16 ? 0x1.02p-11 : 0x1.02p-24) + (v.fp16 ? 0x1p-25 : 0);
    const size_t place = y.place(i);
    is_output[place] = true;
    const double got = y.read(place);
    if (!(std::abs(got - wanted) <= bound))
      return "image " + std::to_string(image) + " map " + std::to_string(map) + " at " + std::to_string(row) + "," +
             std::to_string(column) + ": " + std::to_string(got) + " instead of " + std::to_string(wanted) + " +- " +
             std::to_string(bound);
  }
  for (size_t i = 0; i < y.bytes.size(); ++i)
    if (!is_output[i / static_cast<size_t>(size_of(y.desc.dtype))] && y.bytes[i] != 0xa5)
      return "a gap between outputs was written";
  return {};
}

}  // namespace sparkle::cuda
