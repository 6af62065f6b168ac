// PackingKernel: a kernel that reads its weights, operand 1, in a form of its own. Constant ones are packed once, ahead; others
// by each run, into the end of its workspace.
#pragma once

#include "backends/cpu/cpu_kernel.h"

namespace sparkle::cpu {

// "shape=[8,4,3,3] offset=0 pitch=36,9,3,1,": where each element of weights comes from, for keys of what is packed.
std::string weights_place(const TensorDesc& weights);

class PackingKernel : public CpuKernel {
 public:
  int64_t workspace_bytes() const final { return workspace_bytes_; }
  int64_t packed_bytes(int input) const final;
  std::string packed_key(int input) const final;
  void pack(int input, const std::byte* from, std::byte* to, Executor& executor) const final;

 protected:
  PackingKernel(const Stage& stage, bool constant_weights) : stage_(stage), constant_weights_(constant_weights) {}
  // For constructors, when they know the sizes: `own` bytes of workspace stand before the weights, which take `packed` bytes.
  void size_workspace(int64_t own, int64_t packed);
  // The weights of this run in packed form.
  const std::byte* packed_weights(const CpuLaunch& launch) const;

  const Stage stage_;

 private:
  // Everything that the packed bytes depend on beside the weights' values.
  virtual std::string weights_key() const = 0;
  // `from`: element (0,...,0).
  virtual void write_weights(const std::byte* from, std::byte* to, Executor& executor) const = 0;

  bool constant_weights_;
  int64_t weights_at_ = 0, packed_ = 0, workspace_bytes_ = 0;
};

}  // namespace sparkle::cpu
