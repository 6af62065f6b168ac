// What the tests of the moving families share: tensors of random layouts between guard bytes, a kernel beside the reference.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/test_units.h"
#include "families/family.h"
#include "families/loops/walk.h"

namespace sparkle::cpu::testing {

using Random = std::mt19937;
inline int64_t pick(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

// `width` workers that take tasks in turns.
class Threads final : public Executor {
 public:
  explicit Threads(int width) : width_(width) {}
  int width() const override { return width_; }
  void run(int tasks, void (*work)(void*, int, int), void* context) override {
    std::atomic<int> next = 0;
    std::vector<std::thread> threads;
    for (int worker = 0; worker < width_; ++worker)
      threads.emplace_back([&, worker] {
        for (int task = next++; task < tasks; task = next++) work(context, task, worker);
      });
    for (std::thread& thread : threads) thread.join();
  }

 private:
  int width_;
};

// A CPU with one vector unit; a small last cache makes kernels choose stores that bypass it.
inline Device device_with(std::string_view unit, int64_t cache) {
  Device device;
  device.units.push_back({std::string(unit)});
  device.memory.push_back({"L2", cache});
  device.memory.push_back({"DRAM"});
  return device;
}

// Units that this processor runs.
inline std::vector<std::string> units() { return test_units(); }

// Order of axes at random; gaps between lines and negative strides where asked for.
inline Layout random_layout(Random& random, const Dims& shape, bool gaps, bool negative) {
  Dims order;
  for (int i = 0; i < shape.size(); ++i) order.push_back(i);
  if (pick(random, 0, 2)) std::shuffle(order.begin(), order.end(), random);
  Layout layout = dense(shape, order);
  int64_t step = 1;
  layout.offset = gaps ? pick(random, 0, 5) : 0;
  for (int i = shape.size() - 1; i >= 0; --i) {
    const int axis = static_cast<int>(order[i]);
    const int64_t wide = step * shape[axis];
    layout.strides[axis] = step;
    if (negative && pick(random, 0, 9) == 0) {
      layout.offset += step * (shape[axis] - 1);
      layout.strides[axis] = -step;
    }
    step = wide + (gaps && pick(random, 0, 3) == 0 ? pick(random, 1, 3) : 0);
  }
  return layout;
}

// Memory of a tensor with guards on both sides. data() is 64-byte aligned.
class Memory {
 public:
  Memory(DType dtype, const Dims& shape, const Layout& layout) : desc_{dtype, shape, layout} {
    bytes_ = extent(shape, layout) * size_of(dtype) + 2 * kGuard;
    storage_ = HostTensor::zeros(DType::u8, {bytes_});
  }
  void fill(uint8_t byte) { std::memset(storage_.bytes.get(), byte, static_cast<size_t>(bytes_)); }
  void fill(Random& random) {
    for (int64_t i = 0; i < bytes_; ++i) storage_.data<uint8_t>()[i] = static_cast<uint8_t>(random());
  }
  void fill_floats(Random& random) {
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i + 4 <= bytes_; i += 4) storage_.data<float>()[i / 4] = normal(random);
  }
  TensorView view() const { return {storage_.bytes.get() + kGuard, desc_}; }
  std::byte* origin() const { return view().data + desc_.layout.offset * size_of(desc_.dtype); }
  std::span<const std::byte> bytes() const { return {storage_.bytes.get(), static_cast<size_t>(bytes_)}; }
  const TensorDesc& desc() const { return desc_; }

 private:
  static constexpr int64_t kGuard = 128;
  TensorDesc desc_;
  int64_t bytes_;
  HostTensor storage_;
};

// Runs the kernel and the reference on outputs poisoned alike; all bytes, gaps and guards included, are then handed to `same`.
template <class Make, class Same>
void compare(Make make, const FamilyInfo& family, const StageParams& params, std::string_view variant,
             const std::vector<const Memory*>& inputs, const TensorDesc& y, Same same) {
  std::vector<TensorView> views;
  std::vector<std::byte*> origins;
  Stage stage{params, {}, {y}};
  for (const Memory* input : inputs) {
    views.push_back(input->view());
    origins.push_back(input->origin());
    stage.inputs.push_back(input->desc());
  }
  Memory expected(y.dtype, y.shape, y.layout), actual(y.dtype, y.shape, y.layout);
  expected.fill(0xff);
  const TensorView output = expected.view();
  family.reference(params, views, {&output, 1});
  for (const std::string& unit : units())
    for (int width : {1, 2})
      for (int64_t cache : {int64_t{1} << 30, int64_t{1}}) {
        SCOPED_TRACE("unit " + unit + ", " + std::to_string(width) + " threads, cache " + std::to_string(cache));
        LoopSchedule schedule{std::string(variant), unit, width == 1 ? 0 : 64};
        auto kernel = make(stage, schedule, device_with(unit, cache), 0u);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        actual.fill(0xff);
        Threads executor(width);
        std::byte* origin = actual.origin();
        std::vector<int64_t> workspace(static_cast<size_t>(((*kernel)->workspace_bytes() + 7) / 8));
        (*kernel)->run({origins, {&origin, 1}, reinterpret_cast<std::byte*>(workspace.data()), &executor});
        same(expected.bytes(), actual.bytes());
        if (::testing::Test::HasFailure()) return;
      }
}

inline void same_bytes(std::span<const std::byte> expected, std::span<const std::byte> actual) {
  ASSERT_EQ(expected.size(), actual.size());
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(expected[i], actual[i]) << "byte " << i << " of " << expected.size();
}

inline std::string describe(const TensorDesc& desc) {
  std::string text = std::string(name_of(desc.dtype)) + " " + desc.shape.to_string() + " pitch";
  for (int64_t p : desc.layout.strides) text += " " + std::to_string(p);
  return text;
}

inline DType random_type(Random& random) {
  constexpr DType types[] = {DType::u8, DType::f16, DType::f32, DType::f32, DType::i64};
  return types[pick(random, 0, 4)];
}

}  // namespace sparkle::cpu::testing
