// Random channels-last operands for the tests of window kernels: gaps between pixels and rows hold NaN, buffers end where the
// tensor ends, so that a read or write outside shows.
#pragma once

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/test_units.h"
#include "backends/cpu/cpu_kernel.h"
#include "base/system/thread_pool.h"
#include "families/stage.h"
#include "families/values/epilogue.h"
#include "families/family.h"
#include "families/windows/window.h"

namespace sparkle::test {

using Random = std::mt19937;

inline int64_t pick(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

struct Operand {
  TensorDesc desc;
  std::vector<float> values;

  TensorView view() { return {reinterpret_cast<std::byte*>(values.data()), desc}; }
  std::byte* origin() { return values.empty() ? nullptr : reinterpret_cast<std::byte*>(values.data() + desc.layout.offset); }
};

// Calls f(position in the buffer) for each element of the tensor.
template <class F>
void for_each_position(const TensorDesc& desc, F&& f) {
  const FeatureMap m = feature_map(desc);
  for (int64_t n = 0; n < m.n; ++n)
    for (int64_t c = 0; c < m.c; ++c)
      for (int64_t d = 0; d < m.d; ++d)
        for (int64_t h = 0; h < m.h; ++h)
          for (int64_t w = 0; w < m.w; ++w)
            f(desc.layout.offset + n * m.image_stride + c * m.channel_stride + d * m.plane_stride + h * m.row_stride +
              w * m.pixel_stride);
}

// Channels last; `gaps`: after each pixel, each row and before the first element.
inline TensorDesc channels_last_desc(Random& random, const Dims& shape, bool gaps) {
  TensorDesc desc{DType::f32, shape, channels_last(shape)};
  if (!gaps) return desc;
  int64_t step = 1;
  const Dims order = desc.layout.order;
  for (int i = order.size() - 1; i >= 0; --i) {
    const int axis = static_cast<int>(order[i]);
    desc.layout.strides[axis] = step;
    step = step * shape[axis] + (axis == 1 || pick(random, 0, 1) ? pick(random, 1, 9) : 0);
  }
  desc.layout.offset = pick(random, 0, 5);
  return desc;
}

// Uniform values in [-1,1] in the elements, NaN everywhere else.
inline Operand random_operand(Random& random, const TensorDesc& desc) {
  Operand operand{
      desc, std::vector<float>(static_cast<size_t>(extent(desc.shape, desc.layout)), std::numeric_limits<float>::quiet_NaN())};
  std::uniform_real_distribution<float> uniform(-1, 1);
  for_each_position(desc, [&](int64_t at) { operand.values[static_cast<size_t>(at)] = uniform(random); });
  return operand;
}

// The same tensor of doubles: what the reference writes.
struct Expected {
  TensorDesc desc;
  std::vector<double> values;

  explicit Expected(const TensorDesc& like) : desc(like), values(static_cast<size_t>(extent(like.shape, like.layout)), 0.0) {
    desc.dtype = DType::f64;
  }
  TensorView view() { return {reinterpret_cast<std::byte*>(values.data()), desc}; }
};

// Empty where every element is within `tolerance` and the rest of the buffer still holds NaN; else what is wrong.
inline std::string compare(const Operand& got, const Expected& expected, double tolerance) {
  std::vector<bool> written(got.values.size(), false);
  std::string problem;
  for_each_position(got.desc, [&](int64_t at) {
    const auto i = static_cast<size_t>(at);
    written[i] = true;
    const double want = expected.values[i], have = static_cast<double>(got.values[i]);
    const bool same = want == have || (std::isnan(want) && std::isnan(have)) || std::abs(want - have) <= tolerance;
    if (!same && problem.empty())
      problem = "position " + std::to_string(at) + ": " + std::to_string(have) + " instead of " + std::to_string(want);
  });
  for (size_t i = 0; i < written.size(); ++i)
    if (!written[i] && !std::isnan(got.values[i]) && problem.empty()) problem = "wrote into the gap at " + std::to_string(i);
  return problem;
}

// The epilogue's operands behind x and w. `vector_stride`: of scale and bias; the second residual is the same for all images.
inline void add_epilogue_operands(Random& random, const Epilogue& e, const Dims& y_shape, bool gaps, int64_t vector_stride,
                                  std::vector<Operand>& inputs) {
  for (int i = 0; i < e.scale + e.bias; ++i) {
    TensorDesc desc = dense_desc(DType::f32, Dims{y_shape[1]});
    desc.layout.strides[0] = vector_stride;
    inputs.push_back(random_operand(random, desc));
  }
  for (int i = 0; i < e.residuals_before + e.residuals_after; ++i) {
    TensorDesc desc = channels_last_desc(random, y_shape, gaps);
    if (i == 1) desc.layout.strides[0] = 0;
    inputs.push_back(random_operand(random, desc));
  }
}

// Memory of NaN for a kernel to write.
inline Operand poisoned_output(Random& random, const Dims& shape, bool gaps) {
  Operand y{channels_last_desc(random, shape, gaps), {}};
  y.values.assign(static_cast<size_t>(extent(shape, y.desc.layout)), std::numeric_limits<float>::quiet_NaN());
  return y;
}

inline Stage stage_of(const StageParams& params, const std::vector<Operand>& inputs, const Operand& y) {
  Stage stage{params, {}, {y.desc}};
  for (const Operand& operand : inputs) stage.inputs.push_back(operand.desc);
  return stage;
}

// What the family's reference makes of the operands, in doubles.
inline Expected expected_of(const FamilyInfo& family, const Stage& stage, std::vector<Operand>& inputs) {
  std::vector<TensorView> views;
  for (Operand& operand : inputs) views.push_back(operand.view());
  Expected expected(stage.outputs[0]);
  const TensorView view = expected.view();
  family.reference(stage.params, views, {&view, 1});
  return expected;
}

// A device that has this unit and nothing else.
inline Device device_with(const std::string& unit_name, int cores = 1) {
  Device device;
  device.cores = cores;
  MathUnit unit;
  unit.name = unit_name;
  device.units = {unit};
  return device;
}

// Runs a kernel on a workspace of NaN; the weights (input 1) are packed first if the kernel packs them.
inline void run_kernel(const cpu::CpuKernel& kernel, std::vector<Operand>& inputs, Operand& y, int threads) {
  ThreadPool pool(threads);
  std::vector<std::byte*> in, out{y.origin()};
  for (Operand& operand : inputs) in.push_back(operand.origin());
  std::unique_ptr<std::byte[]> packed;
  if (const int64_t bytes = kernel.packed_bytes(1)) {
    packed = std::make_unique<std::byte[]>(static_cast<size_t>(bytes));
    kernel.pack(1, inputs[1].origin(), packed.get(), pool);
    in[1] = packed.get();
  }
  const HostTensor workspace = HostTensor::zeros(DType::u8, Dims{kernel.workspace_bytes()});
  std::fill_n(workspace.data<uint8_t>(), kernel.workspace_bytes(), uint8_t{255});
  kernel.run({in, out, workspace.bytes.get(), &pool});
}

inline std::vector<std::string> units_of_this_machine() { return cpu::test_units(); }

}  // namespace sparkle::test
