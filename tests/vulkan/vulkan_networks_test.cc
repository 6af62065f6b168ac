// Whole networks on a Vulkan device: the numbers of the CPU, one submission and no copy per inference, no new pipeline for a
// new size, another plan where a kernel turns out to be wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <random>
#include <thread>

#include "backends/reference/reference_backend.h"
#include "backends/vulkan/vulkan_testing.h"
#include "families/values/post_ops.h"
#include "graph/test_graphs.h"
#include "onnx/reader.h"
#include "networks/zoo.h"
#include "measure/layer_bench.h"
#include "measure/steps/optimisation_steps.h"
#include "run/pipeline/shared_pipeline.h"
#include "run/session_testing.h"
#include "measure/roofs/stream_bench.h"
#include "measure/tune_layers.h"

namespace sparkle {
namespace {

using vulkan::ContextOptions;
using vulkan::VulkanBackend;

std::unique_ptr<Session> open(std::string_view network, std::shared_ptr<Backend> backend) {
  auto graph = zoo_network(network);
  EXPECT_TRUE(graph.ok());
  auto session = Session::open(std::move(*graph), std::move(backend), {});
  EXPECT_TRUE(session.ok()) << (session.ok() ? "" : session.error().message);
  return std::move(*session);
}

void expect_equal(const std::vector<HostTensor>& got, const std::vector<HostTensor>& wanted, const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t o = 0; o < got.size(); ++o) {
    ASSERT_EQ(got[o].shape, wanted[o].shape);
    float largest = 1e-20f;
    for (int64_t i = 0; i < wanted[o].elements(); ++i) largest = std::max(largest, std::abs(wanted[o].data<float>()[i]));
    for (int64_t i = 0; i < wanted[o].elements(); ++i)
      ASSERT_LE(std::abs(got[o].data<float>()[i] - wanted[o].data<float>()[i]), 1e-5f * largest) << what << " at " << i;
  }
}

class VulkanNetworks : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.cache = false;
    if (!open_backend()) GTEST_SKIP() << why_;
  }
  bool open_backend() {
    backend_ = vulkan::test_backend(options_, why_, faults_);
    return backend_ != nullptr;
  }
  ContextOptions options_;
  vulkan::Faults faults_;
  std::string why_;
  std::shared_ptr<VulkanBackend> backend_;
};

// Indices that the data brings, outside of their axis: the CPU's error, of that run alone, and nothing more is moved for it.
TEST_F(VulkanNetworks, WrongIndicesAreTheCpusError) {
  auto session = open("tiny_attention", backend_), reference = open("tiny_attention", make_reference_backend());
  const auto right = testing::random_inputs(*session);
  const auto wanted = reference->run(right);
  ASSERT_TRUE(wanted.ok() && session->run(right).ok());
  auto wrong = testing::random_inputs(*session);
  size_t tokens = 0;
  while (wrong[tokens].dtype != DType::i64) ++tokens;
  ASSERT_GT(wrong[tokens].elements(), 3);
  wrong[tokens].data<int64_t>()[wrong[tokens].elements() - 1] = -3000000000;
  wrong[tokens].data<int64_t>()[2] = 5000000000;  // the first in row-major order is named
  const auto said = reference->run(wrong);
  ASSERT_FALSE(said.ok());
  const auto before = backend_->counters();
  const Traffic moved = backend_->traffic();
  const auto got = session->run(wrong);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().reason, Reason::bad_input);
  EXPECT_EQ(got.error().message, said.error().message);
  const auto after = backend_->counters();
  EXPECT_EQ(after.submissions - before.submissions, 1u);
  EXPECT_EQ(after.copies, before.copies);
  EXPECT_EQ(backend_->traffic().host_transfers - moved.host_transfers, wrong.size());  // its inputs
  const auto again = session->run(right);
  ASSERT_TRUE(again.ok()) << again.error().message;
  expect_equal(*again, *wanted, "after an error");

  // Several at once: each token tells of its own work.
  std::vector<std::shared_ptr<Buffer>> good, bad, out;
  for (size_t i = 0; i < right.size(); ++i) {
    good.push_back(vulkan::uploaded(*backend_, right[i].bytes.get(), right[i].size_bytes()));
    bad.push_back(vulkan::uploaded(*backend_, wrong[i].bytes.get(), wrong[i].size_bytes()));
  }
  for (const HostTensor& t : *wanted) out.push_back(*backend_->allocate(t.size_bytes(), MemoryKind::device));
  std::vector<Token> sent;
  for (int i = 0; i < 6; ++i) {
    const auto token = session->submit(right, i % 3 == 1 ? bad : good, out);
    ASSERT_TRUE(token.ok()) << token.error().message;
    sent.push_back(*token);
  }
  for (int i = 5; i >= 0; --i) EXPECT_EQ(backend_->wait(sent[static_cast<size_t>(i)]).ok(), i % 3 != 1) << i;
}

TEST_F(VulkanNetworks, GiveTheNumbersOfTheReference) {
  for (const char* name : {"tiny_chain", "tiny_residual", "tiny_depthwise", "tiny_unet", "tiny_detector", "tiny_attention"}) {
    auto session = open(name, backend_), reference = open(name, make_reference_backend());
    const auto inputs = testing::random_inputs(*session);
    const auto got = session->run(inputs), wanted = reference->run(inputs);
    ASSERT_TRUE(got.ok()) << name << ": " << got.error().message;
    ASSERT_TRUE(wanted.ok());
    expect_equal(*got, *wanted, name);
  }
}

// What follows a convolution or a product runs inside its kernel: a step per anchor, and the numbers of the operators.
TEST_F(VulkanNetworks, ProgramsBehindAnchorsAreOneStepWithThem) {
  using testing::GraphBuilder;
  using enum PointwiseOp;
  ConvOp conv;
  conv.pads_begin = conv.pads_end = {1, 1};
  struct Case {
    const char* name;
    TensorId (*follow)(GraphBuilder& b, TensorId sum);
  };
  for (const Case& c : {
           Case{"a slope per channel",
                [](GraphBuilder& b, TensorId y) { return b.pointwise(prelu, {y, b.weights({8, 1, 1}, -0.5f)}); }},
           Case{"a gate", [](GraphBuilder& b,
                             TensorId y) { return b.pointwise(mul, {b.pointwise(sigmoid, {y}), b.input({1, 8, 9, 9})}); }},
           Case{"a gate of its own",
                [](GraphBuilder& b, TensorId y) {
                  return b.pointwise(mul, {y, b.pointwise(affine, {b.pointwise(sigmoid, {y})}, 2, -0.5)});
                }},
           Case{"a curve and a line",
                [](GraphBuilder& b, TensorId y) { return b.pointwise(affine, {b.pointwise(tanh, {y})}, 3, 0.25); }},
       })
    for (const bool product : {false, true}) {
      GraphBuilder b;
      const Dims x = product ? Dims{1, 8, 9, 5} : Dims{1, 6, 9, 9};
      const TensorId sum = product ? b.op("MatMul", MatMulOp{}, {b.input(x), b.weights({5, 9}, -0.4f)})
                                   : b.op("Conv", conv, {b.input(x), b.weights({8, 6, 3, 3}, -0.4f)});
      const Graph graph = b.done(c.follow(b, sum));
      auto session = Session::open(graph, backend_, {}), reference = Session::open(graph, make_reference_backend(), {});
      ASSERT_TRUE(session.ok()) << session.error().message;
      ASSERT_TRUE(reference.ok()) << reference.error().message;
      const auto inputs = testing::random_inputs(**session);
      RunReport report;
      const auto got = (*session)->run(inputs, &report), wanted = (*reference)->run(inputs);
      ASSERT_TRUE(got.ok()) << c.name << ": " << got.error().message;
      ASSERT_TRUE(wanted.ok()) << wanted.error().message;
      expect_equal(*got, *wanted, c.name);
      int anchors = 0, programs = 0;
      for (const PlanStep& step : report.plan->steps) {
        anchors += !step.problem.empty();
        programs += step.stage.family() == Family::pointwise;
      }
      EXPECT_EQ(anchors, 1) << c.name;
      EXPECT_EQ(programs, 0) << c.name << (product ? " behind a product" : "");
    }
}

// A program that fails on the driver goes back to a step of its own; the numbers stay.
// In double precision what follows a product runs as far as the product's own epilogue reaches, the rest as steps of their own.
TEST_F(VulkanNetworks, DoublesAreComputedAsSuch) {
  if (!backend_->context().features().f64) GTEST_SKIP() << "SKIP: the device does not compute in double precision";
  testing::GraphBuilder b;
  const auto weights = [&](const Dims& shape) {
    std::vector<double> values(static_cast<size_t>(shape.product()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i) * 0.37) / 3;
    return b.graph.add_constant("c" + std::to_string(b.graph.tensors.size()), HostTensor::of(DType::f64, shape, values));
  };
  ConvOp conv;
  conv.pads_begin = conv.pads_end = {1, 1};
  const TensorId x = b.input({2, 3, 11, 13}, DType::f64);
  TensorId y = b.pointwise(PointwiseOp::relu, {b.op("Conv", conv, {x, weights({10, 3, 3, 3}), weights({10})})});
  y = b.op("Conv", conv, {y, weights({6, 10, 3, 3})});
  y = b.pointwise(PointwiseOp::mul, {y, b.pointwise(PointwiseOp::sigmoid, {y})});
  y = b.pointwise(PointwiseOp::add, {b.pointwise(PointwiseOp::exp, {y}), weights({6, 1, 1})});
  const Graph graph = b.done(y);
  std::vector<HostTensor> inputs{HostTensor::zeros(DType::f64, {2, 3, 11, 13})};
  for (int64_t i = 0; i < inputs[0].elements(); ++i) inputs[0].data<double>()[i] = std::cos(static_cast<double>(i) * 0.11);
  const auto opened = [&](std::shared_ptr<Backend> backend) {
    return std::move(*Session::open(graph, std::move(backend), {}));
  };
  const auto wanted = std::move(*opened(make_reference_backend())->run(inputs));
  const auto got = opened(backend_)->run(inputs);
  ASSERT_TRUE(got.ok()) << got.error().message;
  double largest = 0;
  for (int64_t i = 0; i < wanted[0].elements(); ++i) largest = std::max(largest, std::abs(wanted[0].data<double>()[i]));
  for (int64_t i = 0; i < wanted[0].elements(); ++i)
    ASSERT_NEAR((*got)[0].data<double>()[i], wanted[0].data<double>()[i], 1e-13 * largest) << i;
}

TEST_F(VulkanNetworks, AProgramThatFailsStaysApart) {
  testing::GraphBuilder b;
  const TensorId sum = b.op("MatMul", MatMulOp{}, {b.input({7, 5}), b.weights({5, 9}, -0.4f)});
  const Graph graph = b.done(b.pointwise(PointwiseOp::prelu, {sum, b.weights({9}, -0.5f)}));
  faults_.nothing = "gemm/" + post_op_name({2, {{PointwiseOp::prelu, 0, 1, 0, 0, 0}}});
  ASSERT_TRUE(open_backend());
  auto session = Session::open(graph, backend_, {}), reference = Session::open(graph, make_reference_backend(), {});
  ASSERT_TRUE(session.ok() && reference.ok());
  const auto inputs = testing::random_inputs(**session);
  RunReport report;
  const auto got = (*session)->run(inputs, &report), wanted = (*reference)->run(inputs);
  ASSERT_TRUE(got.ok()) << got.error().message;
  expect_equal(*got, *wanted, "apart");
  EXPECT_TRUE(backend_->device().denies("gemm", post_op_name({2, {{PointwiseOp::prelu, 0, 1, 0, 0, 0}}})));
  int programs = 0;
  for (const PlanStep& step : report.plan->steps) programs += step.stage.family() == Family::pointwise;
  EXPECT_EQ(programs, 1);
}

TEST_F(VulkanNetworks, StayOnTheDevice) {
  options_.force_staging = true;  // as on a card of its own, where every transfer is a copy
  ASSERT_TRUE(open_backend());
  auto session = open("tiny_residual", backend_);
  const auto inputs = testing::random_inputs(*session);
  const auto first = session->run(inputs);
  ASSERT_TRUE(first.ok()) << first.error().message;
  auto before = backend_->counters();
  ASSERT_TRUE(session->run(inputs).ok());
  auto after = backend_->counters();
  EXPECT_EQ(after.submissions - before.submissions, 1u);
  EXPECT_EQ(after.copies - before.copies, inputs.size() + first->size());  // in and out, nothing between
  EXPECT_EQ(after.pipelines, before.pipelines);

  // With inputs and outputs resident nothing is copied at all.
  std::vector<std::shared_ptr<Buffer>> in, out;
  for (const HostTensor& t : inputs) in.push_back(vulkan::uploaded(*backend_, t.bytes.get(), t.size_bytes()));
  for (const HostTensor& t : *first) out.push_back(*backend_->allocate(t.size_bytes(), MemoryKind::device));
  before = backend_->counters();
  for (int i = 0; i < 3; ++i) {
    const auto token = session->submit(inputs, in, out);
    ASSERT_TRUE(token.ok()) << token.error().message;
    ASSERT_TRUE(backend_->wait(*token).ok());
  }
  after = backend_->counters();
  EXPECT_EQ(after.submissions - before.submissions, 3u);
  EXPECT_EQ(after.copies, before.copies);
  EXPECT_LE(after.recordings - before.recordings, 1u);
  HostTensor got = HostTensor::zeros((*first)[0].dtype, (*first)[0].shape);
  vulkan::download(*backend_, *out[0], got.bytes.get(), got.size_bytes());
  EXPECT_EQ(std::memcmp(got.bytes.get(), (*first)[0].bytes.get(), static_cast<size_t>(got.size_bytes())), 0);
}

TEST_F(VulkanNetworks, StepsAddUpToTheWhole) {
  // Long enough a run that handing it over and hearing of its end are a small part of it.
  auto graph = read_onnx(SPARKLE_SOURCE_DIR "/models/upscale2x.onnx");
  ASSERT_TRUE(graph.ok());
  auto session = Session::open(std::move(*graph), backend_, {});
  ASSERT_TRUE(session.ok());
  const std::vector<HostTensor> inputs{testing::random_tensor(DType::f32, {1, 3, 120, 160}, 5)};
  double best = 0;
  for (int i = 0; i < 8; ++i) {
    RunReport report;
    ASSERT_TRUE((*session)->run(inputs, &report, true).ok());
    ASSERT_EQ(report.steps.size(), report.plan->steps.size());
    double sum = 0;
    for (const StepReport& step : report.steps) {
      EXPECT_GE(step.seconds, 0);
      sum += step.seconds;
    }
    EXPECT_LE(sum, 1.01 * report.seconds);  // two clocks
    best = std::max(best, sum / report.seconds);
  }
  EXPECT_GE(best, 0.9);
}

TEST_F(VulkanNetworks, LayersAreTimedWithoutTransfers) {
  options_.force_staging = true;
  ASSERT_TRUE(open_backend());
  auto problem = parse_conv("mb2ic8ih20oc16oh20kh3ph1");
  ASSERT_TRUE(problem.ok());
  problem->epilogue.bias = true;
  LayerBenchOptions options;
  options.rounds = 2, options.seconds_per_round = 1e-3;
  options.plan.algorithm = "gemm";
  const auto m = measure_layer(*backend_, *problem, options);
  ASSERT_TRUE(m.ok()) << m.error().message;
  EXPECT_EQ(m->checked.times, 2);
  EXPECT_EQ(m->host_transfers, 0u);
  EXPECT_EQ(m->clock_of_device, backend_->keeps_time());

  const auto before = backend_->counters();
  const auto stream = measure_stream(*backend_, *problem, options, 5);
  ASSERT_TRUE(stream.ok()) << stream.error().message;
  EXPECT_EQ(stream->batches, 5);
  EXPECT_EQ(stream->bytes_up, 5.0 * 2 * 8 * 20 * 20 * 4);
  EXPECT_EQ(stream->bytes_down, 5.0 * 2 * 16 * 20 * 20 * 4);
  EXPECT_LT(stream->largest_error, 1e-5);
  EXPECT_GT(stream->resident_seconds, 0);
  EXPECT_GT(stream->share_of_link(), 0);
  // A submission per batch: once with transfers and once without to check, before and after, then both each round, which
  // stands between two probes: of the peak, of reading and of copying, each by as many submissions as it takes.
  EXPECT_GE(backend_->counters().submissions - before.submissions, 5u * (2 * 2 + 2 * 2) + 2 * 2 * 3);
  EXPECT_EQ(stream->checked.times, 4);
}

TEST_F(VulkanNetworks, LayersAreTimedInTheTypeTheyAreStoredIn) {
  ASSERT_TRUE(open_backend());
  if (!backend_->device().unit("fma-f16")) GTEST_SKIP() << "the device does not store f16";
  auto problem = parse_conv("ic8ih20oc16oh20kh3ph1");
  ASSERT_TRUE(problem.ok());
  problem->epilogue.bias = true, problem->epilogue.activation = Activation::relu;
  LayerBenchOptions options;
  options.rounds = 1, options.seconds_per_round = 1e-3;
  const auto wide = measure_layer(*backend_, *problem, options);
  problem->dtype = "f16";
  const auto half = measure_layer(*backend_, *problem, options);
  ASSERT_TRUE(wide.ok() && half.ok()) << (half.ok() ? "" : half.error().message);
  EXPECT_EQ(half->checked.times, 2);
  // The reference rounds to f16 as well: both agree, but where a sum lies within f32's error of the middle of two fp16 values.
  EXPECT_LE(half->largest_error, 0x1p-9);
  EXPECT_LE(wide->largest_error, 1e-5);
  EXPECT_EQ(2 * half->compulsory_bytes, wide->compulsory_bytes);

  const auto ladder = optimisation_steps_on(*backend_, *problem, {});
  ASSERT_TRUE(ladder.ok()) << ladder.error().message;
  for (const OptimisationStep& step : *ladder) {
    if (!step.absent.empty()) continue;
    options.planes = step.other_layout;
    const auto measured = measure_choice(*backend_, *problem, step.choice, options);
    EXPECT_TRUE(measured.ok()) << step.name << ": " << measured.error().message;
  }

  options.planes = false;

  // Where f32 would stand for it, it is refused.
  EXPECT_EQ(measure_stream(*backend_, *problem, options, 2).error().reason, Reason::type_not_served);
  const auto plain = make_reference_backend();
  EXPECT_EQ(measure_layer(*plain, *problem, options).error().reason, Reason::type_not_served);
}

TEST_F(VulkanNetworks, BatchesWithWrongResultsAreRefused) {
  faults_.nothing = "gemm/naive";
  options_.try_first = false;
  ASSERT_TRUE(open_backend());
  auto problem = parse_conv("ic4ih8oc8oh8kh3ph1");
  ASSERT_TRUE(problem.ok());
  LayerBenchOptions options;
  options.plan.algorithm = "gemm", options.plan.variant = "naive";
  const auto stream = measure_stream(*backend_, *problem, options, 2);
  ASSERT_FALSE(stream.ok());
  EXPECT_EQ(stream.error().reason, Reason::internal);

  // Nor does tuning take them, however fast nothing is.
  TuningStore store(TuningStore::header_for(backend_->device()));
  TuneOptions tuning;
  tuning.plan.algorithm = "gemm";
  tuning.rule.most_seconds = 3;
  const auto tuned = tune_anchor(*backend_, anchor_of("", *problem, backend_->device()), tuning, store);
  ASSERT_TRUE(tuned.ok()) << tuned.error().message;
  for (size_t i = 0; i < tuned->candidates.size(); ++i)
    if (variant_of(tuned->candidates[i].schedules[0]) == "naive") {
      EXPECT_EQ(tuned->verdict.seconds[i], 0);
    }
  EXPECT_NE(variant_of(tuned->after().schedules[0]), "naive");
}

TEST_F(VulkanNetworks, WrongKernelsGiveWayToOthers) {
  faults_.nothing = "gemm/implicit";
  ASSERT_TRUE(open_backend());
  auto session = open("tiny_chain", backend_), reference = open("tiny_chain", make_reference_backend());
  const auto inputs = testing::random_inputs(*session);
  RunReport report;
  const auto got = session->run(inputs, &report), wanted = reference->run(inputs);
  ASSERT_TRUE(got.ok()) << got.error().message;
  expect_equal(*got, *wanted, "without gemm/implicit");
  for (const PlanStep& step : report.plan->steps)
    EXPECT_FALSE(step.stage.family() == Family::gemm && variant_of(step.schedule) == "implicit") << step.name;
}

TEST_F(VulkanNetworks, LostDevicesLeaveTheCpu) {
  auto session = open("tiny_chain", backend_);
  const auto inputs = testing::random_inputs(*session);
  ASSERT_TRUE(session->run(inputs).ok());
  faults_.lost_at_submit = 1;
  options_.try_first = false;
  ASSERT_TRUE(open_backend());
  auto lost = open("tiny_chain", backend_);
  const auto failed = lost->run(inputs);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().reason, Reason::device_lost) << failed.error().message;
  EXPECT_TRUE(open("tiny_chain", make_reference_backend())->run(inputs).ok());
}

TEST_F(VulkanNetworks, ThreadsShareASession) {
  auto session = open("tiny_chain", backend_);
  const auto inputs = testing::random_inputs(*session);
  const auto wanted = session->run(inputs);
  ASSERT_TRUE(wanted.ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        const auto got = session->run(inputs);
        ASSERT_TRUE(got.ok()) << got.error().message;
        expect_equal(*got, *wanted, "a thread's");
      }
    });
  for (std::thread& t : threads) t.join();
}

// Two logical devices and the CPU take items of one stream; one of them is lost in the middle of it.
TEST_F(VulkanNetworks, ThreadsOfSeveralDevicesShareAStream) {
  constexpr size_t kItems = 18;
  std::vector<std::vector<HostTensor>> items, wanted;
  const auto reference = open("tiny_chain", make_reference_backend());
  for (size_t i = 0; i < kItems; ++i) {
    items.push_back(testing::random_inputs(*reference, 10 * i + 1));
    auto outputs = reference->run(items.back());
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    wanted.push_back(std::move(*outputs));
  }
  const auto first = backend_;
  options_.try_first = false;
  for (const int lost_at : {0, 3, 7}) {
    faults_.lost_at_submit = lost_at;
    ASSERT_TRUE(open_backend());
    std::vector<std::shared_ptr<Session>> sessions{open("tiny_chain", first), open("tiny_chain", backend_),
                                                   open("tiny_chain", make_reference_backend())};
    SharedPipelineOptions options;
    options.split = Split::always, options.names = {"vulkan:0", "vulkan:0 again", "reference"};
    SharedPipeline pipeline(sessions, options);
    std::vector<std::future<Pipeline::Outputs>> futures;
    for (const auto& item : items) {
      auto future = pipeline.submit(item);
      ASSERT_TRUE(future.ok());
      futures.push_back(std::move(*future));
    }
    uint64_t given = 0;
    for (size_t i = 0; i < kItems; ++i) {
      const auto outputs = futures[i].get();
      ASSERT_TRUE(outputs.ok()) << outputs.error().message;
      expect_equal(*outputs, wanted[i], "item " + std::to_string(i));
    }
    pipeline.close();
    for (const DeviceShare& share : pipeline.shares()) {
      given += share.items;
      EXPECT_EQ(share.lost, share.name == "vulkan:0 again" && lost_at > 0 && sessions[1]->events().size() > 0) << share.name;
    }
    EXPECT_EQ(given, kItems);
  }
}

}  // namespace
}  // namespace sparkle
