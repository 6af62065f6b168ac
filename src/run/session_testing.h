// For tests: tensors that sessions take.
#pragma once

#include <random>
#include <vector>

#include "run/session.h"

namespace sparkle::testing {

// Normal numbers of f32, or tokens of a small vocabulary in i64.
inline HostTensor random_tensor(DType type, const Dims& shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  HostTensor t = HostTensor::zeros(type, shape);
  for (int64_t i = 0; i < t.elements(); ++i) {
    if (type == DType::f32) t.data<float>()[i] = normal(random);
    if (type == DType::i64) t.data<int64_t>()[i] = static_cast<int64_t>(random() % 8);
  }
  return t;
}

// One for each input, of the shapes that the model fixes.
inline std::vector<HostTensor> random_inputs(const Session& session, uint64_t seed = 5) {
  std::vector<HostTensor> inputs;
  for (const SessionInput& in : session.inputs()) inputs.push_back(random_tensor(in.dtype, in.shape, seed++));
  return inputs;
}

}  // namespace sparkle::testing
