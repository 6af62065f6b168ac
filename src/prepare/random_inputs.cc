#include "prepare/random_inputs.h"

#include <cmath>
#include <cstring>

#include "base/system/out_of_memory.h"
#include "families/values/element.h"

namespace sparkle {
namespace {

// SplitMix64: small, seeded, the same everywhere.
uint64_t next(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

Result<HostTensor> random_tensor(const SessionInput& input, const Dims& shape, uint64_t state) {
  SPARKLE_TRY(t, allocate_tensor(input.dtype, shape, "Input '" + input.name + "'"));
  if (!is_float(t.dtype) && !is_narrow_float(t.dtype)) {
    std::memset(t.bytes.get(), 0, static_cast<size_t>(t.size_bytes()));
    return t;
  }
  for (int64_t e = 0; e < t.elements(); ++e) {
    const double u = (static_cast<double>(next(state) >> 11) + 0.5) / 9007199254740992.0;
    const double v = static_cast<double>(next(state) >> 11) / 9007199254740992.0;
    store_element(t.dtype, std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v), t.bytes.get() + e * size_of(t.dtype));
  }
  return t;
}

}  // namespace

Result<std::vector<HostTensor>> unfilled_inputs(const std::vector<SessionInput>& inputs, const std::vector<Dims>& shapes) {
  std::vector<HostTensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    tensors.push_back({inputs[i].dtype, shapes[i], nullptr});
    if (!inputs[i].by_value) continue;
    SPARKLE_TRY(value, random_tensor(inputs[i], shapes[i], i));
    tensors.back() = std::move(value);
  }
  return tensors;
}

Status fill_inputs(const std::vector<SessionInput>& inputs, std::vector<HostTensor>& tensors, uint64_t seed) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (tensors[i].bytes) continue;
    // Seeds far apart: neighbours would give the same stream shifted.
    SPARKLE_TRY(value, random_tensor(inputs[i], tensors[i].shape, seed + (static_cast<uint64_t>(i) << 32)));
    tensors[i] = std::move(value);
  }
  return ok();
}

}  // namespace sparkle
