// Sessions end to end: the CPU backend and the reference backend - whose memory the host cannot see - give the same numbers,
// whatever is forced, fused or switched off; wrong inputs get sentences; many threads share one session.
#include "run/session.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "base/half_floats.h"
#include "base/system/sanitized.h"
#include "base/system/thread_pool.h"
#include "device/probe_cpu.h"
#include "graph/test_graphs.h"
#include "graph/evaluate/values.h"
#include "networks/zoo.h"
#include "run/session_testing.h"

namespace sparkle {
namespace {

using testing::GraphBuilder;

// Counts the calls: proves that a program's own pool does the work.
class CountingExecutor final : public Executor {
 public:
  int width() const override { return 3; }
  void run(int tasks, void (*work)(void*, int, int), void* context) override {
    ++runs;
    for (int task = 0; task < tasks; ++task) work(context, task, task % 3);
  }
  std::atomic<int> runs{0};
};

std::shared_ptr<Backend> cpu(const Device& device = probe_cpu(), std::shared_ptr<Executor> executor = nullptr) {
  return cpu::make_cpu_backend(device, executor ? executor : std::make_shared<ThreadPool>(2));
}

std::unique_ptr<Session> open(Graph graph, std::shared_ptr<Backend> backend, const SessionOptions& options = {}) {
  auto session = Session::open(std::move(graph), std::move(backend), options);
  EXPECT_TRUE(session.ok()) << (session.ok() ? "" : session.error().message);
  return session.ok() ? std::move(*session) : nullptr;
}

HostTensor random_tensor(const Dims& shape, uint64_t seed) { return testing::random_tensor(DType::f32, shape, seed); }

std::vector<HostTensor> run(Session& session, const std::vector<HostTensor>& inputs) {
  auto outputs = session.run(inputs);
  EXPECT_TRUE(outputs.ok()) << (outputs.ok() ? "" : outputs.error().message);
  return outputs.ok() ? std::move(*outputs) : std::vector<HostTensor>{};
}

// As from a file that holds it in 16 bits.
void cast_weights(Graph& graph, DType type) {
  for (GraphTensor& t : graph.tensors)
    for (int64_t i = 0; t.constant && t.dtype == DType::f32 && i < t.constant->elements(); ++i) {
      float& value = t.constant->data<float>()[i];
      value = type == DType::f16 ? half_to_float(float_to_half(value)) : bfloat16_to_float(float_to_bfloat16(value));
    }
}

// Whole fp32 networks: 1e-4 of the largest and 1e-3 of each value.
void expect_close(const std::vector<HostTensor>& have, const std::vector<HostTensor>& want) {
  ASSERT_EQ(have.size(), want.size());
  for (size_t t = 0; t < want.size(); ++t) {
    ASSERT_EQ(have[t].shape, want[t].shape);
    ASSERT_EQ(have[t].dtype, want[t].dtype);
    if (want[t].dtype != DType::f32) {
      ASSERT_EQ(std::memcmp(have[t].bytes.get(), want[t].bytes.get(), static_cast<size_t>(want[t].size_bytes())), 0);
      continue;
    }
    float largest = 0;
    for (int64_t i = 0; i < want[t].elements(); ++i) largest = std::max(largest, std::abs(want[t].data<float>()[i]));
    for (int64_t i = 0; i < want[t].elements(); ++i) {
      const float a = have[t].data<float>()[i], b = want[t].data<float>()[i];
      ASSERT_LE(std::abs(a - b), 1e-4f * largest + 1e-3f * std::abs(b))
          << "output " << t << " element " << i << ": " << a << ", " << b;
    }
  }
}

const char* const kTiny[] = {"tiny_chain", "tiny_residual", "tiny_depthwise", "tiny_unet", "tiny_detector", "tiny_attention"};

Graph zoo(std::string_view name, bool batchnorm = false, int64_t batch = 1) {
  ZooOptions options;
  options.batchnorm = batchnorm, options.batch = batch;
  return std::move(*zoo_network(name, options));
}

std::vector<HostTensor> reference_outputs(const Graph& graph, const std::vector<HostTensor>& inputs, bool fuse = true) {
  SessionOptions options;
  options.fuse = fuse;
  return run(*open(graph, make_reference_backend(), options), inputs);
}

// Weights that a type of 16 bits holds as they are lose nothing by being kept in it.
TEST(Session, WeightsKeptInSixteenBitsAreExactWhereTheyFit) {
  for (const char* name : kTiny)
    for (const DType type : {DType::f16, DType::bf16}) {
      SCOPED_TRACE(std::string(name) + " " + std::string(name_of(type)));
      Graph graph = zoo(name);
      cast_weights(graph, type);
      SessionOptions options;
      options.algorithm = "gemm_" + std::string(name_of(type));
      const auto session = open(graph, cpu(), options);
      const auto inputs = testing::random_inputs(*session, 23);
      expect_close(run(*session, inputs), reference_outputs(graph, inputs));
    }
}

TEST(Session, CpuAndReferenceAgreeOnEveryTinyNetwork) {
  for (const char* name : kTiny)
    for (bool batchnorm : {false, true})
      for (int64_t batch : {1, 3}) {
        SCOPED_TRACE(std::string(name) + (batchnorm ? " with BatchNormalization" : "") + " batch " + std::to_string(batch));
        const Graph graph = zoo(name, batchnorm, batch);
        const auto session = open(graph, cpu());
        const auto inputs = testing::random_inputs(*session, 17);
        const auto want = reference_outputs(graph, inputs);
        expect_close(run(*session, inputs), want);
        expect_close(reference_outputs(graph, inputs, false), want);
        for (const char* variant : {"plain", "tile6x2", "tile6x4", "window", "tile1x7", "tile2x7"}) {
          SCOPED_TRACE(variant);
          SessionOptions options;
          options.variant = variant;
          auto forced = Session::open(graph, cpu(), options);
          ASSERT_TRUE(forced.ok());
          auto got = (*forced)->run(inputs);
          if (!got.ok()) {  // a tile that this machine or layer has no place for is refused by name
            EXPECT_EQ(got.error().reason, Reason::no_kernel) << got.error().message;
            continue;
          }
          expect_close(*got, want);
        }
        for (const char* algorithm : {"gemm", "depthwise", "grouped", "winograd2", "winograd4", "winograd6"}) {
          SessionOptions options;
          options.algorithm = algorithm, options.fuse = false;
          expect_close(run(*open(graph, cpu(), options), inputs), want);
        }
        for (const char* fusion : {"inverted", "none"}) {
          SessionOptions options;
          options.fusion = fusion;
          expect_close(run(*open(graph, cpu(), options), inputs), want);
        }
      }
}

TEST(Session, EveryVectorUnitOfThisMachineGivesTheSame) {
  const Device here = probe_cpu();
  for (const MathUnit& unit : here.units) {
    if (unit.kind != UnitKind::vector_fma || unit.input != DType::f32) continue;
    Device device = here;
    std::erase_if(device.units, [&](const MathUnit& u) { return u.kind == UnitKind::vector_fma && u.name != unit.name; });
    for (const char* name : kTiny) {
      SCOPED_TRACE(unit.name + " " + name);
      const Graph graph = zoo(name);
      const auto session = open(graph, cpu(device));
      const auto inputs = testing::random_inputs(*session, 3);
      RunReport report;
      const auto got = session->run(inputs, &report, true);
      ASSERT_TRUE(got.ok()) << got.error().message;
      expect_close(*got, reference_outputs(graph, inputs));
      for (const PlanStep& step : report.plan->steps)
        EXPECT_TRUE(unit_of(step.schedule).empty() || unit_of(step.schedule) == unit.name) << step.name;
    }
  }
  Device bare = here;  // no unit at all: the plain loops serve
  bare.units.clear();
  const Graph graph = zoo("tiny_residual");
  const auto session = open(graph, cpu(bare));
  const auto inputs = testing::random_inputs(*session, 4);
  expect_close(run(*session, inputs), reference_outputs(graph, inputs));
}

TEST(Session, OneSessionServesManyThreads) {
  const Graph graph = zoo("tiny_residual");
  const auto session = open(graph, cpu());
  constexpr int kThreads = 4, kRuns = 25;
  std::vector<std::vector<HostTensor>> inputs, want;
  for (int t = 0; t < kThreads; ++t) {
    inputs.push_back(testing::random_inputs(*session, static_cast<uint64_t>(100 + t)));
    want.push_back(reference_outputs(graph, inputs.back()));
  }
  std::atomic<int> bad{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRuns; ++i) {
        const auto got = session->run(inputs[t]);
        if (!got.ok()) {
          ++bad;
          continue;
        }
        for (int64_t k = 0; k < want[t][0].elements(); ++k)
          if (std::abs((*got)[0].data<float>()[k] - want[t][0].data<float>()[k]) > 1e-3f) ++bad;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bad, 0);
}

// conv -> relu -> add on maps of any size.
Graph open_sizes() {
  GraphBuilder b;
  const TensorId x = b.input({-1, 4, -1, -1});
  ConvOp conv;
  conv.pads_begin = conv.pads_end = {1, 1};
  const TensorId y = b.pointwise(PointwiseOp::relu, {b.op("Conv", conv, {x, b.weights({4, 4, 3, 3}, -0.4f)})});
  return b.done(b.pointwise(PointwiseOp::add, {x, y}));
}

TEST(Session, PlanCacheStaysInItsBounds) {
  SessionOptions options;
  options.plan_cache_bytes = 200000;
  options.algorithm = "gemm";  // the largest arenas are then those of the tensors
  const auto session = open(open_sizes(), cpu(), options), reference = open(open_sizes(), make_reference_backend(), options);
  std::mt19937_64 rng(1);
  int64_t weights = 0;
  for (int i = 0; i < 2000; ++i) {
    const Dims shape{1 + static_cast<int64_t>(rng() % 2), 4, 1 + static_cast<int64_t>(rng() % 24),
                     1 + static_cast<int64_t>(rng() % 24)};
    const std::vector<HostTensor> inputs{random_tensor(shape, rng())};
    const auto got = run(*session, inputs);
    if (i % 10 == 0) expect_close(got, run(*reference, inputs));
    ASSERT_LE(session->cached_bytes(), options.plan_cache_bytes) << "run " << i;
    if (i == 100) weights = session->constant_bytes();
    if (i > 100) {
      ASSERT_LE(session->constant_bytes(), 2 * weights) << "run " << i;
    }
  }
  EXPECT_GT(session->cached_bytes(), 0);
}

// x + table, where the table has the shape of x: each plan holds one of its own, which goes with the plan.
TEST(Session, ConstantsOfOneShapeCountAndGo) {
  for (const auto& backend : {cpu(), make_reference_backend()}) {
    GraphBuilder b;
    const TensorId x = b.input({-1, -1});
    ConstantOfShapeOp filled;
    filled.value = 0.5;
    const TensorId table =
        b.op("CumSum", CumSumOp{}, {b.op("ConstantOfShape", filled, {b.op("Shape", ShapeOp{}, {x})}), b.ints({1})});
    const Graph graph = b.done(b.pointwise(PointwiseOp::add, {x, table}));
    SessionOptions options;
    options.plan_cache_bytes = 100000;
    const auto session = open(graph, backend, options);
    std::mt19937_64 rng(2);
    for (int i = 0; i < 500; ++i) {
      const Dims shape{1 + static_cast<int64_t>(rng() % 64), 1 + static_cast<int64_t>(rng() % 64)};
      const HostTensor input = random_tensor(shape, rng());
      const auto got = run(*session, {input});
      ASSERT_EQ(got.size(), 1u);
      for (int64_t k = 0; k < input.elements(); ++k)
        ASSERT_NEAR(got[0].data<float>()[k], input.data<float>()[k] + 0.5f * static_cast<float>(k % shape[1] + 1), 1e-4f);
      ASSERT_LE(session->cached_bytes(), options.plan_cache_bytes) << "run " << i;
      ASSERT_LE(session->constant_bytes(), options.plan_cache_bytes) << "run " << i;
    }
  }
}

// Arenas of many threads at once are kept as far as the bound allows, and one.
TEST(Session, ArenasOfThreadsStayWithinTheBound) {
  SessionOptions options;
  options.plan_cache_bytes = 100000;
  options.algorithm = "gemm";  // the largest arenas are then those of the tensors
  const auto session = open(open_sizes(), cpu(), options);
  const HostTensor input = random_tensor({1, 4, 32, 32}, 3);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(session->run({input}).ok());
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(session->cached_bytes(), options.plan_cache_bytes);
}

TEST(Session, BudgetIsRefusedWithASentence) {
  SessionOptions options;
  options.memory_budget = 2000;
  const auto session = open(zoo("tiny_chain"), cpu(), options);
  const auto got = session->run(testing::random_inputs(*session, 1));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().reason, Reason::over_memory_budget);
  EXPECT_NE(got.error().message.find("the memory budget is 2000"), std::string::npos) << got.error().message;
}

TEST(Session, WeightsAreCountedBeforeTheyArePacked) {
  const Graph graph = zoo("tiny_residual");
  SessionOptions options;
  options.algorithm = "gemm";  // there is no way left that needs less
  const auto free = open(graph, cpu(), options);
  const auto inputs = testing::random_inputs(*free, 1);
  const auto plan = free->prepare(inputs);
  ASSERT_TRUE(plan.ok());
  options.memory_budget = free->peak_bytes(**plan);
  EXPECT_TRUE(open(graph, cpu(), options)->prepare(inputs).ok());
  --options.memory_budget;
  const auto tight = open(graph, cpu(), options);
  const auto refused = tight->prepare(inputs);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().reason, Reason::over_memory_budget);
  EXPECT_EQ(tight->constant_bytes(), 0);  // nothing was packed
}

// Where the fastest plan is too large, another takes its place and says what it costs.
TEST(Session, BudgetsAreMetBySmallerWeights) {
  GraphBuilder b;
  TensorId x = b.input({1, 64, 56, 56});
  ConvOp conv;
  conv.pads_begin = conv.pads_end = {1, 1};
  for (int i = 0; i < 4; ++i) x = b.op("Conv", conv, {x, b.weights({64, 64, 3, 3}, 0.01f * static_cast<float>(i))});
  const Graph graph = b.done(x);
  const auto free = open(graph, cpu());
  const auto inputs = testing::random_inputs(*free, 1);
  const auto fastest = free->prepare(inputs);
  ASSERT_TRUE(fastest.ok());
  if ((*fastest)->steps.back().algorithm == "gemm") GTEST_SKIP() << "this machine takes no larger weights";
  const auto want = run(*free, inputs);
  SessionOptions options;
  int steps = 0;
  for (int64_t budget = free->peak_bytes(**fastest); budget > 0; budget = budget * 19 / 20) {
    options.memory_budget = budget;
    const auto tight = open(graph, cpu(), options);
    const auto plan = tight->prepare(inputs);
    if (!plan.ok()) {
      EXPECT_EQ(plan.error().reason, Reason::over_memory_budget);
      break;
    }
    EXPECT_LE(tight->peak_bytes(**plan), budget);
    EXPECT_GE((*plan)->budget_steps, steps);
    steps = (*plan)->budget_steps;
    expect_close(run(*tight, inputs), want);
  }
  EXPECT_GT(steps, 0);
}

// Where both operands of a MatMul change, its kernel packs at run time, in memory that the plan does not know of.
TEST(Session, ScratchThatKernelsAddIsCounted) {
  GraphBuilder b;
  const TensorId x = b.input({256, 512}), y = b.input({512, 384});
  const Graph graph = b.done(b.op("MatMul", MatMulOp{}, {x, y}));
  const auto session = open(graph, cpu());
  const auto plan = session->prepare({{DType::f32, {256, 512}, nullptr}, {DType::f32, {512, 384}, nullptr}});
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  int64_t workspace = 0;
  for (const PlanStep& step : (*plan)->steps) workspace = std::max(workspace, step.workspace_bytes);
  const int64_t maps = (256 * 512 + 512 * 384 + 256 * 384) * 4;
  if (variant_of((*plan)->steps[0].schedule) != "plain") {
    EXPECT_GT(workspace, 0);
  }
  EXPECT_GE((*plan)->arena_bytes, workspace);
  EXPECT_EQ(session->peak_bytes(**plan), (*plan)->arena_bytes + maps);
  SessionOptions options;
  options.memory_budget = maps + workspace - 64;
  if (workspace > 64) {
    EXPECT_FALSE(
        open(graph, cpu(), options)->prepare({{DType::f32, {256, 512}, nullptr}, {DType::f32, {512, 384}, nullptr}}).ok());
  }
  expect_close(run(*session, testing::random_inputs(*session, 6)),
               reference_outputs(graph, testing::random_inputs(*session, 6)));
}

// Fixed shapes: one plan, so the model's own weights go once they are packed. Open shapes: they stay, and are counted.
TEST(Session, OriginalsOfWeightsGoOrAreCounted) {
  for (const bool open_height : {false, true})
    for (const auto& backend : {cpu(), make_reference_backend()}) {
      GraphBuilder b;
      const TensorId x = b.input({1, 64, open_height ? -1 : 8, 8});
      const TensorId w = b.weights({256, 64, 3, 3});
      Graph graph = b.done(b.op("Conv", ConvOp{}, {x, w}));
      const std::weak_ptr<std::byte[]> original = graph.tensor(w).constant->bytes;
      const int64_t bytes = graph.tensor(w).constant->size_bytes();
      const auto reference = reference_outputs(graph, {random_tensor({1, 64, 8, 8}, 2)});
      b.graph = {};
      SessionOptions options;
      options.algorithm = "gemm";  // packed weights are then as large as the model's
      const auto session = open(std::move(graph), backend, options);
      graph = {};
      RunReport report;
      for (int i = 0; i < 3; ++i) {
        const auto got = session->run({random_tensor({1, 64, 8, 8}, 2)}, &report);
        ASSERT_TRUE(got.ok());
        expect_close(*got, reference);
      }
      EXPECT_EQ(original.expired(), !open_height);
      EXPECT_GE(session->constant_bytes(), open_height ? 2 * bytes : bytes);
      EXPECT_LE(session->constant_bytes(), (open_height ? 2 * bytes : bytes) * 5 / 4);
      EXPECT_GE(session->peak_bytes(*report.plan), 2 * bytes);  // while packing
      if (open_height) {
        EXPECT_TRUE(session->run({random_tensor({1, 64, 9, 8}, 2)}).ok());
      }
    }
}

TEST(Session, MemoryThatRunsOutIsAnError) {
  // 128 TiB: allowed by the model, more than a process can address.
  HostTensor vast{DType::f32, {1, 4, 1 << 21, 1 << 22}, nullptr};
  for (const auto& backend : {cpu(), make_reference_backend()}) {
    const auto session = open(open_sizes(), backend);
    EXPECT_TRUE(session->prepare({vast}).ok());
    const auto empty = session->run({vast});
    ASSERT_FALSE(empty.ok());
    EXPECT_EQ(empty.error().message, "Input 'x0' has a shape, but no values.");
    if (kSanitized) continue;  // sanitizers end the program where memory runs out
    HostTensor filled = vast;
    filled.bytes = HostTensor::zeros(DType::f32, {4}).bytes;  // never looked at
    const auto got = session->run({filled});
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.error().reason, Reason::out_of_memory) << got.error().message;
    EXPECT_EQ(session->run({{DType::f32, {1, 4, int64_t{1} << 40, int64_t{1} << 40}, nullptr}}).error().reason,
              Reason::size_overflow);
  }
}

TEST(Session, WrongInputsGetSentences) {
  const auto session = open(open_sizes(), cpu());
  const auto problem = [&](const std::vector<HostTensor>& inputs) {
    const auto got = session->run(inputs);
    EXPECT_FALSE(got.ok());
    if (got.ok()) return std::string();
    EXPECT_EQ(got.error().reason, Reason::bad_input);
    return got.error().message;
  };
  EXPECT_EQ(problem({}), "The model takes 1 inputs, 0 were given.");
  EXPECT_EQ(problem({HostTensor::zeros(DType::f64, {1, 4, 2, 2})}),
            "Input 'x0' is f32 in the model, f64 was given; convert it.");
  EXPECT_EQ(problem({HostTensor::zeros(DType::f32, {4, 2, 2})}),
            "Input 'x0' has shape ?x4x?x? in the model, 4x2x2 was given; put the batch axis in front of it: 1x4x2x2.");
  EXPECT_EQ(problem({HostTensor::zeros(DType::f32, {1, 5, 2, 2})}),
            "Input 'x0' has shape ?x4x?x? in the model, 1x5x2x2 was given.");
}

TEST(Session, SubmitWorksOnBuffersOfTheBackend) {
  const Graph graph = zoo("tiny_unet");
  for (const auto& backend : {cpu(), make_reference_backend()}) {
    SCOPED_TRACE(backend->device().name);
    const auto session = open(graph, backend);
    const auto inputs = testing::random_inputs(*session, 9);
    const auto want = reference_outputs(graph, inputs);
    const int64_t in_bytes = inputs[0].size_bytes(), out_bytes = want[0].size_bytes();
    auto in = *backend->allocate(in_bytes, MemoryKind::device), out = *backend->allocate(out_bytes, MemoryKind::device);
    auto up = *backend->allocate(in_bytes, MemoryKind::staging), down = *backend->allocate(out_bytes, MemoryKind::staging);
    std::memcpy(up->host(), inputs[0].bytes.get(), static_cast<size_t>(in_bytes));
    const CopyRegion upload{up.get(), 0, in.get(), 0, in_bytes}, download{out.get(), 0, down.get(), 0, out_bytes};
    ASSERT_TRUE(backend->copy({&upload, 1}, {}).ok());
    auto wrong = session->submit(inputs, {in}, {});
    ASSERT_FALSE(wrong.ok());
    EXPECT_NE(wrong.error().message.find("one buffer is needed for each"), std::string::npos);
    auto small = session->submit(inputs, {up}, {*backend->allocate(4, MemoryKind::device)});
    ASSERT_FALSE(small.ok());
    EXPECT_NE(small.error().message.find("must hold"), std::string::npos);
    Token token;
    for (int i = 0; i < 5; ++i) {  // several on their way at once, an arena each
      auto submitted = session->submit(inputs, {in}, {out});
      ASSERT_TRUE(submitted.ok()) << submitted.error().message;
      token = *submitted;
    }
    in.reset();  // what the work needs stays alive without us
    const auto copied = backend->copy({&download, 1}, token);
    ASSERT_TRUE(copied.ok());
    ASSERT_TRUE(backend->wait(*copied).ok());
    EXPECT_TRUE(backend->done(token));
    HostTensor got = HostTensor::zeros(DType::f32, want[0].shape);
    std::memcpy(got.bytes.get(), down->host(), static_cast<size_t>(out_bytes));
    expect_close({got}, want);
  }
}

TEST(Session, WorkOutlivesItsSession) {
  const auto backend = make_reference_backend();
  const Graph graph = zoo("tiny_unet");
  auto session = open(graph, backend);
  const auto inputs = testing::random_inputs(*session, 9);
  auto in = *backend->allocate(inputs[0].size_bytes(), MemoryKind::device);
  auto out = *backend->allocate(16 * 16 * 4, MemoryKind::device);
  const auto token = session->submit(inputs, {in}, {out});
  ASSERT_TRUE(token.ok());
  session.reset(), in.reset(), out.reset();
  EXPECT_TRUE(backend->wait(*token).ok());
}

TEST(Session, TimestampsOnePerStep) {
  for (const auto& backend : {cpu(), make_reference_backend()}) {
    const auto session = open(zoo("tiny_residual"), backend);
    RunReport report;
    ASSERT_TRUE(session->run(testing::random_inputs(*session, 2), &report, true).ok());
    ASSERT_NE(report.plan, nullptr);
    EXPECT_EQ(report.steps.size(), report.plan->steps.size());
    for (const StepReport& step : report.steps) EXPECT_GE(step.seconds, 0);
    EXPECT_GT(report.seconds, 0);
    ASSERT_TRUE(session->run(testing::random_inputs(*session, 2), &report, false).ok());
    EXPECT_TRUE(report.steps.empty());
  }
}

TEST(Session, AnExecutorOfTheProgramDoesTheWork) {
  const auto executor = std::make_shared<CountingExecutor>();
  Device device = probe_cpu();
  device.cores = 3;
  GraphBuilder b;
  const TensorId x = b.input({1, 64, 56, 56});
  ConvOp conv;
  conv.pads_begin = conv.pads_end = {1, 1};
  const Graph graph = b.done(b.op("Conv", conv, {x, b.weights({64, 64, 3, 3})}));
  const auto session = open(graph, cpu(device, executor));
  const auto inputs = testing::random_inputs(*session, 5);
  expect_close(run(*session, inputs), reference_outputs(graph, inputs));
  EXPECT_GT(executor->runs, 0);
}

// Outputs that are inputs, constants, views, given twice, or used elsewhere.
TEST(Session, UnusualOutputs) {
  GraphBuilder b;
  const TensorId x = b.input({2, 3, 4}), c = b.weights({2, 2});
  const TensorId y = b.pointwise(PointwiseOp::exp, {x}), z = b.pointwise(PointwiseOp::tanh, {y});
  TransposeOp turn;
  turn.permutation = {2, 0, 1};
  const TensorId t = b.op("Transpose", turn, {y});
  b.graph.outputs = {x, c, y, z, t, y, z};
  for (bool fuse : {true, false})
    for (const auto& backend : {cpu(), make_reference_backend()}) {
      SessionOptions options;
      options.fuse = fuse;
      const auto session = open(b.graph, backend, options);
      const auto inputs = testing::random_inputs(*session, 8);
      const auto got = run(*session, inputs);
      ASSERT_EQ(got.size(), 7u);
      const float* in = inputs[0].data<float>();
      for (int64_t i = 0; i < 24; ++i) {
        EXPECT_EQ(got[0].data<float>()[i], in[i]);
        EXPECT_NEAR(got[2].data<float>()[i], std::exp(in[i]), 1e-5 * std::exp(in[i]));
        EXPECT_EQ(got[5].data<float>()[i], got[2].data<float>()[i]);
        EXPECT_NEAR(got[3].data<float>()[i], std::tanh(std::exp(in[i])), 1e-5);
        EXPECT_EQ(got[6].data<float>()[i], got[3].data<float>()[i]);
        EXPECT_EQ(got[4].data<float>()[i % 4 * 6 + i / 4], got[2].data<float>()[i]);
      }
      EXPECT_EQ(std::memcmp(got[1].bytes.get(), b.graph.tensor(c).constant->bytes.get(), 16), 0);
    }
}

TEST(Session, EmptyBatches) {
  for (const auto& backend : {cpu(), make_reference_backend()}) {
    const auto session = open(open_sizes(), backend);
    const auto got = session->run({HostTensor::zeros(DType::f32, {0, 4, 5, 6})});
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ((*got)[0].shape, (Dims{0, 4, 5, 6}));
  }
}

TEST(Session, EmptyParts) {
  GraphBuilder b;
  const TensorId x = b.input({2, 0, 3}), y = b.input({2, 2, 3});
  const Graph graph =
      b.done(b.op("Concat", ConcatOp{1}, {b.pointwise(PointwiseOp::exp, {x}), b.pointwise(PointwiseOp::exp, {y}), x}));
  const auto session = open(graph, cpu());
  const std::vector<HostTensor> inputs{HostTensor::zeros(DType::f32, {2, 0, 3}), random_tensor({2, 2, 3}, 1)};
  expect_close(run(*session, inputs), reference_outputs(graph, inputs));
}

}  // namespace
}  // namespace sparkle
