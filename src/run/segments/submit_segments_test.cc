// Plans whose device lacks kernels: the host computes these steps in between, bit for bit what it computes alone, whichever
// they are, in runs, pipelines and on tensors of the device; the transfers are in the plan; what goes wrong goes as it does
// without.
#include "run/segments/submit_segments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "graph/test_graphs.h"
#include "networks/zoo.h"
#include "plan/explain.h"
#include "run/pipeline/pipeline.h"
#include "run/segments/lacking_device_testing.h"
#include "run/session_testing.h"
#include "run/wipe.h"

namespace sparkle {
namespace {

using testing::cpu_of_tests;
using testing::device_without;
using testing::GraphBuilder;
using testing::host_of_tests;
using testing::SlowBackend;

// Kernels of products stand and fall together: another algorithm would round otherwise.
const std::vector<Family> kProducts = {Family::gemm,   Family::depthwise, Family::winograd, Family::grouped,
                                       Family::direct, Family::inverted,  Family::fft};

SessionOptions with_host(Fallback fallback = Fallback::allow) {
  SessionOptions options;
  options.fallback = fallback;
  options.fusion = "none";  // blocks of layers round otherwise than the layers
  options.open_host = [](const std::shared_ptr<Backend>&) -> Result<std::shared_ptr<Backend>> { return host_of_tests(); };
  return options;
}

std::shared_ptr<Session> open(Graph graph, std::shared_ptr<Backend> backend, const SessionOptions& options = with_host()) {
  auto session = Session::open(std::move(graph), std::move(backend), options);
  EXPECT_TRUE(session.ok()) << (session.ok() ? "" : session.error().message);
  return session.ok() ? std::shared_ptr<Session>(std::move(*session)) : nullptr;
}

// The empty text: bit for bit.
std::string difference(const Result<std::vector<HostTensor>>& got, const std::vector<HostTensor>& wanted) {
  if (!got.ok()) return got.error().message;
  for (size_t o = 0; o < wanted.size(); ++o) {
    const HostTensor &a = (*got)[o], &b = wanted[o];
    if (!(a.shape == b.shape) || a.dtype != b.dtype) return "another shape or type";
    if (std::memcmp(a.bytes.get(), b.bytes.get(), static_cast<size_t>(b.size_bytes())) != 0)
      return "output " + std::to_string(o) + " has other bytes";
  }
  return "";
}

std::vector<HostTensor> alone(const Graph& graph, const std::vector<HostTensor>& inputs) {
  return std::move(*open(graph, host_of_tests())->run(inputs));
}

size_t count(const Plan& plan, RunsOn side) {
  return static_cast<size_t>(
      std::count_if(plan.steps.begin(), plan.steps.end(), [&](const PlanStep& s) { return s.runs_on == side; }));
}

// A convolution whose best values are looked for, and the places of boxes: TopK and Gather, with a product behind.
Graph tail_of_search() {
  GraphBuilder b;
  const TensorId x = b.input({1, 8, 6, 6});
  const TensorId y = b.op("Conv", ConvOp{}, {x, b.weights({4, 8, 1, 1})});
  const TensorId rows = b.op("Reshape", ReshapeOp{ReshapeOp::Form::reshape, {4, 36}, false, true}, {y});
  const auto best = b.many("TopK", TopKOp{-1, 5, true}, {rows, b.ints({5})}, 2);
  const TensorId positive = b.pointwise(PointwiseOp::relu, {best[0]});
  const TensorId sums = b.op("MatMul", MatMulOp{}, {positive, b.weights({5, 3})});
  b.graph.outputs = {sums, best[1]};
  return b.graph;
}

TEST(Segments, TheStepsThatADeviceLacksRunOnTheHostBetweenItsOwn) {
  const Graph graph = tail_of_search();
  const auto device = device_without({Family::top_k});
  const auto session = open(graph, device);
  ASSERT_TRUE(session);
  for (uint64_t seed = 1; seed < 4; ++seed) {
    const auto inputs = testing::random_inputs(*session, seed);
    EXPECT_EQ(difference(session->run(inputs), alone(graph, inputs)), "") << seed;
    for (const std::byte wiped : {std::byte{0xff}, std::byte{0x3c}})
      EXPECT_EQ(difference(session->run_wiped(inputs, wiped), alone(graph, inputs)), "") << seed;
    // Where an output is NaN, each step by itself: on either side and over the link.
    const auto nan = testing::random_inputs(*session, seed);
    std::fill_n(reinterpret_cast<float*>(nan[0].bytes.get()), nan[0].elements(), NAN);
    const auto wanted = alone(graph, nan);
    EXPECT_TRUE(std::isnan(*reinterpret_cast<const float*>(wanted[0].bytes.get())));
    EXPECT_EQ(difference(session->run_wiped(nan, kWipedToNumbers), wanted), "") << seed;
  }
  const Plan& plan = **session->prepare(testing::random_inputs(*session));
  EXPECT_EQ(plan.host, cpu_of_tests().name);
  EXPECT_EQ(count(plan, RunsOn::host), 1u);
  // Down what TopK reads; up the values for the product and the indices, which are an output.
  EXPECT_EQ(count(plan, RunsOn::link), 3u);
  EXPECT_GE(count(plan, RunsOn::device), 2u);
  double seconds = 0;
  for (const PlanStep& step : plan.steps)
    if (step.runs_on == RunsOn::link) {
      EXPECT_EQ(step.cost.bound, "link");
      EXPECT_DOUBLE_EQ(step.cost.seconds,
                       transfer_seconds(device->device(), static_cast<double>(step.stage.outputs[0].bytes())));
      seconds += step.cost.seconds;
    }
  EXPECT_GE(plan.predicted_seconds(), seconds);
  const std::string text = explain(plan, device->device()), json = explain_json(plan, device->device()), whole = to_text(plan);
  for (const char* part : {"/download", "/upload", "host: ", "1 steps without a kernel here run on the host", "3 transfers"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_NE(json.find("\"runs_on\": \"link\""), std::string::npos);
  EXPECT_NE(whole.find("\nhost_arena "), std::string::npos);
  EXPECT_NE(whole.find("\n  on link\n"), std::string::npos);
}

TEST(Segments, EachStepLeftToTheHostIsOneEvent) {
  const auto session = open(tail_of_search(), device_without({Family::top_k, Family::pointwise}), with_host(Fallback::warn));
  ASSERT_TRUE(session);
  const auto plan = session->prepare(testing::random_inputs(*session));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  ASSERT_TRUE(session->run(testing::random_inputs(*session)).ok());
  ASSERT_EQ(session->events().size(), count(**plan, RunsOn::host));
  double cost = 0, wanted = 0;
  for (const FallbackEvent& event : session->events().all()) {
    EXPECT_EQ(event.what, "operator");
    EXPECT_EQ(event.from, "a device without some kernels");
    EXPECT_EQ(event.to, cpu_of_tests().name);
    EXPECT_EQ(event.reason, Reason::no_kernel);
    EXPECT_FALSE(event.layer.empty());
    cost += event.cost;
  }
  for (const PlanStep& step : (*plan)->steps)
    if (step.runs_on != RunsOn::device) wanted += step.cost.seconds;
  EXPECT_NEAR(cost, wanted, 1e-12);
}

TEST(Segments, WhereFallingBackIsForbiddenTheStepIsNamed) {
  for (const bool forbidden : {true, false}) {
    SessionOptions options = with_host(forbidden ? Fallback::forbid : Fallback::warn);
    if (!forbidden) options.open_host = {};
    const auto session = open(tail_of_search(), device_without({Family::top_k}), options);
    ASSERT_TRUE(session);
    const auto refused = session->run(testing::random_inputs(*session));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().reason, Reason::no_kernel);
    EXPECT_NE(refused.error().message.find("top_k"), std::string::npos) << refused.error().message;
  }
}

// Whichever families a device lacks; what it takes side by side, one after the other and with everything wiped before.
TEST(Segments, AnyFamiliesMayBeMissing) {
  std::mt19937_64 random(11);
  const std::vector<std::vector<Family>> groups = {
      kProducts,           {Family::pool}, {Family::pointwise}, {Family::reduce}, {Family::softmax},
      {Family::normalize}, {Family::copy}, {Family::resize},    {Family::gather}, {Family::attention}};
  size_t mixed = 0;
  for (const char* name : {"tiny_chain", "tiny_residual", "tiny_unet", "tiny_detector", "tiny_attention"})
    for (int draw = 0; draw < 9; ++draw) {
      std::vector<Family> missing;
      std::string text = name;
      for (const auto& group : groups)
        if (random() % 3 == 0) {
          missing.insert(missing.end(), group.begin(), group.end());
          text += " " + std::string(name_of(group[0]));
        }
      SCOPED_TRACE(text);
      const Graph graph = std::move(*zoo_network(name));
      const auto session = open(graph, device_without(missing));
      ASSERT_TRUE(session);
      const auto inputs = testing::random_inputs(*session), others = testing::random_inputs(*session, 77);
      RunReport report;
      EXPECT_EQ(difference(session->run(inputs, &report, true), alone(graph, inputs)), "");
      ASSERT_EQ(report.steps.size(), report.plan->steps.size());
      for (const StepReport& step : report.steps) EXPECT_GE(step.seconds, 0);
      EXPECT_EQ(difference(session->run_wiped(others, std::byte{0xff}), alone(graph, others)), "");
      EXPECT_EQ(session->events().size(), count(*report.plan, RunsOn::host));
      mixed += !report.plan->host.empty() && count(*report.plan, RunsOn::device) > 0;
    }
  EXPECT_GE(mixed, 15u);  // in others everything between goes to the host, which is as fast here
}

TEST(Segments, ItemsOfAPipelineComeInTheirOrder) {
  const Graph graph = tail_of_search();
  const auto session = open(graph, device_without({Family::top_k}));
  ASSERT_TRUE(session);
  std::vector<std::future<Pipeline::Outputs>> results;
  std::vector<std::vector<HostTensor>> wanted;
  {
    Pipeline pipeline(session, {});
    for (uint64_t i = 0; i < 7; ++i) {
      const auto inputs = testing::random_inputs(*session, 10 * i);
      wanted.push_back(alone(graph, inputs));
      auto taken = pipeline.submit(inputs);
      ASSERT_TRUE(taken.ok());
      results.push_back(std::move(*taken));
    }
  }
  for (size_t i = 0; i < results.size(); ++i) EXPECT_EQ(difference(results[i].get(), wanted[i]), "") << i;
}

// Tensors of the device in and out, handed over behind a copy that is still under way.
TEST(Segments, TensorsOfTheDeviceGoInAndOut) {
  const Graph graph = tail_of_search();
  const auto backend = device_without({Family::top_k});
  const auto session = open(graph, backend);
  ASSERT_TRUE(session);
  for (uint64_t seed = 3; seed < 6; ++seed) {
    const auto inputs = testing::random_inputs(*session, seed), wanted = alone(graph, inputs);
    TransferSet set;
    ASSERT_TRUE(set.fit(backend, *session->prepare(inputs), inputs).ok());
    const auto there = set.upload(inputs);
    ASSERT_TRUE(there.ok());
    const auto computed = session->submit(inputs, set.inputs(), set.outputs(), backend.get(), *there);
    ASSERT_TRUE(computed.ok()) << computed.error().message;
    const auto back = set.download(*computed);
    ASSERT_TRUE(back.ok());
    ASSERT_TRUE(backend->wait(*back, {}).ok());
    EXPECT_EQ(difference(set.take(), wanted), "") << seed;
  }
  EXPECT_FALSE(backend->touched_freed());
}

// At each call of a run the device fails; the session goes on with the CPU, or the error is the device's.
TEST(Segments, ADeviceThatIsLostOnTheWayGivesWay) {
  const Graph graph = tail_of_search();
  for (const bool may_go_on : {true, false})
    for (int call = 0;; ++call) {
      ASSERT_LT(call, 100);
      const auto backend = device_without({Family::top_k});
      SessionOptions options = with_host();
      if (may_go_on) options.next_device = [](const Error&) -> Result<std::shared_ptr<Backend>> { return host_of_tests(); };
      const auto session = open(graph, backend, options);
      ASSERT_TRUE(session);
      const auto inputs = testing::random_inputs(*session, 5);
      ASSERT_EQ(difference(session->run(inputs), alone(graph, inputs)), "");
      backend->fail_at(call, Reason::device_lost);
      const auto got = session->run(inputs);
      if (!backend->failed()) break;
      if (may_go_on) {
        EXPECT_EQ(difference(got, alone(graph, inputs)), "") << call;
      } else {
        ASSERT_FALSE(got.ok()) << call;
        EXPECT_EQ(got.error().reason, Reason::device_lost);
      }
      EXPECT_FALSE(backend->touched_freed());
    }
}

// What is wrong with the data is told of the host's steps as of the device's, and the session goes on.
TEST(Segments, WrongDataOfAStepOfTheHostIsAnError) {
  GraphBuilder b;
  const TensorId x = b.input({3}), indices = b.input({2}, DType::i64);
  const TensorId doubled = b.pointwise(PointwiseOp::add, {x, x});
  b.graph.outputs = {b.pointwise(PointwiseOp::neg, {b.op("Gather", GatherOp{0}, {doubled, indices})})};
  const auto session = open(b.graph, device_without({Family::gather}));
  ASSERT_TRUE(session);
  const HostTensor values = HostTensor::of(DType::f32, {3}, std::vector<float>{1, 2, 3});
  for (int i = 0; i < 2; ++i) {
    const auto wrong = session->run({values, HostTensor::of(DType::i64, {2}, std::vector<int64_t>{0, 3})});
    ASSERT_FALSE(wrong.ok());
    EXPECT_EQ(wrong.error().reason, Reason::bad_input);
    const auto right = session->run({values, HostTensor::of(DType::i64, {2}, std::vector<int64_t>{2, 0})});
    ASSERT_TRUE(right.ok()) << right.error().message;
    EXPECT_EQ((*right)[0].data<float>()[0], -6);
  }
}

TEST(Segments, RowsThatTheHostFindsEndOpenOutputs) {
  GraphBuilder b;
  const TensorId boxes = b.input({1, 3, 4}), scores = b.input({1, 1, 3});
  const TensorId positive = b.pointwise(PointwiseOp::relu, {scores});
  b.graph.outputs = {b.op("NonMaxSuppression", NonMaxSuppressionOp{},
                          {boxes, positive, b.ints({3}), b.floats({1}, {0.5f}), b.floats({1}, {0.1f})})};
  const auto session = open(b.graph, device_without({Family::non_max}));
  ASSERT_TRUE(session);
  const HostTensor corners = HostTensor::of(DType::f32, {1, 3, 4}, std::vector<float>{0, 0, 1, 1, 0, 0, 1, 0.9f, 5, 5, 6, 6});
  const auto found = session->run({corners, HostTensor::of(DType::f32, {1, 1, 3}, std::vector<float>{0.5f, 0.9f, 0.3f})});
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ((*found)[0].shape.to_string(), "2x3");
}

// What only the host's steps read never goes to the device; memory and caches count both sides.
TEST(Segments, ConstantsOfTheHostStayThere) {
  GraphBuilder b;
  const TensorId indices = b.input({64}, DType::i64);
  const TensorId rows = b.op("Gather", GatherOp{0}, {b.weights({8, 1000}), indices});
  b.graph.outputs = {b.pointwise(PointwiseOp::neg, {rows})};
  const auto session = open(b.graph, device_without({Family::gather}));
  ASSERT_TRUE(session);
  const auto inputs = testing::random_inputs(*session);
  EXPECT_EQ(difference(session->run(inputs), alone(b.graph, inputs)), "");
  const Plan& plan = **session->prepare(inputs);
  int64_t moved = 0;
  for (const PlanStep& step : plan.steps)
    if (step.runs_on == RunsOn::link) moved += step.stage.outputs[0].bytes();
  EXPECT_EQ(moved, 64 * 8 + 64 * 1000 * 4);  // the indices, the rows
  EXPECT_GE(session->peak_bytes(plan), 2 * 64 * 1000 * 4);
  EXPECT_GE(session->cached_bytes(), plan.arena_bytes + plan.host_arena_bytes);
}

}  // namespace
}  // namespace sparkle
