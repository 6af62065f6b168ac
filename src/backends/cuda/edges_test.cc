// Edges of graphs by which a kernel may begin while the one before it ends: where programs have them, and that the model orders
// by them.
#include "backends/cuda/cuda_testing.h"
#include "backends/cuda/kernels/fill_record.h"
#include "backends/cuda/program.h"
#include "base/log.h"
#include "families/pointwise/pointwise.h"

namespace sparkle::cuda {
namespace {

constexpr int64_t kCount = 300;

// c = a + b; d = c + a, e = c + b; f = d + e; c = f + f.
struct Fork {
  std::shared_ptr<CudaBackend> backend = test_backend();
  std::unique_ptr<Kernel> kernel;
  std::vector<Launch> launches;
  std::unique_ptr<Program> program;
  std::vector<std::shared_ptr<Buffer>> buffers;
  std::vector<Buffer*> slots;

  Fork() {
    Stage stage;
    stage.params = PointwiseParams{2, {{PointwiseOp::add, 0, 1, 0, 0, 0}}};
    stage.inputs = {dense_desc(DType::f32, {kCount}), dense_desc(DType::f32, {kCount})};
    stage.outputs = {dense_desc(DType::f32, {kCount})};
    kernel = *backend->compile(stage, LoopSchedule{"interpreted", "fma-f32", 0}, 0);
    for (const auto [x, y, z] : {std::array{0, 1, 2}, {2, 0, 3}, {2, 1, 4}, {3, 4, 5}, {5, 5, 2}}) {
      Launch& l = launches.emplace_back();
      l.kernel = kernel.get();
      l.inputs = {{x, 0}, {y, 0}}, l.outputs = {{z, 0}};
      l.workspace = {z, 0};
    }
    program = *backend->record(launches);
    const std::vector<float> ones(kCount, 1), tens(kCount, 10);
    buffers = {uploaded(*backend, ones.data(), kCount * 4), uploaded(*backend, tens.data(), kCount * 4)};
    for (int i = 0; i < 4; ++i) buffers.push_back(*backend->allocate(kCount * 4, MemoryKind::device));
    for (const auto& b : buffers) slots.push_back(b.get());
  }
  // Kernels behind programmatic edges, of one run.
  unsigned long long run(bool timestamps = false) {
    const unsigned long long before = model_counts().early_launches;
    SubmitOptions options;
    options.timestamps = timestamps;
    const auto token = backend->submit(*program, slots, options);
    EXPECT_TRUE(token.ok() && backend->wait(*token).ok()) << (token.ok() ? "" : token.error().message);
    std::vector<float> got(kCount);
    download(*backend, *buffers[2], got.data(), kCount * 4);
    EXPECT_EQ(got, std::vector<float>(kCount, 66));
    return model_counts().early_launches - before;
  }
};

TEST(CudaEdges, OneFollowerOfEachKernelThatFollowsNoOtherBeginsEarly) {
  Fork fork;
  EXPECT_EQ(fork.backend->context().full_edges(), "");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(fork.run(), 2u);
}

TEST(CudaEdges, LaunchesOneByOneFollowEachOther) {
  Fork fork;
  EXPECT_EQ(fork.run(true), 0u);
}

// The stream is busy until the host has handed all of it over: some microseconds for each launch and each event.
TEST(CudaEdges, LaunchesOneByOneFindAStreamThatIsBusy) {
  Fork fork;
  const auto launches = [&](bool timestamps) {
    const unsigned long long before = model_counts().launches;
    fork.run(timestamps);
    return model_counts().launches - before;
  };
  const auto without = launches(false), with = launches(true);
  EXPECT_EQ(with, without + 1);
  const auto begin = std::chrono::steady_clock::now();
  fork.run(true);
  EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::microseconds(5 * 5 + 6 * 3));
}

TEST(CudaEdges, AreFullOnesWhereThatIsAskedFor) {
  const With full("SPARKLE_CUDA_EDGES", "full");
  Fork fork;
  EXPECT_EQ(fork.run(), 0u);
  EXPECT_EQ(fork.backend->context().full_edges(), "SPARKLE_CUDA_EDGES asks for it");
}

TEST(CudaEdges, AreFullOnesForOlderDriversAndDevices) {
  {
    const With older("SPARKLE_CUDA_MODEL_VERSION", "12020");
    Fork fork;
    EXPECT_EQ(fork.run(), 0u);
    EXPECT_EQ(fork.backend->context().full_edges(), "the driver is older than CUDA 12.3");
  }
  const With newest("SPARKLE_CUDA_MODEL_VERSION", "12030");
  EXPECT_EQ(Fork().run(), 2u);
}

TEST(CudaEdges, AnotherWordForThemIsRefused) {
  const With edges("SPARKLE_CUDA_EDGES", "soft");
  const auto driver = Driver::open(12000);
  ASSERT_TRUE(driver.ok());
  const auto context = Context::open(*driver, 0);
  ASSERT_FALSE(context.ok());
  EXPECT_EQ(context.error().reason, Reason::bad_usage);
  EXPECT_EQ(context.error().message, "The environment's SPARKLE_CUDA_EDGES is 'soft'; it may be 'full' or 'programmatic'.");
}

// Steps of empty outputs have no launches and hand on what they wait for: two of them behind one launch name it twice to what
// follows both, and a node that depends on another one twice is refused.
TEST(CudaEdges, StepsWithoutLaunchesHandOnALaunchOnce) {
  const auto backend = test_backend();
  const auto sum_of = [&](int64_t count) {
    Stage stage;
    stage.params = PointwiseParams{2, {{PointwiseOp::add, 0, 1, 0, 0, 0}}};
    stage.inputs = {dense_desc(DType::f32, {count}), dense_desc(DType::f32, {count})};
    stage.outputs = {dense_desc(DType::f32, {count})};
    return *backend->compile(stage, LoopSchedule{"interpreted", "fma-f32", 0}, 0);
  };
  const auto sum = sum_of(kCount), nothing = sum_of(0);
  std::vector<Launch> launches;
  for (const auto& [kernel, y] : {std::pair(sum.get(), 1), {nothing.get(), 2}, {nothing.get(), 3}, {sum.get(), 1}}) {
    Launch& l = launches.emplace_back();
    const int x = kernel == sum.get() ? 0 : 1;
    l.kernel = kernel;
    l.inputs = {{x, 0}, {x, 0}}, l.outputs = {{y, 0}};
    l.workspace = {y, 0};
  }
  const auto program = *backend->record(launches);
  const std::vector<float> ones(kCount, 1);
  std::vector<std::shared_ptr<Buffer>> buffers{uploaded(*backend, ones.data(), kCount * 4)};
  for (int i = 0; i < 3; ++i) buffers.push_back(*backend->allocate(kCount * 4, MemoryKind::device));
  std::vector<Buffer*> slots;
  for (const auto& b : buffers) slots.push_back(b.get());
  const unsigned long long before = model_counts().early_launches;
  const auto token = backend->submit(*program, slots, {});
  ASSERT_TRUE(token.ok()) << token.error().message;
  ASSERT_TRUE(backend->wait(*token).ok());
  EXPECT_EQ(model_counts().early_launches - before, 1u);
  std::vector<float> got(kCount);
  download(*backend, *buffers[1], got.data(), kCount * 4);
  EXPECT_EQ(got, std::vector<float>(kCount, 2));
}

// No card has taken such a graph from us yet: where one does not, graphs are made with full edges, for this program and the
// next ones, and that is said.
TEST(CudaEdges, ADriverThatDoesNotTakeThemIsGivenFullOnes) {
  for (const std::string call : {"cuGraphAddDependencies_v2", "cuGraphInstantiateWithFlags"}) {
    Fork fork;
    fail_next(call.c_str(), CuResult::not_supported);
    std::string said;
    set_log(
        [](void* to, LogLevel level, const char* text) {
          EXPECT_EQ(level, LogLevel::warning);
          *static_cast<std::string*>(to) += text;
        },
        &said);
    EXPECT_EQ(fork.run(), 0u) << call;
    const std::string why = "the driver takes no programmatic ones (" + call.substr(0, call.size() - (call[7] == 'A' ? 3 : 9)) +
                            " said CUDA_ERROR, said by the functional model)";
    EXPECT_EQ(fork.backend->context().full_edges(), why);
    EXPECT_NE(said.find("Graphs on 'NVIDIA H200' have full edges"), std::string::npos) << said;
    EXPECT_NE(said.find("since " + why), std::string::npos) << said;
    // Other slots are another graph, and another program of the same device has none from the first.
    fork.buffers[3] = *fork.backend->allocate(kCount * 4, MemoryKind::device);
    fork.slots[3] = fork.buffers[3].get();
    EXPECT_EQ(fork.run(), 0u);
    fork.program = *fork.backend->record(fork.launches);
    EXPECT_EQ(fork.run(), 0u);
    set_log(nullptr, nullptr);
    EXPECT_EQ(said.find("Graphs on", 1), std::string::npos) << said;  // once
  }
}

// What is no matter of edges says what it is: a graph that is not made either way, and a device that is lost.
TEST(CudaEdges, OtherFailuresOfGraphsAreSentences) {
  {
    const With full("SPARKLE_CUDA_EDGES", "full");
    Fork fork;
    fail_next("cuGraphInstantiateWithFlags", CuResult::not_supported);
    const auto token = fork.backend->submit(*fork.program, fork.slots, {});
    ASSERT_FALSE(token.ok());
    EXPECT_NE(token.error().message.find("cuGraphInstantiate said CUDA_ERROR"), std::string::npos) << token.error().message;
  }
  for (const auto& [result, reason] :
       {std::pair(CuResult::launch_failed, Reason::device_lost), std::pair(CuResult::out_of_memory, Reason::out_of_memory)}) {
    Fork fork;
    fail_next("cuGraphAddDependencies_v2", result);
    const auto token = fork.backend->submit(*fork.program, fork.slots, {});
    ASSERT_FALSE(token.ok());
    EXPECT_EQ(token.error().reason, reason) << token.error().message;
    EXPECT_EQ(fork.backend->context().full_edges(), "");
  }
}

// Two kernels of a graph that fill the same words, by the driver's own functions.
struct Fills {
  std::shared_ptr<CudaBackend> backend = test_backend();
  const Driver& d = backend->context().driver();
  const Current current{backend->context()};
  std::shared_ptr<Buffer> words = *backend->allocate(64, MemoryKind::device);
  CuGraph graph = nullptr;
  CuGraphNode nodes[2] = {};

  Fills() {
    CuModule module = nullptr;
    CuFunction function = nullptr;
    EXPECT_EQ(d.module_load(&module, "no kernels"), CuResult::success);
    EXPECT_EQ(d.module_function(&function, module, "sparkle_fill_words"), CuResult::success);
    EXPECT_EQ(d.graph_create(&graph, 0), CuResult::success);
    for (uint32_t i = 0; i < 2; ++i) {
      FillRecord record{reinterpret_cast<uint32_t*>(static_cast<uintptr_t>(words->address())), 16, i};
      void* params[] = {&record};
      CuKernelNodeParams how;
      how.function = function, how.block[0] = kFillThreads, how.params = params;
      EXPECT_EQ(d.graph_kernel(&nodes[i], graph, nullptr, 0, &how), CuResult::success);
    }
  }
  CuResult join(const CuGraphEdge& edge) { return d.graph_dependencies(graph, &nodes[0], &nodes[1], &edge, 1); }
  // How often the second was the last one, of 20 times.
  int second_was_last() {
    CuGraphExec exec = nullptr;
    EXPECT_EQ(d.graph_instantiate(&exec, graph, 0), CuResult::success);
    int count = 0;
    for (int i = 0; i < 20; ++i) {
      uint32_t got[16] = {};
      EXPECT_EQ(d.graph_launch(exec, backend->context().stream(0)), CuResult::success);
      const auto end =
          *Event::record(std::shared_ptr<Context>(std::shared_ptr<Context>(), const_cast<Context*>(&backend->context())),
                         backend->context().stream(0), false);
      EXPECT_EQ(d.event_synchronize(end->handle()), CuResult::success);
      download(*backend, *words, got, sizeof got);
      count += static_cast<int>(got[0]);
    }
    return count;
  }
};

TEST(CudaEdges, OrderKernelsWhateverTheirTypeAndNothingElseDoes) {
  Fills without;
  const int count = without.second_was_last();
  EXPECT_TRUE(count > 0 && count < 20) << count;
  Fills full, early;
  ASSERT_EQ(full.join({}), CuResult::success);
  ASSERT_EQ(early.join({kPortProgrammatic, 0, kEdgeProgrammatic, {}}), CuResult::success);
  EXPECT_EQ(full.second_was_last(), 20);
  EXPECT_EQ(early.second_was_last(), 20);
}

TEST(CudaEdges, ThatCudaHasNotAreRefusedByTheModel) {
  Fills fills;
  EXPECT_EQ(fills.join({kPortProgrammatic, 0, 0, {}}), CuResult::invalid_value);
  EXPECT_EQ(fills.join({0, 0, kEdgeProgrammatic, {}}), CuResult::invalid_value);
  EXPECT_EQ(fills.join({kPortProgrammatic, 1, kEdgeProgrammatic, {}}), CuResult::invalid_value);
  EXPECT_EQ(fills.join({kPortProgrammatic, 0, kEdgeProgrammatic, {1}}), CuResult::invalid_value);
  ASSERT_EQ(fills.join({kPortProgrammatic, 0, kEdgeProgrammatic, {}}), CuResult::success);
  EXPECT_EQ(fills.join({kPortProgrammatic, 0, kEdgeProgrammatic, {}}), CuResult::invalid_value);  // it is there
}

}  // namespace
}  // namespace sparkle::cuda
