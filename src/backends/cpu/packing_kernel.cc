#include "backends/cpu/packing_kernel.h"

#include <algorithm>

namespace sparkle::cpu {

std::string weights_place(const TensorDesc& weights) {
  std::string text = "shape=" + weights.shape.to_string() + " offset=" + std::to_string(weights.layout.offset) + " pitch=";
  for (const int64_t stride : weights.layout.strides) text += std::to_string(stride) + ",";
  return text;
}

int64_t PackingKernel::packed_bytes(int input) const {
  // Never none: that would say that the operand is used as it is.
  return input == 1 && constant_weights_ ? std::max<int64_t>(64, packed_) : 0;
}

std::string PackingKernel::packed_key(int input) const { return packed_bytes(input) > 0 ? weights_key() : std::string(); }

void PackingKernel::pack(int input, const std::byte* from, std::byte* to, Executor& executor) const {
  if (input != 1) return;
  const TensorDesc& w = stage_.inputs[1];
  write_weights(from + w.layout.offset * size_of(w.dtype), to, executor);
}

void PackingKernel::size_workspace(int64_t own, int64_t packed) {
  weights_at_ = own, packed_ = packed;
  workspace_bytes_ = own + (constant_weights_ ? 0 : packed);
}

const std::byte* PackingKernel::packed_weights(const CpuLaunch& launch) const {
  if (constant_weights_) return launch.inputs[1];
  write_weights(launch.inputs[1], launch.workspace + weights_at_, *launch.executor);
  return launch.workspace + weights_at_;
}

}  // namespace sparkle::cpu
