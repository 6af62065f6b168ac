// Kernels that measure rates do what they are timed for: what their threads leave behind is counted by hand here. And each unit
// and memory of a device has a rate by them.
#include "backends/cuda/roofs.h"

#include <numeric>

#include "backends/cuda/cuda_testing.h"
#include "backends/cuda/kernels/roofs/roof_record.h"
#include "backends/memory_probe.h"
#include "backends/roof_runs.h"

namespace sparkle::cuda {
namespace {

constexpr unsigned kBlocks = 2;
constexpr int kRounds = 3;
constexpr size_t kThreads = size_t{kBlocks} * kRoofThreads;

// A workshop on a device of its own, since a backend does not show its own.
Workshop shop_of(CudaBackend& backend) {
  auto driver = Driver::open(12000);
  auto context = Context::open(*driver, 0);
  Workshop shop;
  shop.context = *context;
  shop.memory = std::make_shared<Memory>(shop.context);
  shop.functions = *Functions::open(shop.context);
  EXPECT_EQ(shop.context->handle(), backend.context().handle());
  return shop;
}

struct Ran {
  std::vector<uint32_t> left;  // by each thread
  std::vector<uint32_t> copied;
};

Ran ran(CudaBackend& backend, const RoofKernel& kernel, const std::vector<uint32_t>& from = std::vector<uint32_t>(4)) {
  const auto bytes = static_cast<int64_t>(4 * from.size());
  const auto read = uploaded(backend, from.data(), bytes);
  const std::vector<uint32_t> none(std::max(from.size(), kThreads), 7);
  const auto written = uploaded(backend, none.data(), bytes), to = uploaded(backend, none.data(), 4 * kThreads);
  Buffer* const buffers[] = {read.get(), written.get(), to.get()};
  const Workshop shop = shop_of(backend);
  const auto made = roof_launch(shop, kernel, kBlocks, static_cast<uint32_t>(from.size() / 4), kRounds);
  EXPECT_TRUE(made.ok()) << made.error().message;
  if (!made.ok()) return {};
  const Kernel* const kernels[] = {made->get()};
  const auto seconds = timed(backend, kernels, buffers);
  EXPECT_TRUE(seconds.ok() && seconds->size() == 1);
  Ran r{std::vector<uint32_t>(kThreads), std::vector<uint32_t>(from.size())};
  download(backend, *to, r.left.data(), 4 * kThreads);
  download(backend, *written, r.copied.data(), bytes);
  return r;
}

std::vector<uint32_t> counted(size_t vectors) {
  std::vector<uint32_t> words(4 * vectors);
  std::iota(words.begin(), words.end(), 1u);
  return words;
}
uint32_t sum_of(const std::vector<uint32_t>& words) { return std::accumulate(words.begin(), words.end(), 0u); }

TEST(CudaRoofs, UnitsDoTheProductsThatAreCounted) {
  const auto backend = test_backend();
  ASSERT_TRUE(backend);
  // What a thread's sums come to of ones: products of a chain by the depth of one, of all its sums.
  const struct {
    const char* unit;
    bool bytes;
    double sum;
  } kExpected[] = {
      {"fma-f32", false, 16 * 15 / 2 + 16.0 * 8 * kRounds}, {"mma-f16", false, 8 * 4 * 4.0 * 16 * kRounds},
      {"mma-bf16", false, 8 * 4 * 4.0 * 16 * kRounds},      {"mma-tf32", false, 8 * 4 * 4.0 * 8 * kRounds},
      {"mma-i8", true, 8 * 4 * 4.0 * 32 * kRounds},         {"wgmma-f16", false, 128 * 4.0 * 16 * kRounds},
      {"wgmma-bf16", false, 128 * 4.0 * 16 * kRounds},      {"wgmma-tf32", false, 128 * 4.0 * 8 * kRounds},
      {"wgmma-i8", true, 128 * 4.0 * 32 * kRounds},         {"wgmma-e4m3", false, 128 * 4.0 * 32 * kRounds},
      {"wgmma-e5m2", false, 128 * 4.0 * 32 * kRounds},
  };
  for (const auto& e : kExpected) {
    const RoofKernel* const kernel = roof_kernel_of(e.unit);
    ASSERT_TRUE(kernel) << e.unit;
    for (const uint32_t left : ran(*backend, *kernel).left)
      ASSERT_EQ(e.bytes ? static_cast<double>(left) : __builtin_bit_cast(float, left), e.sum) << e.unit;
    // Each sum of a block is so many products deep: two flops each. fma: a chain is one.
    const bool groups = e.unit[0] == 'w', lanes = e.unit[0] == 'f';
    const double products = lanes ? 16.0 * 8 * kRounds : e.sum;
    EXPECT_EQ(kernel->flops * kRounds, 2 * products * kRoofThreads) << e.unit << groups;
  }
}

TEST(CudaRoofs, MemoriesAreReadAsOftenAsIsCounted) {
  const auto backend = test_backend();
  ASSERT_TRUE(backend);
  for (const size_t vectors :
       {size_t{5} * kThreads, size_t{4} * kThreads + 3, size_t{17}}) {  // several at once, and what is left
    const auto from = counted(vectors);
    EXPECT_EQ(sum_of(ran(*backend, {"sparkle_roof_read"}, from).left), kRounds * sum_of(from)) << vectors;
    const Ran copy = ran(*backend, {"sparkle_roof_copy"}, from);
    EXPECT_EQ(copy.copied, from) << vectors;
    EXPECT_EQ(sum_of(copy.left), kRounds * sum_of(from)) << vectors;
  }
  const auto near = counted(1024);  // as many as the threads of a block read in a round
  EXPECT_EQ(sum_of(ran(*backend, {"sparkle_roof_near"}, near).left), kBlocks * kRounds * sum_of(near));
  for (const uint32_t left : ran(*backend, {"sparkle_roof_shared", kRoofSharedBytes, 3}).left)
    ASSERT_EQ(left, kRounds * kRoofSharedReads * 4u * 3u);
}

TEST(CudaRoofs, EachUnitAndMemoryHasARate) {
  const auto backend = test_backend();
  ASSERT_TRUE(backend);
  const Workshop shop = shop_of(*backend);
  RoofBuffers kept;
  for (const MathUnit& unit : backend->device().units) {
    const auto rate = measure_flops(*backend, shop, kept, unit.name, 1);
    ASSERT_TRUE(rate.ok()) << rate.error().message;
    if (unit.name == "fma-f16") EXPECT_EQ(*rate, 0);  // no kernel multiplies by it
    else EXPECT_GT(*rate, 1e3) << unit.name;
  }
  EXPECT_EQ(*measure_flops(*backend, shop, kept, "wgmma-f64", 1), 0);
  for (const size_t level : {size_t{0}, size_t{1}, size_t{2}}) {
    const auto rate = measure_bandwidth(*backend, shop, kept, level, 1 << 20, 1);
    ASSERT_TRUE(rate.ok()) << rate.error().message;
    EXPECT_GT(*rate, 1e3) << backend->device().memory[level].name;
  }
}

// Whose time is the host's.
TEST(CudaRoofs, TheModelJudgesNoRate) {
  const auto backend = test_backend();
  ASSERT_TRUE(backend);
  EXPECT_EQ(backend->probe_peak("fma-f32"), 0);
  auto* const memory = dynamic_cast<MemoryProbe*>(backend.get());
  ASSERT_TRUE(memory);
  EXPECT_TRUE(memory->knows_caches());
  EXPECT_EQ(memory->probe_bandwidth(2, 1 << 20), 0);
}

}  // namespace
}  // namespace sparkle::cuda
