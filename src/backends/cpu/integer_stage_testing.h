// For tests: random stages on 8-bit integers with extreme values among their operands, run by a kernel and compared with the
// reference to the byte.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/test_tensor.h"
#include "families/depthwise/depthwise.h"
#include "families/gemm/gemm.h"
#include "families/integers/integers.h"
#include "families/registry.h"

namespace sparkle::cpu {

class IntegerStage {
 public:
  // `whole_steps`: k of each tap in multiples of 64, and many rows.
  IntegerStage(TestRandom& random, bool depthwise, bool whole_steps = false) : random_(random) {
    const bool requantize = random.chance(80), window = depthwise || random.chance(60);
    Epilogue e;
    e.scale = requantize, e.bias = random.chance(60);
    // Constant depthwise filters come less their zero point, in nine bits.
    const DType a = byte(), b = depthwise && random.chance(50) ? DType::i16 : byte(), y = requantize ? byte() : DType::i32;
    if (requantize && random.chance(30)) {
      e.activation = Activation::clip;
      e.a = static_cast<double>(range_of(y).low + random.between(0, 60));
      e.b = static_cast<double>(range_of(y).high - random.between(0, 60));
    }
    int64_t channels = 0, depth = 0;
    if (window) {
      Window w;
      Dims x{random.between(1, 2)}, out{x[0]};
      const int64_t groups = depthwise ? random.between(2, 150) : random.chance(20) ? random.between(2, 3) : 1;
      const int64_t c = depthwise           ? 1
                        : whole_steps       ? 64 * random.between(1, 3)
                        : random.chance(50) ? 4 * random.between(1, 20)
                                            : random.between(1, 40);
      channels = groups * (depthwise ? 1 : random.between(1, 150));
      x.push_back(groups * c), out.push_back(channels);
      for (size_t i = 1; i < 3; ++i) {
        w.filter[i] = whole_steps && random.chance(60) ? 1 : random.between(1, 4), w.stride[i] = random.between(1, 2),
        w.dilation[i] = random.between(1, 2);
        w.pad_begin[i] = random.between(0, 2);
        const int64_t reach = (w.filter[i] - 1) * w.dilation[i] + 1, size = random.between(1, 9) + reach;
        x.push_back(size), out.push_back((size + w.pad_begin[i] + random.between(0, 2) - reach) / w.stride[i] + 1);
      }
      depth = c * w.taps();
      const Dims filters{channels, c, w.filter[1], w.filter[2]};
      if (depthwise) {
        stage_.params = DepthwiseParams{w, e};
      } else {
        stage_.params = GemmParams{Loader::window, groups, w, e};
      }
      stage_.inputs = {{a, x, channels_last(x)}, {b, filters, row_major(filters)}};
      stage_.outputs = {{y, out, channels_last(out)}};
    } else {
      const int64_t batch = random.between(1, 3), m = random.between(1, whole_steps ? 150 : 20),
                    k = whole_steps ? 64 * random.between(1, 5) : random.between(1, 300);
      channels = random.between(1, 200), depth = k;
      const Dims left{batch, m, k}, right{batch, k, channels}, out{batch, m, channels};
      stage_.params = GemmParams{Loader::dense, 1, {}, e};
      stage_.inputs = {{a, left, random.chance(30) ? dense(left, {0, 2, 1}) : row_major(left)},
                       {b, right, random.chance(30) ? dense(right, {0, 2, 1}) : row_major(right)}};
      stage_.outputs = {{y, out, row_major(out)}};
    }
    const auto list = [&](DType type, bool per_channel) {
      const Dims shape{per_channel ? channels : 1};
      stage_.inputs.push_back({type, shape, row_major(shape)});
    };
    if (e.scale) list(DType::f32, random.chance(50));
    if (e.bias) list(DType::i32, true);
    list(a, false), list(b, random.chance(30));
    if (e.scale) list(y, false);
    const IntegerOperands at = integer_operands(e);
    for (const TensorDesc& desc : stage_.inputs) tensors_.emplace_back(desc);
    fill_bytes(0), fill_bytes(1), fill_bytes(at.a_zero), fill_bytes(at.b_zero);
    if (at.y_zero >= 0) fill_bytes(at.y_zero);
    // Files often list the same zero point for each channel.
    const double zero = random.chance(50) ? 0 : static_cast<double>(random.between(1, 90));
    if (random.chance(40) && tensor(at.b_zero).desc().dtype != DType::i16) tensor(at.b_zero).fill([&] { return zero; });
    if (at.bias >= 0)
      tensor(at.bias).fill([&] { return static_cast<double>(random.between(-9, 9) * (random.chance(5) ? 200000000 : 3000)); });
    // Most results lie within the type, some far outside.
    const double step = 1.0 / (60.0 * std::sqrt(static_cast<double>(depth)));
    if (at.scale >= 0) tensor(at.scale).fill([&] { return step * static_cast<double>(random.between(1, 200)) / 100; });
  }

  const Stage& stage() const { return stage_; }

  // Empty where the kernel's result is the reference's.
  std::string run(const Result<CpuKernelPtr>& kernel, Executor& executor) {
    if (!kernel.ok()) return kernel.error().message;
    TestTensor expected(stage_.outputs[0]), got(stage_.outputs[0]);
    std::vector<TensorView> views;
    std::vector<std::byte*> inputs;
    for (TestTensor& t : tensors_) views.push_back(t.view()), inputs.push_back(t.origin());
    const TensorView want = expected.view();
    info(stage_.family()).reference(stage_.params, views, {&want, 1});
    std::vector<std::byte> packed(static_cast<size_t>((*kernel)->packed_bytes(1)) + 64);
    std::byte* aligned = packed.data() + (64 - reinterpret_cast<uintptr_t>(packed.data()) % 64) % 64;
    if ((*kernel)->packed_bytes(1) > 0) {
      (*kernel)->pack(1, row_major_copy(tensors_[1]).data(), aligned, executor);
      inputs[1] = aligned;
    }
    std::vector<std::byte> scratch(static_cast<size_t>((*kernel)->workspace_bytes()) + 64, std::byte{0x5A});
    CpuLaunch launch;
    std::byte* out = got.origin();
    launch.inputs = inputs, launch.outputs = {&out, 1}, launch.executor = &executor;
    launch.workspace = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
    (*kernel)->run(launch);
    std::string problem = got.sentinels_hold() ? "" : "wrote outside of its output";
    for_each_index(stage_.outputs[0].shape, [&](const Dims& i) {
      if (problem.empty() && got.at(i) != expected.at(i))
        problem = "at " + i.to_string() + ": " + std::to_string(got.at(i)) + " instead of " + std::to_string(expected.at(i));
    });
    return problem;
  }

 private:
  DType byte() { return random_.chance(50) ? DType::u8 : DType::i8; }
  TestTensor& tensor(int i) { return tensors_[static_cast<size_t>(i)]; }
  // All values, the extreme ones often: 255 * -128 four times in a row overflows 16 bits.
  void fill_bytes(int i) {
    IntegerRange range = range_of(tensor(i).desc().dtype);
    if (tensor(i).desc().dtype == DType::i16) range = i == 1 ? IntegerRange{-255, 255} : IntegerRange{};
    const bool extreme = random_.chance(40);
    tensor(i).fill([&] {
      if (extreme) return static_cast<double>(random_.chance(50) ? range.low : range.high);
      return static_cast<double>(random_.between(range.low, range.high));
    });
  }
  // Constants come with their layout's strides: the bytes from the buffer's start.
  static std::vector<std::byte> row_major_copy(TestTensor& t) {
    const TensorDesc& d = t.desc();
    const std::byte* from = t.view().data;
    return {from, from + extent(d.shape, d.layout) * size_of(d.dtype)};
  }

  TestRandom& random_;
  Stage stage_;
  std::vector<TestTensor> tensors_;
};

}  // namespace sparkle::cpu
