// For tests of the Vulkan kernels: a backend on the device that the environment offers, and stages run on it with operands of
// random layouts in poisoned memory.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cpu/test_tensor.h"
#include "backends/vulkan/faults_testing.h"
#include "backends/vulkan/vulkan_backend.h"
#include "base/system/thread_pool.h"
#include "families/registry.h"

namespace sparkle::vulkan {

// The stand-in for matrix units of 16x16x16, for devices without one (families/gemm/gemm_tiles.h).
inline constexpr const char* kEmulatedUnit = "coopmat-f16-emulated";

// nullptr where there is no Vulkan, the reason in `why`. Software devices compute all that is tested here.
inline std::shared_ptr<VulkanBackend> test_backend(const ContextOptions& options, std::string& why, const Faults& faults = {}) {
  auto instance = Instance::open(options.validation);
  if (!instance.ok()) {
    why = instance.error().message;
    return nullptr;
  }
  for (size_t i = 0; i < (*instance)->devices().size(); ++i) {
    auto backend = make_vulkan_backend(*instance, i, options, std::make_shared<InlineExecutor>(), faulty_kernels(faults));
    if (backend.ok()) {
      spoil_driver(**backend, faults);
      return *backend;
    }
    why = backend.error().message;
  }
  return nullptr;
}

// One backend for all tests of a program: drivers compile a shader once.
inline VulkanBackend* shared_backend() {
  static std::string why;
  static const std::shared_ptr<VulkanBackend> backend = [] {
    ContextOptions options;
    options.cache = false;
    return test_backend(options, why);
  }();
  if (!backend) std::printf("SKIP: %s\n", why.c_str());
  return backend.get();
}

#define SPARKLE_NEEDS_VULKAN(backend)              \
  VulkanBackend* const backend = shared_backend(); \
  if (!backend) GTEST_SKIP() << "no Vulkan device"

// Where the device does not store fp16 values, what was to be shown of them is passed over.
#define SPARKLE_NEEDS_FP16()                                                           \
  if (VulkanBackend* const b_ = shared_backend(); b_ && !b_->context().features().f16) \
  GTEST_SKIP() << "SKIP: the device has no 16-bit floats"

// The same of double precision.
#define SPARKLE_NEEDS_DOUBLES()                                                        \
  if (VulkanBackend* const b_ = shared_backend(); b_ && !b_->context().features().f64) \
  GTEST_SKIP() << "SKIP: the device does not compute in double precision"

// Bytes to and from device memory.
inline std::shared_ptr<Buffer> uploaded(VulkanBackend& backend, const void* bytes, int64_t size) {
  auto staging = *backend.allocate(std::max<int64_t>(size, 4), MemoryKind::staging);
  auto buffer = *backend.allocate(std::max<int64_t>(size, 4), MemoryKind::device);
  std::memcpy(staging->host(), bytes, static_cast<size_t>(size));
  const CopyRegion region{staging.get(), 0, buffer.get(), 0, size};
  const auto token = backend.copy({&region, 1}, {});
  EXPECT_TRUE(token.ok() && backend.wait(*token).ok());
  return buffer;
}
inline void download(VulkanBackend& backend, Buffer& from, void* bytes, int64_t size) {
  auto staging = *backend.allocate(std::max<int64_t>(size, 4), MemoryKind::staging);
  const CopyRegion region{&from, 0, staging.get(), 0, size};
  const auto token = backend.copy({&region, 1}, {});
  ASSERT_TRUE(token.ok() && backend.wait(*token).ok());
  std::memcpy(bytes, staging->host(), static_cast<size_t>(size));
}

// A tensor in host memory with everything between its elements poisoned.
struct TestOperand {
  TensorDesc desc;
  std::vector<std::byte> bytes;

  explicit TestOperand(const TensorDesc& d) : desc(d) {
    bytes.resize(static_cast<size_t>(std::max<int64_t>(1, extent(d.shape, d.layout)) * size_of(d.dtype)));
    std::memset(bytes.data(), 0xff, bytes.size());  // NaN in any float, -1 in any integer
  }
  TensorView view() { return {bytes.data(), desc}; }
  template <class F>
  void fill(F&& value) {
    for_each_index(desc.shape, [&](const Dims& at) { store_element(desc.dtype, value(), element_at(view(), at)); });
  }
  double at(const Dims& index) { return load_element(desc.dtype, element_at(view(), index)); }
};

// Runs the stage on the device; outputs hold what it wrote, whatever it reports. Constants are packed where bits of
// `constants` say so.
inline Status run_stage(VulkanBackend& backend, const Stage& stage, const Schedule& schedule, std::vector<TestOperand>& inputs,
                        std::vector<TestOperand>& outputs, uint32_t constants) {
  SPARKLE_TRY(kernel, backend.compile(stage, schedule, constants));
  std::vector<std::shared_ptr<Buffer>> buffers;
  std::vector<Buffer*> slots;
  Launch launch;
  launch.kernel = kernel.get();
  const auto add = [&](std::shared_ptr<Buffer> buffer) {
    buffers.push_back(buffer);
    slots.push_back(buffer.get());
    return Binding{static_cast<int>(slots.size()) - 1, 0};
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t packed = constants >> i & 1 ? kernel->packed_bytes(static_cast<int>(i)) : 0;
    if (packed > 0) {
      std::vector<std::byte> image(static_cast<size_t>(packed));
      kernel->pack(static_cast<int>(i), inputs[i].bytes.data(), image.data(), backend.executor());
      launch.inputs.push_back(add(uploaded(backend, image.data(), packed)));
    } else {
      launch.inputs.push_back(add(uploaded(backend, inputs[i].bytes.data(), static_cast<int64_t>(inputs[i].bytes.size()))));
    }
  }
  for (TestOperand& out : outputs)
    launch.outputs.push_back(add(uploaded(backend, out.bytes.data(), static_cast<int64_t>(out.bytes.size()))));
  // Nothing of the workspace that was not written is used, and what lies behind it stays as it is.
  constexpr size_t kBehind = 4096;
  std::vector<std::byte> scratch(static_cast<size_t>(kernel->workspace_bytes()) + kBehind, std::byte{0xff});
  std::fill(scratch.end() - kBehind, scratch.end(), std::byte{0xcd});
  launch.workspace = add(uploaded(backend, scratch.data(), static_cast<int64_t>(scratch.size())));
  SPARKLE_TRY(program, backend.record({&launch, 1}));
  SPARKLE_TRY(token, backend.submit(*program, slots, {}));
  Status done = backend.wait(token);
  for (size_t i = 0; i < outputs.size(); ++i)
    download(backend, *slots[inputs.size() + i], outputs[i].bytes.data(), static_cast<int64_t>(outputs[i].bytes.size()));
  download(backend, *slots.back(), scratch.data(), static_cast<int64_t>(scratch.size()));
  EXPECT_EQ(std::count(scratch.end() - kBehind, scratch.end(), std::byte{0xcd}), std::ptrdiff_t{kBehind})
      << to_text(schedule) << " " << to_text(stage.params) << ": written behind the workspace";
  return done;
}

inline bool is_fp16(const TensorDesc& desc) { return desc.dtype == DType::f16; }

// The family's reference on the same operands, outputs as f64 where the device's are floats. Some references read operands as
// they write the outputs: of fp16 values they get wider copies.
inline std::vector<TestOperand> reference_outputs(const Stage& stage, std::vector<TestOperand>& inputs) {
  std::vector<TensorView> in, out;
  std::vector<TestOperand> results, copies;
  copies.reserve(inputs.size());
  for (TestOperand& i : inputs) {
    if (!is_fp16(i.desc)) {
      in.push_back(i.view());
      continue;
    }
    TensorDesc wide = i.desc;
    wide.dtype = DType::f64;
    TestOperand& copy = copies.emplace_back(wide);
    for_each_index(wide.shape, [&](const Dims& at) { store_element(DType::f64, i.at(at), element_at(copy.view(), at)); });
    in.push_back(copy.view());
  }
  for (const TensorDesc& d : stage.outputs) {
    TensorDesc wide = d;
    if (d.dtype == DType::f32 || is_fp16(d)) wide.dtype = DType::f64;
    results.emplace_back(wide);
  }
  for (TestOperand& r : results) out.push_back(r.view());
  info(stage.family()).reference(stage.params, in, out);
  return results;
}

// How far a value of 16 bits may lie from b: half of its last place.
inline double half_place(double a, double b) {
  const double larger = std::max(std::abs(a), std::abs(b));
  return larger == 0 ? 0 : std::ldexp(1, std::max(std::ilogb(larger), -14) - 11);
}

// Every element within `tolerance` of the largest expected value, fp16 values rounded from there, and what lies between the
// elements as it was.
inline void expect_close(TestOperand& got, TestOperand& wanted, double tolerance, const std::string& what) {
  double largest = 1e-30;
  for_each_index(wanted.desc.shape, [&](const Dims& at) {
    if (const double v = std::abs(wanted.at(at)); std::isfinite(v)) largest = std::max(largest, v);
  });
  int wrong = 0;
  TestOperand gaps(got.desc);
  for_each_index(got.desc.shape, [&](const Dims& at) {
    const double a = got.at(at);
    double b = wanted.at(at);
    if (is_fp16(got.desc) && std::abs(b) >= 65520) b = std::copysign(INFINITY, b);
    const double rounding = is_fp16(got.desc) && std::isfinite(a) && std::isfinite(b) ? half_place(a, b) : 0;
    const bool same = std::isnan(b) ? std::isnan(a) : a == b || std::abs(a - b) <= tolerance * largest + rounding;
    if (!same && ++wrong <= 3) ADD_FAILURE() << what << " at " << at.to_string() << ": " << a << " instead of " << b;
    std::memcpy(element_at(gaps.view(), at), element_at(got.view(), at), static_cast<size_t>(size_of(got.desc.dtype)));
  });
  EXPECT_EQ(wrong, 0) << what;
  EXPECT_TRUE(gaps.bytes == got.bytes) << what << ": bytes between the elements have changed";
}

}  // namespace sparkle::vulkan
