// What the functional model's driver refuses since CUDA's does: calls that a card would be the first to refuse else.
#include <functional>

#include "backends/cuda/cuda_testing.h"
#include "backends/cuda/kernels/fill_record.h"

namespace sparkle::cuda {
namespace {

// What the model says while `body` runs.
std::string said(const std::function<void()>& body) {
  ::testing::internal::CaptureStderr();
  body();
  return ::testing::internal::GetCapturedStderr();
}

// A driver with a context that is current, and a kernel that fills words.
struct Calls {
  std::shared_ptr<CudaBackend> backend = test_backend();
  const Driver& d = backend->context().driver();
  const Current current{backend->context()};
  CuFunction function = nullptr;
  FillRecord record{nullptr, 0, 0};
  void* params[1] = {&record};
  CuGraph graph = nullptr;

  Calls() {
    CuModule module = nullptr;
    EXPECT_EQ(d.module_load(&module, "no kernels"), CuResult::success);
    EXPECT_EQ(d.module_function(&function, module, "sparkle_fill_words"), CuResult::success);
    EXPECT_EQ(d.graph_create(&graph, 0), CuResult::success);
  }
  CuKernelNodeParams node() {
    CuKernelNodeParams how;
    how.function = function, how.block[0] = kFillThreads, how.params = params;
    return how;
  }
  CuLaunchConfig launch() const {
    CuLaunchConfig config;
    config.block[0] = kFillThreads, config.stream = backend->context().stream(0);
    return config;
  }
};

TEST(CudaModelDriver, ANodeDependsOnAnotherOnceAndHasAKernel) {
  Calls c;
  const auto add = [&](const CuKernelNodeParams& how, std::vector<CuGraphNode> after) {
    CuGraphNode node = nullptr;
    const CuResult r = c.d.graph_kernel(&node, c.graph, after.data(), after.size(), &how);
    return std::pair(r, node);
  };
  const auto [first, node] = add(c.node(), {});
  ASSERT_EQ(first, CuResult::success);
  EXPECT_EQ(add(c.node(), {node}).first, CuResult::success);
  EXPECT_NE(said([&, node = node] {
              EXPECT_EQ(add(c.node(), {node, node}).first, CuResult::invalid_value);
            }).find("sparkle_fill_words: a node that depends on another one twice"),
            std::string::npos);
  CuKernelNodeParams with_extra = c.node(), of_none = c.node(), of_kernel = c.node();
  with_extra.extra = c.params;
  EXPECT_EQ(add(with_extra, {}).first, CuResult::invalid_value);
  of_none.function = nullptr;
  EXPECT_EQ(add(of_none, {}).first, CuResult::invalid_value);
  of_kernel.function = nullptr, of_kernel.kernel = c.function;
  EXPECT_EQ(add(of_kernel, {}).first, CuResult::not_supported);
}

TEST(CudaModelDriver, LaunchesTakeTheirRecordOneWay) {
  Calls c;
  const CuLaunchConfig config = c.launch();
  EXPECT_EQ(c.d.launch(&config, c.function, c.params, nullptr), CuResult::success);
  EXPECT_EQ(c.d.launch(&config, c.function, c.params, c.params), CuResult::invalid_value);
}

TEST(CudaModelDriver, LaunchesHaveAttributesThatCudaKnows) {
  const auto with = [](int id) {
    Calls c;
    CuLaunchConfig config = c.launch();
    CuLaunchAttribute attribute;
    attribute.id = static_cast<CuLaunchAttributeId>(id);
    if (attribute.id == CuLaunchAttributeId::cluster_dimension) attribute.value.cluster = {1, 1, 1};
    config.attributes = &attribute, config.attribute_count = 1;
    return c.d.launch(&config, c.function, c.params, nullptr);
  };
  for (const int known : {0, 4, 6}) EXPECT_EQ(with(known), CuResult::success) << known;
  EXPECT_EQ(with(77), CuResult::invalid_value);
}

TEST(CudaModelDriver, GridsAndSharedMemoryHaveTheirLimits) {
  Calls c;
  CuLaunchConfig config = c.launch();
  config.grid[0] = 0x80000000u;
  EXPECT_EQ(c.d.launch(&config, c.function, c.params, nullptr), CuResult::invalid_value);
  config.grid[0] = 1, config.grid[1] = 65536;
  EXPECT_EQ(c.d.launch(&config, c.function, c.params, nullptr), CuResult::invalid_value);
  const auto give = [&](int bytes) {
    return c.d.function_set(c.function, CuFunctionAttribute::max_dynamic_shared_size_bytes, bytes);
  };
  EXPECT_EQ(give(227 << 10), CuResult::success);
  EXPECT_EQ(give((227 << 10) + 1), CuResult::invalid_value);
  EXPECT_EQ(give(-1), CuResult::invalid_value);
}

TEST(CudaModelDriver, MapsAreOfWhatTheModelHas) {
  Calls c;
  struct How {
    int type = 6, interleave = 0, swizzle = 3, promotion = 3, fill = 0;
    size_t at = 0;
  };
  const auto encode = [&](const How& how) {
    alignas(128) std::byte memory[256];
    const uint64_t sizes[2] = {64, 8}, strides[1] = {128};
    const uint32_t box[2] = {64, 8}, steps[2] = {1, 1};
    auto* const map = reinterpret_cast<CuTensorMap*>(memory + how.at);
    return c.d.encode_tiled(map, static_cast<CuTensorType>(how.type), 2, reinterpret_cast<void*>(uintptr_t{4096}), sizes,
                            strides, box, steps, how.interleave, static_cast<CuTensorSwizzle>(how.swizzle),
                            static_cast<CuTensorPromotion>(how.promotion), how.fill);
  };
  EXPECT_EQ(encode({}), CuResult::success);
  EXPECT_EQ(encode({.at = 64}), CuResult::success);
  for (const How& how : {How{.type = 16}, How{.interleave = 3}, How{.swizzle = 7}, How{.promotion = 4}, How{.fill = 2}})
    EXPECT_EQ(encode(how), CuResult::invalid_value);
  EXPECT_EQ(encode({.at = 32}), CuResult::invalid_value);
}

// Drivers up to CUDA 13.1 set a bit in maps of small tensors that is cleared before use.
TEST(CudaModelDriver, MapsOfSmallTensorsHaveTheBitOfTheirDriver) {
  Calls c;
  const auto second_word = [&](const char* version, uint64_t images) {
    const With of("SPARKLE_CUDA_MODEL_VERSION", version);
    CuTensorMap map;
    const uint64_t sizes[4] = {64, 4, 4, images}, strides[3] = {128, 512, 2048};
    const int corner[2] = {};
    const uint32_t steps[4] = {1, 1, 1, 1};
    EXPECT_EQ(c.d.encode_im2col(&map, CuTensorType::f16, 4, reinterpret_cast<void*>(uintptr_t{4096}), sizes, strides, corner,
                                corner, 64, 128, steps, 0, CuTensorSwizzle::bytes_128, CuTensorPromotion::bytes_256, 0),
              CuResult::success);
    return map.words[1];
  };
  constexpr uint64_t kBit = uint64_t{1} << 21;
  EXPECT_EQ(second_word("13000", 63), kBit);
  EXPECT_EQ(second_word("13010", 63), kBit);
  EXPECT_EQ(second_word("13000", 64), 0u);
  EXPECT_EQ(second_word("13020", 63), 0u);
}

}  // namespace
}  // namespace sparkle::cuda
