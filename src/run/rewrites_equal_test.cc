// Rewrites change nothing: random graphs give the same outputs with and without simplification, fused and not, on the CPU's
// kernels and on the plain loops.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "base/system/thread_pool.h"
#include "device/probe_cpu.h"
#include "families/registry.h"
#include "graph/test_graphs.h"
#include "run/session.h"

namespace sparkle {
namespace {

using testing::GraphBuilder;

int64_t pick(std::mt19937_64& rng, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(rng() % static_cast<uint64_t>(high - low + 1));
}

TensorId random_weights(GraphBuilder& b, std::mt19937_64& rng, const Dims& shape, float around = 0) {
  std::vector<float> values(static_cast<size_t>(shape.product()));
  const float scale = 1.0f / std::sqrt(static_cast<float>(std::max<int64_t>(1, shape.product() / shape[0])));
  std::normal_distribution<float> normal(0, scale);
  for (float& v : values) v = around + normal(rng);
  return b.floats(shape, values);
}

// A handful of operators on maps of one size, values reused at random: residuals, chains, concatenations, slices.
Graph random_graph(std::mt19937_64& rng) {
  GraphBuilder b;
  const int64_t size = pick(rng, 3, 9), n = pick(rng, 1, 2);
  std::vector<std::pair<TensorId, int64_t>> values;  // with its channels
  const int64_t channels = 4 * pick(rng, 1, 3);
  values.push_back({b.input({n, channels, size, size}), channels});
  const auto any = [&] { return values[static_cast<size_t>(pick(rng, 0, static_cast<int64_t>(values.size()) - 1))]; };
  for (int64_t ops = pick(rng, 3, 14); ops > 0; --ops) {
    const auto [x, c] = rng() % 3 ? values.back() : any();
    switch (pick(rng, 0, 9)) {
      case 0:
      case 1: {
        const int64_t filter = pick(rng, 0, 1) * 2 + 1, k = rng() % 2 ? c : 4 * pick(rng, 1, 3);
        ConvOp conv;
        conv.pads_begin = conv.pads_end = {filter / 2, filter / 2};
        std::vector<TensorId> inputs{x, random_weights(b, rng, {k, c, filter, filter})};
        if (rng() % 2) inputs.push_back(random_weights(b, rng, {k}));
        values.push_back({b.op("Conv", conv, inputs), k});
        break;
      }
      case 2: {
        ConvOp conv;
        conv.pads_begin = conv.pads_end = {1, 1}, conv.groups = c;
        values.push_back({b.op("Conv", conv, {x, random_weights(b, rng, {c, 1, 3, 3})}), c});
        break;
      }
      case 3: {
        values.push_back({b.op("BatchNormalization", BatchNormalizationOp{1e-5},
                               {x, random_weights(b, rng, {c}, 1), random_weights(b, rng, {c}), random_weights(b, rng, {c}),
                                b.floats({c}, std::vector<float>(static_cast<size_t>(c), 0.7f))}),
                          c});
        break;
      }
      case 4: {
        const PointwiseOp kinds[] = {PointwiseOp::relu, PointwiseOp::sigmoid, PointwiseOp::tanh, PointwiseOp::identity};
        values.push_back({b.pointwise(kinds[pick(rng, 0, 3)], {x}), c});
        break;
      }
      case 5: {
        const TensorId gate = b.pointwise(PointwiseOp::sigmoid, {x});
        values.push_back({b.pointwise(PointwiseOp::mul, {x, gate}), c});
        break;
      }
      case 6:
      case 7: {
        const auto [y, d] = any();
        if (d == c) values.push_back({b.pointwise(rng() % 3 ? PointwiseOp::add : PointwiseOp::mul, {x, y}), c});
        break;
      }
      case 8: {
        const auto [y, d] = any();
        if (c + d <= 48) values.push_back({b.op("Concat", ConcatOp{1}, {x, y}), c + d});
        break;
      }
      default: {
        PoolOp pool;
        pool.kind = rng() % 2 ? PoolKind::max : PoolKind::average;
        pool.kernel = {3, 3}, pool.pads_begin = pool.pads_end = {1, 1};
        values.push_back({b.op("MaxPool", pool, {x}), c});
      }
    }
  }
  b.graph.outputs = {values.back().first};
  if (values.size() > 2 && rng() % 2) b.graph.outputs.push_back(values[values.size() / 2].first);
  return b.graph;
}

// The plan step by step through the families' references.
std::vector<HostTensor> walk(const Plan& plan, const std::vector<HostTensor>& inputs) {
  std::vector<std::byte> arena(static_cast<size_t>(plan.arena_bytes) + 64);
  std::vector<HostTensor> outputs;
  for (int t : plan.outputs) {
    const TensorDesc& desc = plan.tensors[static_cast<size_t>(t)].desc;
    outputs.push_back(HostTensor::zeros(desc.dtype, desc.shape));
  }
  const auto data = [&](int tensor) {
    const PlanTensor& t = plan.tensors[static_cast<size_t>(tensor)];
    const auto index = static_cast<size_t>(t.index);
    switch (t.kind) {
      case PlaceKind::input: return inputs[index].bytes.get();
      case PlaceKind::output: return outputs[index].bytes.get();
      case PlaceKind::constant: return plan.constants[index].value.bytes.get();
      case PlaceKind::arena:
      case PlaceKind::host: break;
    }
    return arena.data() + t.offset;
  };
  for (const PlanStep& step : plan.steps) {
    std::vector<TensorView> from, to;
    for (size_t i = 0; i < step.inputs.size(); ++i) from.push_back({data(step.inputs[i]), step.stage.inputs[i]});
    for (size_t i = 0; i < step.outputs.size(); ++i) to.push_back({data(step.outputs[i]), step.stage.outputs[i]});
    info(step.stage.family()).reference(step.stage.params, from, to);
  }
  return outputs;
}

TEST(Rewrites, GiveEqualOutputs) {
  const Device device = probe_cpu();
  const auto backend = cpu::make_cpu_backend(device, std::make_shared<ThreadPool>(1));
  const auto reference = make_reference_backend();
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 rng(seed);
    const Graph graph = random_graph(rng);
    const Dims shape = graph.tensor(graph.inputs[0]).shape;
    HostTensor input = HostTensor::zeros(DType::f32, shape);
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < input.elements(); ++i) input.data<float>()[i] = normal(rng);

    std::vector<std::vector<HostTensor>> all;
    for (int form = 0; form < 4; ++form) {
      SessionOptions options;
      options.fuse = form % 2 == 1;
      auto session = Session::open(graph, form < 2 ? reference : backend, options);
      ASSERT_TRUE(session.ok()) << session.error().message;
      auto outputs = (*session)->run({input});
      ASSERT_TRUE(outputs.ok()) << outputs.error().message;
      all.push_back(std::move(*outputs));
    }
    // As written: nothing simplified, nothing fused.
    const auto bound = bind(graph, {{shape, std::nullopt}});
    ASSERT_TRUE(bound.ok()) << bound.error().message;
    PlanOptions unfused;
    unfused.fuse = false;
    const auto plan = make_plan(*bound, reference_device(), unfused);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    all.push_back(walk(*plan, {input}));
    for (size_t form = 1; form < all.size(); ++form)
      for (size_t t = 0; t < all[0].size(); ++t) {
        float largest = 0;
        for (int64_t i = 0; i < all[0][t].elements(); ++i) largest = std::max(largest, std::abs(all[0][t].data<float>()[i]));
        ASSERT_EQ(all[form][t].shape, all[0][t].shape);
        for (int64_t i = 0; i < all[0][t].elements(); ++i)
          ASSERT_NEAR(all[form][t].data<float>()[i], all[0][t].data<float>()[i], 1e-4 * largest + 1e-6)
              << "form " << form << " output " << t;
      }
  }
}

}  // namespace
}  // namespace sparkle
