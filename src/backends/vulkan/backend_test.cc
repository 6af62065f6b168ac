// The backend beside its kernels: memory, recordings, order, times, faults.
#include <set>
#include <thread>

#include "backends/memory_probe.h"
#include "backends/vulkan/program.h"
#include "backends/vulkan/vulkan_testing.h"
#include "families/gemm/gemm.h"
#include "families/loops/tile_schedule.h"

namespace sparkle::vulkan {
namespace {

// y = x * w for square matrices, all dense.
Stage product(int64_t size) {
  GemmParams p;
  p.loader = Loader::dense;
  Stage stage;
  stage.params = p;
  for (int i = 0; i < 2; ++i) stage.inputs.push_back(dense_desc(DType::f32, {size, size}));
  stage.outputs.push_back(stage.inputs[0]);
  return stage;
}
Schedule naive() {
  TileSchedule s;
  s.unit = "fma-f32";
  s.m = 64, s.n = 1, s.k = 1;
  return s;
}

// A chain of products: each doubles, so that a step that runs early, twice or never shows.
class Chain {
 public:
  Chain(VulkanBackend& backend, int steps) : backend_(backend), stage_(product(kSize)), steps_(steps) {
    kernel_ = std::move(*backend.compile(stage_, naive(), 0));
    std::vector<float> twice(kSize * kSize, 0);
    for (int i = 0; i < kSize; ++i) twice[static_cast<size_t>(i * kSize + i)] = 2;
    weights_ = uploaded(backend, twice.data(), kBytes);
    arena_ = *backend.allocate(2 * kBytes, MemoryKind::device);
    std::vector<Launch> launches;
    for (int i = 0; i < steps; ++i) {
      Launch launch;
      launch.kernel = kernel_.get();
      launch.inputs = {i == 0 ? Binding{1, 0} : Binding{0, (i - 1) % 2 * kBytes}, {2, 0}};
      launch.outputs = {i + 1 == steps ? Binding{3, 0} : Binding{0, i % 2 * kBytes}};
      launch.name = "step " + std::to_string(i);
      launches.push_back(launch);
    }
    program_ = std::move(*backend.record(launches));
  }
  Result<Token> submit(Buffer& x, Buffer& y, bool timestamps = false, Token after = {}) {
    Buffer* slots[] = {arena_.get(), &x, weights_.get(), &y};
    SubmitOptions options;
    options.timestamps = timestamps;
    options.after = after;
    return backend_.submit(*program_, slots, options);
  }
  float factor() const { return std::ldexp(1.0f, steps_); }
  static constexpr int64_t kSize = 16, kBytes = kSize * kSize * 4;

 private:
  VulkanBackend& backend_;
  Stage stage_;
  int steps_;
  std::unique_ptr<Kernel> kernel_;
  std::shared_ptr<Buffer> weights_, arena_;
  std::unique_ptr<Program> program_;
};

void expect_factor(VulkanBackend& backend, Buffer& y, float x, float factor) {
  std::vector<float> values(Chain::kSize * Chain::kSize);
  download(backend, y, values.data(), Chain::kBytes);
  for (const float v : values) ASSERT_EQ(v, x * factor);
}

TEST(VulkanBackend, RecordsOnceAndSubmitsOnce) {
  SPARKLE_NEEDS_VULKAN(backend);
  Chain chain(*backend, 7);
  const std::vector<float> ones(Chain::kSize * Chain::kSize, 1.0f);
  auto x = uploaded(*backend, ones.data(), Chain::kBytes), y = uploaded(*backend, ones.data(), Chain::kBytes);
  const auto before = backend->counters();
  for (int i = 0; i < 5; ++i) {
    const auto token = chain.submit(*x, *y);
    ASSERT_TRUE(token.ok());
    ASSERT_TRUE(backend->wait(*token).ok());
    EXPECT_TRUE(backend->done(*token));
  }
  const auto after = backend->counters();
  EXPECT_EQ(after.submissions - before.submissions, 5u);
  EXPECT_EQ(after.recordings - before.recordings, 1u);
  EXPECT_EQ(after.copies, before.copies);  // inputs and outputs resident: nothing moves
  EXPECT_EQ(after.pipelines, before.pipelines);
  expect_factor(*backend, *y, 1, chain.factor());
}

TEST(VulkanBackend, OtherBuffersAreRecordedAnew) {
  SPARKLE_NEEDS_VULKAN(backend);
  Chain chain(*backend, 3);
  for (int i = 0; i < 20; ++i) {  // more sets of buffers than recordings are kept
    const std::vector<float> values(Chain::kSize * Chain::kSize, static_cast<float>(i));
    auto x = uploaded(*backend, values.data(), Chain::kBytes), y = uploaded(*backend, values.data(), Chain::kBytes);
    const auto token = chain.submit(*x, *y);
    ASSERT_TRUE(token.ok() && backend->wait(*token).ok());
    expect_factor(*backend, *y, static_cast<float>(i), chain.factor());
  }
}

TEST(VulkanBackend, SubmissionsFollowEachOther) {
  SPARKLE_NEEDS_VULKAN(backend);
  Chain chain(*backend, 2);  // the result of one is the input of the next, nobody waits between
  const std::vector<float> ones(Chain::kSize * Chain::kSize, 1.0f);
  auto a = uploaded(*backend, ones.data(), Chain::kBytes), b = uploaded(*backend, ones.data(), Chain::kBytes);
  Token last;
  for (int i = 0; i < 10; ++i) {
    const auto token = i % 2 == 0 ? chain.submit(*a, *b) : chain.submit(*b, *a);
    ASSERT_TRUE(token.ok());
    EXPECT_GT(token->value, last.value);
    last = *token;
  }
  ASSERT_TRUE(backend->wait(last).ok());
  expect_factor(*backend, *a, 1, std::ldexp(1.0f, 20));
}

TEST(VulkanBackend, TimesOfStepsAddUp) {
  SPARKLE_NEEDS_VULKAN(backend);
  Chain chain(*backend, 6);
  const std::vector<float> ones(Chain::kSize * Chain::kSize, 1.0f);
  auto x = uploaded(*backend, ones.data(), Chain::kBytes), y = uploaded(*backend, ones.data(), Chain::kBytes);
  for (int i = 0; i < 3; ++i) {
    const auto token = chain.submit(*x, *y, true);
    ASSERT_TRUE(token.ok() && backend->wait(*token).ok());
    const auto times = backend->timestamps(*token);
    ASSERT_TRUE(times.ok()) << times.error().message;
    ASSERT_EQ(times->size(), 6u);
    for (size_t s = 0; s < times->size(); ++s) {
      EXPECT_GE((*times)[s].end, (*times)[s].begin);
      EXPECT_EQ((*times)[s].begin, s > 0 ? (*times)[s - 1].end : 0);  // steps fill the whole
    }
    EXPECT_FALSE(backend->timestamps(*token).ok());  // handed out once
  }
  expect_factor(*backend, *y, 1, chain.factor());
}

TEST(VulkanBackend, MemoryIsProbedByTheSizeOfTheWork) {
  SPARKLE_NEEDS_VULKAN(backend);
  auto* const memory = dynamic_cast<MemoryProbe*>(backend);
  ASSERT_NE(memory, nullptr);
  EXPECT_FALSE(memory->knows_caches());
  const size_t dram = backend->device().memory.size() - 1;
  for (const double bytes : {0.0, 1e5, 3e7}) {
    const double rate = memory->probe_bandwidth(dram, bytes);
    EXPECT_GT(rate, 1e8) << bytes;
    EXPECT_LT(rate, 1e14) << bytes;
  }
  EXPECT_EQ(memory->probe_bandwidth(0, 1e5), 0);  // shared memory is filled by kernels
}

TEST(VulkanBackend, StagingAlone) {
  ContextOptions options;
  options.cache = false;
  options.force_staging = options.one_queue = true;
  std::string why;
  const auto backend = test_backend(options, why);
  if (!backend) GTEST_SKIP() << why;
  EXPECT_EQ((*backend->allocate(64, MemoryKind::device))->host(), nullptr);
  EXPECT_NE((*backend->allocate(64, MemoryKind::staging))->host(), nullptr);
  Chain chain(*backend, 4);
  const std::vector<float> values(Chain::kSize * Chain::kSize, 3.0f);
  auto x = uploaded(*backend, values.data(), Chain::kBytes), y = uploaded(*backend, values.data(), Chain::kBytes);
  const auto token = chain.submit(*x, *y);
  ASSERT_TRUE(token.ok() && backend->wait(*token).ok());
  expect_factor(*backend, *y, 3, chain.factor());
}

// Uploads, runs and downloads of two sets of buffers side by side, ordered by tokens alone, on a queue for copies - or on the
// only queue there is, which then goes the same way.
TEST(VulkanBackend, CopiesOnAQueueOfTheirOwn) {
  ContextOptions options;
  options.cache = false;
  options.force_staging = options.two_queues = options.validation = true;
  std::string why;
  const auto backend = test_backend(options, why);
  if (!backend) GTEST_SKIP() << why;
  ASSERT_TRUE(backend->context().two_queues());
  constexpr size_t kCount = Chain::kSize * Chain::kSize;
  const auto work = [&](int seed) {
    Chain chain(*backend, 3);
    struct Set {
      std::shared_ptr<Buffer> up, x, y, down;
      Token uploaded, ran, downloaded;
    } sets[2];
    for (Set& s : sets) {
      s.up = *backend->allocate(Chain::kBytes, MemoryKind::staging),
      s.down = *backend->allocate(Chain::kBytes, MemoryKind::staging);
      s.x = *backend->allocate(Chain::kBytes, MemoryKind::device), s.y = *backend->allocate(Chain::kBytes, MemoryKind::device);
    }
    const auto value = [&](int round) { return static_cast<float>(round * 7 + seed); };
    const auto check = [&](Set& s, int round) {
      ASSERT_TRUE(backend->wait(s.downloaded).ok());
      const auto* values = reinterpret_cast<const float*>(s.down->host());
      for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(values[i], value(round) * chain.factor()) << "round " << round;
    };
    constexpr int kRounds = 20;
    for (int round = 0; round < kRounds; ++round) {
      Set& s = sets[round % 2];
      if (round >= 2) check(s, round - 2);
      std::fill_n(reinterpret_cast<float*>(s.up->host()), kCount, value(round));
      const CopyRegion up{s.up.get(), 0, s.x.get(), 0, Chain::kBytes}, down{s.y.get(), 0, s.down.get(), 0, Chain::kBytes};
      s.uploaded = *backend->copy({&up, 1}, s.ran);
      s.ran = *chain.submit(*s.x, *s.y, false, s.uploaded);
      EXPECT_NE(s.uploaded.value >> 63, s.ran.value >> 63);  // two timelines
      s.downloaded = *backend->copy({&down, 1}, s.ran);
    }
    for (int round = kRounds - 2; round < kRounds; ++round) check(sets[round % 2], round);
  };
  std::thread other(work, 1);
  work(2);
  other.join();
  EXPECT_EQ(backend->context().instance().validation_messages(), 0);
}

// Software devices bind 128 MB at most; addresses know no such bound.
TEST(VulkanBackend, TensorsBeyondABinding) {
  SPARKLE_NEEDS_VULKAN(backend);
  const int64_t rows = 9 << 20, bytes = rows * 16;
  GemmParams p;
  p.loader = Loader::dense;
  Stage stage;
  stage.params = p;
  stage.inputs = {dense_desc(DType::f32, {rows, 4}), dense_desc(DType::f32, {4, 1})};
  stage.outputs = {dense_desc(DType::f32, {rows, 1})};
  std::vector<float> x(static_cast<size_t>(rows) * 4, 0.0f), w{1, 1, 1, 1}, y(static_cast<size_t>(rows));
  x[static_cast<size_t>(rows) * 4 - 1] = 5;
  auto kernel = backend->compile(stage, naive(), 0);
  ASSERT_TRUE(kernel.ok()) << kernel.error().message;
  auto a = uploaded(*backend, x.data(), bytes), b = uploaded(*backend, w.data(), 16),
       c = *backend->allocate(rows * 4, MemoryKind::device);
  Launch launch;
  launch.kernel = kernel->get();
  launch.inputs = {{0, 0}, {1, 0}};
  launch.outputs = {{2, 0}};
  auto program = std::move(*backend->record({&launch, 1}));
  Buffer* slots[] = {a.get(), b.get(), c.get()};
  const auto token = backend->submit(*program, slots, {});
  ASSERT_TRUE(token.ok() && backend->wait(*token).ok());
  download(*backend, *c, y.data(), rows * 4);
  EXPECT_EQ(y.back(), 5);
  EXPECT_EQ(y.front(), 0);
}

// Blocks that lie idle are of other sizes than the one that is wanted.
TEST(VulkanBackend, IdleMemoryMakesRoom) {
  SPARKLE_NEEDS_VULKAN(available);
  ContextOptions options;
  options.cache = false;
  std::string why;
  const auto backend = test_backend(options, why, {.memory_bytes = 3 << 20});
  ASSERT_NE(backend, nullptr) << why;
  for (const int64_t bytes : {1 << 20, 1 << 19}) ASSERT_TRUE(backend->allocate(bytes, MemoryKind::device).ok());
  EXPECT_TRUE(backend->allocate(2 << 20, MemoryKind::device).ok());
}

// Drivers allow a few thousand allocations.
TEST(VulkanBackend, RecordsShareAllocations) {
  SPARKLE_NEEDS_VULKAN(backend);
  const auto memory =
      std::make_shared<Memory>(std::shared_ptr<Context>(std::shared_ptr<void>(), const_cast<Context*>(&backend->context())));
  std::vector<std::shared_ptr<DeviceBuffer>> records;
  for (int i = 0; i < 500; ++i) {
    auto record = memory->allocate(424, MemoryUse::record);
    ASSERT_TRUE(record.ok()) << record.error().message;
    records.push_back(*record);
    std::memset(records.back()->host(), i & 255, 424);
  }
  EXPECT_LE(memory->allocated_bytes(), 6 * (80 << 10));
  std::set<VkDeviceAddress> addresses;
  for (int i = 0; i < 500; ++i) {
    addresses.insert(records[static_cast<size_t>(i)]->address());
    EXPECT_EQ(records[static_cast<size_t>(i)]->host()[423], std::byte(i & 255));
  }
  EXPECT_EQ(addresses.size(), 500u);
  records.clear();
  records.push_back(*memory->allocate(424, MemoryUse::record));  // of what has come back
  EXPECT_LE(memory->allocated_bytes(), 6 * (80 << 10));
}

TEST(VulkanBackend, MemoryThatIsNotThere) {
  ContextOptions options;
  options.cache = false;
  std::string why;
  const auto backend = test_backend(options, why, {.memory_bytes = 1 << 20});
  if (!backend) GTEST_SKIP() << why;
  const auto large = backend->allocate(2 << 20, MemoryKind::device);
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().reason, Reason::out_of_memory);
  EXPECT_TRUE(backend->allocate(1 << 18, MemoryKind::device).ok());
  const auto beyond = backend->allocate(int64_t{1} << 50, MemoryKind::device);
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.error().reason, Reason::out_of_memory);
}

TEST(VulkanBackend, LostDevices) {
  ContextOptions options;
  options.cache = false;
  std::string why;
  const auto backend = test_backend(options, why, {.lost_at_submit = 4});
  if (!backend) GTEST_SKIP() << why;
  const std::vector<float> ones(Chain::kSize * Chain::kSize, 1.0f);
  Chain chain(*backend, 1);  // its weights are the first submission
  auto x = uploaded(*backend, ones.data(), Chain::kBytes), y = uploaded(*backend, ones.data(), Chain::kBytes);
  const auto token = chain.submit(*x, *y);
  ASSERT_FALSE(token.ok());
  EXPECT_EQ(token.error().reason, Reason::device_lost);
  EXPECT_NE(token.error().message.find("cpu"), std::string::npos);
  EXPECT_EQ(backend->wait({1}).error().reason, Reason::device_lost);
}

std::vector<std::string>& labels_seen() {
  static std::vector<std::string> seen;
  return seen;
}

// What profilers see: each launch between its own name and an end, recorded once and whenever it is recorded anew.
TEST(VulkanBackend, LaunchesCarryTheirNames) {
  ContextOptions options;
  options.cache = false;
  std::string why;
  const auto backend = test_backend(options, why);
  if (!backend) GTEST_SKIP() << why;
  if (!backend->context().labels().begin) GTEST_SKIP() << "the loader offers no VK_EXT_debug_utils";
  auto& labels = const_cast<StepLabels&>(backend->context().labels());
  labels.begin = [](VkCommandBuffer, const VkDebugUtilsLabelEXT* label) { labels_seen().push_back(label->pLabelName); };
  labels.end = [](VkCommandBuffer) { labels_seen().push_back("."); };
  Chain chain(*backend, 3);
  const std::vector<float> ones(Chain::kSize * Chain::kSize, 1.0f);
  auto x = uploaded(*backend, ones.data(), Chain::kBytes), y = uploaded(*backend, ones.data(), Chain::kBytes);
  labels_seen().clear();
  for (int i = 0; i < 2; ++i) {
    const auto token = chain.submit(*x, *y);
    ASSERT_TRUE(token.ok() && backend->wait(*token).ok());
  }
  EXPECT_EQ(labels_seen(), (std::vector<std::string>{"step 0", ".", "step 1", ".", "step 2", "."}));
}

TEST(VulkanBackend, ValidationLayerHasNothingToSay) {
  ContextOptions options;
  options.cache = false;
  options.validation = true;
  std::string why;
  const auto backend = test_backend(options, why);
  if (!backend) GTEST_SKIP() << why;
  if (!backend->context().instance().validates()) GTEST_SKIP() << "the validation layer is not installed";
  Chain chain(*backend, 3);
  const std::vector<float> ones(Chain::kSize * Chain::kSize, 1.0f);
  auto x = uploaded(*backend, ones.data(), Chain::kBytes), y = uploaded(*backend, ones.data(), Chain::kBytes);
  for (const bool timed : {false, true}) {
    const auto token = chain.submit(*x, *y, timed);
    ASSERT_TRUE(token.ok() && backend->wait(*token).ok());
  }
  expect_factor(*backend, *y, 1, chain.factor());
  EXPECT_EQ(backend->context().instance().validation_messages(), 0);
}

}  // namespace
}  // namespace sparkle::vulkan
