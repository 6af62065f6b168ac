// The caller's own CUDA memory and streams through the public interface, over the functional model of the tests: numbers,
// nothing moved, order without the host waiting, and a sentence for each misuse.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <sparkle/pipeline.hpp>
#include <string>

namespace {

const std::string kModel = SPARKLE_SOURCE_DIR "/models/upscale2x.onnx";
constexpr int64_t kIn = 1 * 3 * 6 * 8, kOut = 4 * kIn;

// What a program calls that knows CUDA.
class Callers {
 public:
  Callers() : library_(::dlopen(SPARKLE_CUDA_MODEL, RTLD_NOW)) {
    call<int(unsigned)>("cuInit")(0);
    call<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context_, 0);
    call<int(void*)>("cuCtxPushCurrent_v2")(context_);
    call<int(void**, unsigned)>("cuStreamCreate")(&stream_, 1);
  }
  ~Callers() {
    void* popped = nullptr;
    call<int(void**)>("cuCtxPopCurrent_v2")(&popped);
    call<int(int)>("cuDevicePrimaryCtxRelease_v2")(0);
  }
  uint64_t memory(int64_t bytes) {
    unsigned long long address = 0;
    EXPECT_EQ(call<int(unsigned long long*, size_t)>("cuMemAlloc_v2")(&address, static_cast<size_t>(bytes)), 0);
    return address;
  }
  float* pinned(int64_t count) {
    void* memory = nullptr;
    EXPECT_EQ(call<int(void**, size_t, unsigned)>("cuMemHostAlloc")(&memory, static_cast<size_t>(count) * 4, 0), 0);
    return static_cast<float*>(memory);
  }
  void copy(uint64_t to, uint64_t from, int64_t bytes) {
    EXPECT_EQ(call<int(unsigned long long, unsigned long long, size_t, void*)>("cuMemcpyAsync")(
                  to, from, static_cast<size_t>(bytes), stream_),
              0);
  }
  void wait() {
    void* event = nullptr;
    call<int(void**, unsigned)>("cuEventCreate")(&event, 2);
    call<int(void*, void*)>("cuEventRecord")(event, stream_);
    EXPECT_EQ(call<int(void*)>("cuEventSynchronize")(event), 0);
  }
  uint64_t stream() const { return reinterpret_cast<uintptr_t>(stream_); }

 private:
  template <class F>
  F* call(const char* name) {
    return reinterpret_cast<F*>(::dlsym(library_, name));
  }
  void *library_, *context_ = nullptr, *stream_ = nullptr;
};

sparkle::Device open_device() {
  ::setenv("SPARKLE_CUDA_DRIVER", SPARKLE_CUDA_MODEL, 1);
  sparkle::DeviceOptions options;
  options.name = "cuda";
  return sparkle::Device(options);
}

sparkle::Tensor input() {
  sparkle::Tensor x(sparkle::Type::f32, {1, 3, 6, 8});
  auto* values = static_cast<float*>(x.data());
  for (int64_t i = 0; i < kIn; ++i) values[i] = std::sin(static_cast<float>(i));
  return x;
}
std::vector<float> wanted() {
  sparkle::Session session(sparkle::Device{}, kModel);
  const sparkle::Tensor y = session.run({input()}).at(0);
  const auto* values = static_cast<const float*>(y.data());
  return {values, values + kOut};
}

// The caller's stream fills the input, our work follows, and the stream takes the output: the host waits once, at the end.
TEST(ApiCuda, RunsOnTheCallersMemoryBetweenTheCallersWork) {
  const sparkle::Device device = open_device();
  Callers callers;
  const uint64_t in = callers.memory(4 * kIn), out = callers.memory(4 * kOut);
  float *const from = callers.pinned(kIn), *const to = callers.pinned(kOut);
  const sparkle::Tensor x = input();
  std::memcpy(from, x.data(), 4 * kIn);
  sparkle::Session session(device, kModel);
  const std::vector<sparkle::Buffer> inputs{sparkle::Buffer::of_cuda(device, in, 4 * kIn)},
      outputs{sparkle::Buffer::of_cuda(device, out, 4 * kOut)};
  ASSERT_TRUE(device.wait(session.submit({x}, inputs, outputs)));  // plans, tries and packs
  const sparkle_traffic before = device.traffic();
  callers.copy(in, reinterpret_cast<uintptr_t>(from), 4 * kIn);
  device.follow_cuda_stream(callers.stream());
  const uint64_t token = session.submit({x}, inputs, outputs);
  device.lead_cuda_stream(callers.stream(), token);
  callers.copy(reinterpret_cast<uintptr_t>(to), out, 4 * kOut);
  callers.wait();
  const sparkle_traffic after = device.traffic();
  EXPECT_EQ(after.copies, before.copies);
  EXPECT_EQ(after.host_transfers, before.host_transfers);
  const std::vector<float> right = wanted();
  float largest = 0;
  for (const float v : right) largest = std::max(largest, std::fabs(v));
  for (size_t i = 0; i < right.size(); ++i) ASSERT_NEAR(to[i], right[i], 1e-4f * largest) << i;
  uint64_t address = 0;
  ASSERT_EQ(sparkle_buffer_cuda(outputs[0].c(), &address), SPARKLE_OK);
  EXPECT_EQ(address, out);
  int32_t ordinal = -1;
  ASSERT_EQ(sparkle_device_cuda(device.c(), &ordinal), SPARKLE_OK);
  EXPECT_EQ(ordinal, 0);
  EXPECT_EQ(sparkle_device_cuda(sparkle::Device().c(), &ordinal), SPARKLE_DEVICE_UNUSABLE);
}

// Uploads, kernels and downloads of several items on three streams, which the model does as late and in as strange an order as
// it may.
TEST(ApiCuda, PipelinesGiveWhatRunsGive) {
  const sparkle::Device device = open_device();
  const sparkle::Session session(device, kModel);
  std::vector<sparkle::Tensor> items;
  for (int i = 0; i < 9; ++i) {
    sparkle::Tensor x = input();
    auto* values = static_cast<float*>(x.data());
    for (int64_t e = 0; e < kIn; ++e) values[e] *= static_cast<float>(i + 1);
    items.push_back(std::move(x));
  }
  for (const int32_t depth : {1, 3}) {
    sparkle::Pipeline pipeline(session, {depth, 0});
    std::vector<std::future<sparkle::Pipeline::Outputs>> results;
    for (const sparkle::Tensor& x : items) results.push_back(pipeline.submit({x}));
    for (size_t i = 0; i < items.size(); ++i) {
      const auto got = results[i].get(), wanted = session.run({items[i]});
      ASSERT_EQ(got.at(0).bytes(), wanted.at(0).bytes());
      EXPECT_EQ(std::memcmp(got[0].data(), wanted[0].data(), wanted[0].bytes()), 0) << "item " << i << " of depth " << depth;
    }
  }
}

// A model of which the device lacks a kernel: the file of it gives what the session gives, and tells it with the same events.
TEST(ApiCuda, CompiledFilesHoldWhatTheCpuDoes) {
  const sparkle::Device device = open_device();
  const std::string model = SPARKLE_SOURCE_DIR "/tests/vectors/types_double_maxpool/model.onnx",
                    file = ::testing::TempDir() + "/api_cuda_test.sparkle";
  sparkle::compile(device, model, file);
  sparkle::Tensor x(sparkle::Type::f64, {1, 3, 7, 6});
  for (int i = 0; i < 126; ++i) static_cast<double*>(x.data())[i] = std::sin(7.0 * i);
  sparkle::Session live(device, model), opened(device, file);
  const sparkle::Tensor want = live.run({x}).at(0), have = opened.run({x}).at(0);
  EXPECT_EQ(std::memcmp(have.data(), want.data(), 90 * sizeof(double)), 0);
  ASSERT_EQ(opened.events().size(), 1u);
  EXPECT_EQ(opened.events()[0].reason, "no_kernel");
  EXPECT_EQ(opened.events()[0].message, live.events().at(0).message);
  EXPECT_EQ(opened.events()[0].cost, live.events()[0].cost);
  sparkle::SessionOptions strict;
  strict.fallback = "forbid";
  for (const auto& refused : {std::function<void()>([&] { sparkle::Session(device, file, strict).run({x}); }),
                              std::function<void()>([&] { sparkle::compile(device, model, file, {}, strict); })}) {
    try {
      refused();
      ADD_FAILURE() << "it was done all the same";
    } catch (const sparkle::Exception& e) {
      EXPECT_EQ(e.status(), SPARKLE_NOT_SERVED) << e.what();
    }
  }
  std::remove(file.c_str());
}

TEST(ApiCuda, MisuseIsASentence) {
  const sparkle::Device device = open_device(), cpu;
  Callers callers;
  const uint64_t memory = callers.memory(256);
  const auto refused = [](const auto& call, const char* part) {
    try {
      call();
      ADD_FAILURE() << part << ": nothing was said";
    } catch (const sparkle::Exception& e) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  };
  refused([&] { sparkle::Buffer::of_cuda(device, memory, 257); }, "256 from its address on");
  refused([&] { sparkle::Buffer::of_cuda(device, memory + 4, 16); }, "no multiple of 16");
  refused([&] { sparkle::Buffer::of_cuda(cpu, memory, 16); }, "is not one of CUDA's");
  refused([&] { device.follow_cuda_stream(12345); }, "is not of the primary context");
  device.follow_cuda_stream(0);  // the default stream is the current context's, which is the primary one
  refused([&] { cpu.follow_cuda_stream(0); }, "is not one of CUDA's");
}

}  // namespace
