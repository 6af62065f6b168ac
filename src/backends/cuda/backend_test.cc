// What the CUDA backend does with programs, memory and streams, over the functional model.
#include <set>
#include <thread>

#include "backends/burst_clock.h"
#include "backends/cuda/cuda_testing.h"
#include "backends/device_memory.h"
#include "families/copy/copy.h"
#include "families/family.h"
#include "families/gemm/gemm.h"
#include "families/loops/tile_schedule.h"
#include "families/pointwise/pointwise.h"

namespace sparkle::cuda {
namespace {

constexpr int64_t kCount = 1000;

Stage sum_stage() {
  Stage stage;
  stage.params = PointwiseParams{2, {{PointwiseOp::add, 0, 1, 0, 0, 0}}};
  stage.inputs = {dense_desc(DType::f32, {kCount}), dense_desc(DType::f32, {kCount})};
  stage.outputs = {dense_desc(DType::f32, {kCount})};
  return stage;
}
const Schedule kInterpreted = LoopSchedule{"interpreted", "fma-f32", 0};

std::vector<float> numbers(float first) {
  std::vector<float> v(kCount);
  for (size_t i = 0; i < v.size(); ++i) v[i] = first + static_cast<float>(i);
  return v;
}
std::shared_ptr<Buffer> uploaded(CudaBackend& backend, const std::vector<float>& v) {
  return cuda::uploaded(backend, v.data(), static_cast<int64_t>(v.size() * 4));
}
std::vector<float> downloaded(CudaBackend& backend, Buffer& buffer) {
  std::vector<float> v(kCount);
  download(backend, buffer, v.data(), kCount * 4);
  return v;
}

// Sums in a chain and side by side: c = a + b, d = c + a, e = c + b, f = d + e; the model runs them in any order that the graph
// allows.
struct Chain {
  std::shared_ptr<CudaBackend> backend = test_backend();
  std::unique_ptr<Kernel> kernel = *backend->compile(sum_stage(), kInterpreted, 0);
  std::unique_ptr<Program> program;
  std::vector<std::shared_ptr<Buffer>> buffers;
  std::vector<Buffer*> slots;

  Chain() {
    const auto launch = [&](int x, int y, int z) {
      Launch l;
      l.kernel = kernel.get();
      l.inputs = {{x, 0}, {y, 0}}, l.outputs = {{z, 0}};
      l.workspace = {z, 0};
      return l;
    };
    const std::vector<Launch> launches{launch(0, 1, 2), launch(2, 0, 3), launch(2, 1, 4), launch(3, 4, 5), launch(5, 5, 2)};
    program = *backend->record(launches);
    buffers = {uploaded(*backend, numbers(1)), uploaded(*backend, numbers(100))};
    for (int i = 0; i < 4; ++i) buffers.push_back(*backend->allocate(kCount * 4, MemoryKind::device));
    for (const auto& b : buffers) slots.push_back(b.get());
  }
  void check() {
    const std::vector<float> got = downloaded(*backend, *buffers[2]), a = numbers(1), b = numbers(100);
    for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], 2 * (3 * (a[i] + b[i]))) << i;
  }
};

TEST(CudaBackend, GraphsKeepTheOrderThatBytesDemand) {
  Chain chain;
  for (int run = 0; run < 20; ++run) {
    const auto token = chain.backend->submit(*chain.program, chain.slots, {});
    ASSERT_TRUE(token.ok()) << token.error().message;
    ASSERT_TRUE(chain.backend->wait(*token).ok());
    chain.check();
  }
  EXPECT_EQ(chain.backend->counters().graphs, 1u);
  EXPECT_EQ(chain.backend->counters().submissions, 20u);
}

// Blocks of the device's as the driver was asked for them; what lies idle is nobody's, and pinned memory the host's.
TEST(CudaBackend, CountsWhatIsHeldOfTheDevice) {
  const auto backend = test_backend();
  ASSERT_TRUE(backend);
  const auto* const memory = dynamic_cast<const DeviceMemory*>(backend.get());
  ASSERT_TRUE(memory);
  const int64_t before = memory->device_bytes();
  constexpr int64_t kMebi = int64_t{1} << 20;
  for (int round = 0; round < 2; ++round) {  // of the driver, then of what lies idle
    const auto one = backend->allocate(kMebi, MemoryKind::device), two = backend->allocate(kMebi + 1, MemoryKind::weights);
    const auto pinned = backend->allocate(kMebi, MemoryKind::staging);
    ASSERT_TRUE(one.ok() && two.ok() && pinned.ok());
    EXPECT_EQ(memory->device_bytes(), before + 2 * kMebi + kMebi / 8);
  }
  EXPECT_EQ(memory->device_bytes(), before);
}

TEST(CudaBackend, OtherSlotsAreAnotherGraph) {
  Chain chain;
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE(chain.backend->wait(*chain.backend->submit(*chain.program, chain.slots, {})).ok());
    chain.buffers[2] = *chain.backend->allocate(kCount * 4, MemoryKind::device);
    chain.slots[2] = chain.buffers[2].get();
  }
  EXPECT_EQ(chain.backend->counters().graphs, 2u);
}

// Nothing is there before it was waited for: the model does all work as late as may be.
TEST(CudaBackend, WorkIsDoneWhenItWasWaitedFor) {
  Chain chain;
  const auto token = *chain.backend->submit(*chain.program, chain.slots, {});
  const auto staging = *chain.backend->allocate(kCount * 4, MemoryKind::staging);
  std::memset(staging->host(), 0, kCount * 4);
  const CopyRegion region{chain.buffers[2].get(), 0, staging.get(), 0, kCount * 4};
  const auto copied = *chain.backend->copy({&region, 1}, token);
  EXPECT_EQ(reinterpret_cast<const float*>(staging->host())[0], 0);
  EXPECT_FALSE(chain.backend->done(copied));
  ASSERT_TRUE(chain.backend->wait(copied).ok());
  EXPECT_TRUE(chain.backend->done(copied));
  EXPECT_TRUE(chain.backend->done(token));
  EXPECT_EQ(reinterpret_cast<const float*>(staging->host())[0], 6 * 101.f);
}

// A copy that does not say what it comes after may come before it: what tests of sessions would find.
TEST(CudaBackend, CopiesDoNotWaitUnlessTheyAreTold) {
  Chain chain;
  (void)*chain.backend->submit(*chain.program, chain.slots, {});
  const auto staging = *chain.backend->allocate(kCount * 4, MemoryKind::staging);
  const CopyRegion region{chain.buffers[2].get(), 0, staging.get(), 0, kCount * 4};
  ASSERT_TRUE(chain.backend->wait(*chain.backend->copy({&region, 1}, {})).ok());
  EXPECT_NE(reinterpret_cast<const float*>(staging->host())[0], 6 * 101.f);
}

TEST(CudaBackend, KeepsWhatASubmissionTouches) {
  Chain chain;
  auto kept = std::make_shared<int>(7);
  const std::weak_ptr<int> watched = kept;
  SubmitOptions options;
  options.keep_alive = std::make_shared<std::vector<std::shared_ptr<void>>>();
  options.keep_alive->push_back(std::move(kept));
  const auto token = *chain.backend->submit(*chain.program, chain.slots, options);
  options.keep_alive = nullptr;
  EXPECT_FALSE(watched.expired());
  ASSERT_TRUE(chain.backend->wait(token).ok());
  EXPECT_TRUE(watched.expired());
}

TEST(CudaBackend, TellsTheTimeOfEachStep) {
  Chain chain;
  SubmitOptions options;
  options.timestamps = true;
  const auto token = *chain.backend->submit(*chain.program, chain.slots, options);
  ASSERT_TRUE(chain.backend->wait(token).ok());
  const auto times = chain.backend->timestamps(token);
  ASSERT_TRUE(times.ok()) << times.error().message;
  ASSERT_EQ(times->size(), 5u);
  double before = 0;
  for (const StepTime& t : *times) {
    EXPECT_GE(t.begin, before);
    EXPECT_GT(t.end, t.begin);
    before = t.end;
  }
  chain.check();
  EXPECT_FALSE(chain.backend->timestamps(token).ok());
}

TEST(CudaBackend, TellsTheTimeOfRunsThatAreHandedOverAtOnce) {
  Chain chain;
  auto* const clock = dynamic_cast<BurstClock*>(chain.backend.get());
  ASSERT_NE(clock, nullptr);
  const auto launches = [&](const Burst& burst) {
    const unsigned long long before = model_counts().graph_launches;
    const auto seconds = clock->seconds_of_run(*chain.program, chain.slots, burst);
    EXPECT_TRUE(seconds.ok() && *seconds > 0) << (seconds.ok() ? "" : seconds.error().message);
    return model_counts().graph_launches - before;
  };
  EXPECT_EQ(launches({3, 2}), 5u);
  EXPECT_EQ(launches({1, 0}), 1u);
  chain.check();
}

// As a layer that is timed does. Sums that are split count the parts that are there; whole numbers tell one that came twice.
TEST(CudaBackend, ProductsStandInAGraphManyTimes) {
  const auto backend = test_backend();
  Stage stage;
  stage.params = GemmParams{Loader::dense, 1, {}, {}};
  stage.inputs = {dense_desc(DType::bf16, {24, 512}), dense_desc(DType::bf16, {512, 40})};
  stage.outputs = {dense_desc(DType::bf16, {24, 40})};
  const std::vector<uint16_t> ones(512 * 40, 0x3f80);
  std::set<std::string> split;
  for (const Variant& variant : gemm_info().variants) {
    Reason why = Reason::none;
    if (!variant.runs_on(backend->device())) continue;
    for (const Schedule& schedule : gemm_info().schedules(stage, variant, backend->device(), why)) {
      const auto* const tile = get_if<TileSchedule>(&schedule);
      if (!tile || tile->split < 2 || split.count(tile->variant)) continue;
      const auto kernel = backend->compile(stage, schedule, 0);
      ASSERT_TRUE(kernel.ok()) << kernel.error().message;
      const std::shared_ptr<Buffer> buffers[] = {
          cuda::uploaded(*backend, ones.data(), 24 * 512 * 2), cuda::uploaded(*backend, ones.data(), 512 * 40 * 2),
          *backend->allocate(24 * 40 * 2, MemoryKind::device),
          *backend->allocate(std::max<int64_t>(64, (*kernel)->workspace_bytes()), MemoryKind::device)};
      Launch launch;
      launch.kernel = kernel->get();
      launch.inputs = {{0, 0}, {1, 0}}, launch.outputs = {{2, 0}}, launch.workspace = {3, 0};
      const auto program = *backend->record(std::vector<Launch>(7, launch));
      Buffer* const slots[] = {buffers[0].get(), buffers[1].get(), buffers[2].get(), buffers[3].get()};
      const auto seconds = dynamic_cast<BurstClock&>(*backend).seconds_of_run(*program, slots, {2, 1});
      ASSERT_TRUE(seconds.ok()) << seconds.error().message;
      std::vector<uint16_t> got(24 * 40);
      download(*backend, *buffers[2], got.data(), 24 * 40 * 2);
      EXPECT_EQ(got, std::vector<uint16_t>(24 * 40, 0x4400)) << to_text(schedule);  // 512
      split.insert(tile->variant);
    }
  }
  EXPECT_GE(split.size(), 2u);
}

TEST(CudaBackend, ThreadsSubmitAtOnce) {
  Chain chain;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      std::vector<std::shared_ptr<Buffer>> own = chain.buffers;
      std::vector<Buffer*> slots;
      for (size_t i = 2; i < own.size(); ++i) own[i] = *chain.backend->allocate(kCount * 4, MemoryKind::device);
      for (const auto& b : own) slots.push_back(b.get());
      for (int run = 0; run < 5; ++run) {
        const auto token = chain.backend->submit(*chain.program, slots, {});
        ASSERT_TRUE(token.ok());
        ASSERT_TRUE(chain.backend->wait(*token).ok());
        EXPECT_EQ(downloaded(*chain.backend, *own[2])[3], 6 * 107.f);
      }
    });
  for (std::thread& t : threads) t.join();
}

TEST(CudaBackend, TakesMemoryOfTheCallers) {
  Chain chain;
  // As another library of the process would allocate it.
  const Driver& d = chain.backend->context().driver();
  const Current current(chain.backend->context());
  CuAddress address = 0;
  ASSERT_EQ(d.memory_allocate(&address, kCount * 4), CuResult::success);
  const auto wrap = [&](uint64_t at, int64_t bytes) { return chain.backend->wrap({at, bytes}); };
  const auto own = wrap(address, kCount * 4);
  ASSERT_TRUE(own.ok()) << own.error().message;
  chain.slots[2] = own->get();
  ASSERT_TRUE(chain.backend->wait(*chain.backend->submit(*chain.program, chain.slots, {})).ok());
  EXPECT_EQ(downloaded(*chain.backend, **own)[0], 6 * 101.f);
  const auto refused = [&](uint64_t at, int64_t bytes, const char* part) {
    const auto buffer = wrap(at, bytes);
    ASSERT_FALSE(buffer.ok());
    EXPECT_EQ(buffer.error().reason, Reason::bad_usage);
    EXPECT_NE(buffer.error().message.find(part), std::string::npos) << buffer.error().message;
  };
  refused(address + 4, 16, "no multiple of 16");
  refused(address + 16, kCount * 4, "3984 from its address on");
  refused(address, 0, "are not inside");
  refused(reinterpret_cast<uintptr_t>(&chain), 4, "none of a CUDA device's memory");
  const auto pinned = *chain.backend->allocate(64, MemoryKind::staging);
  refused(pinned->address(), 4, "none of a CUDA device's memory");
  ASSERT_EQ(d.memory_free(address), CuResult::success);
}

// The caller's stream goes before and behind ours, without the host waiting for either.
TEST(CudaBackend, StreamsOfTheCallersAreFollowed) {
  Chain chain;
  const Driver& d = chain.backend->context().driver();
  const Current current(chain.backend->context());
  CuStream stream = nullptr;
  ASSERT_EQ(d.stream_create(&stream, kStreamNonBlocking), CuResult::success);
  const auto handle = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(stream));
  const auto from = *chain.backend->allocate(kCount * 4, MemoryKind::staging),
             to = *chain.backend->allocate(kCount * 4, MemoryKind::staging);
  const std::vector<float> other = numbers(1000);
  std::memcpy(from->host(), other.data(), kCount * 4);
  ASSERT_EQ(d.copy(chain.buffers[0]->address(), from->address(), kCount * 4, stream), CuResult::success);
  ASSERT_TRUE(chain.backend->wait_for_stream(handle).ok());
  const auto token = *chain.backend->submit(*chain.program, chain.slots, {});
  ASSERT_TRUE(chain.backend->let_stream_wait(handle, token).ok());
  ASSERT_EQ(d.copy(to->address(), chain.buffers[2]->address(), kCount * 4, stream), CuResult::success);
  const auto end = Event::record(
      std::shared_ptr<Context>(std::shared_ptr<Context>(), const_cast<Context*>(&chain.backend->context())), stream, false);
  ASSERT_TRUE(end.ok());
  ASSERT_EQ(d.event_synchronize((*end)->handle()), CuResult::success);
  EXPECT_EQ(reinterpret_cast<const float*>(to->host())[0], 6 * 1100.f);
  EXPECT_FALSE(chain.backend->wait_for_stream(0x1234).ok());
}

TEST(CudaBackend, FailuresAreSentences) {
  Chain chain;
  fail_next("cuMemAlloc_v2", CuResult::out_of_memory);
  fail_next("cuGraphLaunch", CuResult::invalid_value);
  const auto token = chain.backend->submit(*chain.program, chain.slots, {});
  ASSERT_FALSE(token.ok());
  EXPECT_EQ(token.error().reason, Reason::device_unusable);
  EXPECT_NE(token.error().message.find("cuGraphLaunch said CUDA_ERROR_INVALID_VALUE"), std::string::npos)
      << token.error().message;
  // More than the device has, whatever is idle.
  const auto large = chain.backend->allocate(int64_t{1} << 40, MemoryKind::device);
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().reason, Reason::out_of_memory);
  EXPECT_NE(large.error().message.find("cannot allocate 1099511627776 bytes"), std::string::npos) << large.error().message;
}

TEST(CudaBackend, ALostDeviceStaysLost) {
  Chain chain;
  fail_next("cuGraphLaunch", CuResult::illegal_address);
  const auto token = chain.backend->submit(*chain.program, chain.slots, {});
  ASSERT_FALSE(token.ok());
  EXPECT_EQ(token.error().reason, Reason::device_lost);
  EXPECT_TRUE(chain.backend->lost());
  EXPECT_EQ(chain.backend->submit(*chain.program, chain.slots, {}).error().reason, Reason::device_lost);
}

// What the model itself finds: use that a driver may answer with anything.
using CudaModelDeathTest = ::testing::Test;
TEST(CudaModelDeathTest, TheHostDoesNotTouchDeviceMemory) {
  Chain chain;
  const auto* first = reinterpret_cast<const volatile float*>(static_cast<uintptr_t>(chain.buffers[0]->address()));
  EXPECT_DEATH((void)*first, "byte 0 of an allocation of .* which is the device's, and the host touched it");
}

TEST(CudaModel, CopiesOutsideOfMemoryAreRefused) {
  Chain chain;
  const CopyRegion region{chain.buffers[0].get(), 0, chain.buffers[1].get(), 8192, 64};
  EXPECT_FALSE(chain.backend->copy({&region, 1}, {}).ok());
}

}  // namespace
}  // namespace sparkle::cuda
