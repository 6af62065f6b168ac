#include "measure/streams/bench_items.h"

#include <cstring>
#include <random>

#include "base/system/out_of_memory.h"

namespace sparkle {
namespace {

Result<std::vector<HostTensor>> another(const std::vector<HostTensor>& first, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<HostTensor> tensors;
  for (const HostTensor& t : first) {
    if (t.dtype != DType::f32) {
      tensors.push_back(t);
      continue;
    }
    SPARKLE_TRY(other, allocate_tensor(t.dtype, t.shape, "An input"));
    for (int64_t i = 0; i < t.elements(); ++i) other.data<float>()[i] = t.data<float>()[i] + 0.1f * normal(random);
    tensors.push_back(std::move(other));
  }
  return tensors;
}

}  // namespace

Result<std::vector<std::vector<HostTensor>>> bench_items(const std::vector<HostTensor>& inputs, uint64_t seed) {
  std::vector<std::vector<HostTensor>> items{inputs};
  for (size_t i = 1; i < kBenchItems; ++i) {
    SPARKLE_TRY(other, another(inputs, seed + i));
    items.push_back(std::move(other));
  }
  return items;
}

Error wrong_item(const std::string& how, size_t item) {
  return {Reason::internal, "An item that was run " + how + " (" + std::to_string(item) +
                                ") is wrong: the same item by itself on wiped memory has other outputs."};
}

}  // namespace sparkle
