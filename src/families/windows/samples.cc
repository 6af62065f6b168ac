#include "families/windows/samples.h"

#include <algorithm>

namespace sparkle {

TensorDesc described(DType type, const Dims& shape, bool channels_innermost, int64_t gap) {
  TensorDesc d{type, shape, channels_innermost ? channels_last(shape) : row_major(shape)};
  int64_t step = 1;
  for (int i = d.layout.order.size() - 1; i >= 0; --i) {
    const int axis = static_cast<int>(d.layout.order[i]);
    d.layout.strides[axis] = step;
    step = step * shape[axis] + gap;
  }
  return d;
}

bool of_one_real(const SampleRequest& t) {
  const DType type = t.outputs.empty() ? DType::f32 : t.outputs[0];
  const auto same = [&](DType other) { return other == type; };
  return (type == DType::f32 || type == DType::f16 || type == DType::bf16 || type == DType::f64) &&
         std::all_of(t.inputs.begin(), t.inputs.end(), same) && std::all_of(t.outputs.begin(), t.outputs.end(), same);
}

bool sums_bytes(const SampleRequest& t) { return !t.inputs.empty() && (t.inputs[0] == DType::u8 || t.inputs[0] == DType::i8); }

Stage with_types(Stage stage, const SampleRequest& t) {
  while (stage.inputs.size() < t.inputs.size()) stage.inputs.push_back(dense_desc(DType::f32, {1}));
  for (size_t i = 0; i < t.inputs.size(); ++i) stage.inputs[i].dtype = t.inputs[i];
  stage.outputs[0].dtype = t.outputs[0];
  return stage;
}

Stage rows_sample(const StageParams& params, size_t operands, const Dims& result) {
  Stage stage;
  stage.params = params;
  for (size_t i = 0; i < operands; ++i) stage.inputs.push_back(described(DType::f32, {3, 5, 37}, false, i % 2 ? 0 : 2));
  stage.outputs.push_back(described(DType::f32, result, false, 1));
  return stage;
}

double any_value(DType type, std::mt19937& random) {
  if (type == DType::boolean) return drawn_between(0, 1, random);
  std::normal_distribution<double> normal;
  return (is_float(type) ? 1 : 60) * normal(random);
}

double drawn_between(int64_t least, int64_t most, std::mt19937& random) {
  return static_cast<double>(least + static_cast<int64_t>(random() % static_cast<uint32_t>(most - least + 1)));
}

}  // namespace sparkle
