// Small convolutions and kernels of them with all operands in memory, for whoever times or counts kernels by themselves.
#pragma once

#include <random>
#include <vector>

#include "backends/cpu/cpu_kernel.h"
#include "families/values/epilogue.h"
#include "families/windows/window.h"

namespace sparkle::cpu {

struct SmallLayer {
  int64_t c, k, size, filter = 1, stride = 1, groups = 1;  // input channels and filters; height and width; of the filter
};

// The stage of a family's parameters on it: NHWC, padded to keep the size at stride 1, a bias and ReLU behind.
template <class Params>
Stage convolution(Params p, const SmallLayer& l) {
  const int64_t pad = l.filter / 2, out = (l.size + 2 * pad - l.filter) / l.stride + 1;
  p.window = {{1, l.filter, l.filter}, {1, l.stride, l.stride}, {1, 1, 1}, {0, pad, pad}, {0, pad, pad}};
  p.epilogue.bias = true, p.epilogue.activation = Activation::relu;
  if constexpr (requires { p.groups; }) p.groups = l.groups;
  const Dims xs{1, l.c, l.size, l.size}, ys{1, l.k, out, out};
  return {p,
          {{DType::f32, xs, channels_last(xs)},
           dense_desc(DType::f32, {l.k, l.c / l.groups, l.filter, l.filter}),
           dense_desc(DType::f32, {l.k})},
          {{DType::f32, ys, channels_last(ys)}}};
}

// Operands in f32 of values spread evenly from -1 to 1, the second one packed where the kernel packs it.
class KernelInMemory {
 public:
  KernelInMemory(const Stage& stage, CpuKernelPtr kernel) : kernel_(std::move(kernel)) {
    std::minstd_rand random(1);
    const float half = static_cast<float>(std::minstd_rand::max()) / 2;
    for (size_t i = 0; i < stage.inputs.size(); ++i) {
      HostTensor values = HostTensor::zeros(DType::f32, stage.inputs[i].shape);
      for (int64_t k = 0; k < values.elements(); ++k) values.data<float>()[k] = static_cast<float>(random()) / half - 1;
      if (const int64_t bytes = i == 1 ? kernel_->packed_bytes(1) : 0; bytes > 0) {
        HostTensor packed = HostTensor::zeros(DType::f32, Dims{(bytes + 3) / 4});
        kernel_->pack(1, values.bytes.get(), packed.bytes.get(), executor_);
        values = std::move(packed);
      }
      inputs_.push_back(values.bytes.get());
      memory_.push_back(std::move(values));
    }
    memory_.push_back(HostTensor::zeros(DType::f32, stage.outputs[0].shape));
    output_ = memory_.back().bytes.get();
    memory_.push_back(HostTensor::zeros(DType::f32, Dims{(kernel_->workspace_bytes() + 3) / 4}));
    workspace_ = memory_.back().bytes.get();
  }
  KernelInMemory(const KernelInMemory&) = delete;
  KernelInMemory& operator=(const KernelInMemory&) = delete;

  const CpuKernel& kernel() const { return *kernel_; }
  // On the calling thread.
  CpuLaunch launch() { return {inputs_, {&output_, 1}, workspace_, &executor_}; }

 private:
  CpuKernelPtr kernel_;
  InlineExecutor executor_;
  std::vector<HostTensor> memory_;
  std::vector<std::byte*> inputs_;
  std::byte* output_ = nullptr;
  std::byte* workspace_ = nullptr;
};

}  // namespace sparkle::cpu
