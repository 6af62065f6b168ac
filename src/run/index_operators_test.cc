// Operators with places in whole sessions: wrong indices are an error that names the node and leaves the session usable, rows
// found at run time give outputs their true shape, Einsum agrees with the sum written out - on the CPU and on the reference
// backend.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "base/system/thread_pool.h"
#include "device/probe_cpu.h"
#include "graph/test_graphs.h"
#include "run/session.h"

namespace sparkle {
namespace {

using testing::GraphBuilder;

std::vector<std::shared_ptr<Backend>> backends() {
  return {cpu::make_cpu_backend(probe_cpu(), std::make_shared<ThreadPool>(2)), make_reference_backend()};
}

std::unique_ptr<Session> open(Graph graph, std::shared_ptr<Backend> backend) {
  auto session = Session::open(std::move(graph), std::move(backend), {});
  EXPECT_TRUE(session.ok()) << (session.ok() ? "" : session.error().message);
  return session.ok() ? std::move(*session) : nullptr;
}

TEST(IndexOperators, WrongIndicesNameTheNode) {
  for (const auto& backend : backends()) {
    for (const OpParams& params : {OpParams(GatherOp{0}), OpParams(GatherElementsOp{0}), OpParams(GatherNDOp{0})}) {
      GraphBuilder b;
      const TensorId x = b.input({3}), indices = b.input({2, 1}, DType::i64);
      const bool elements = std::holds_alternative<GatherElementsOp>(params);
      const TensorId data = elements ? b.op("Reshape", ReshapeOp{ReshapeOp::Form::reshape, {3, 1}, false, true}, {x}) : x;
      b.graph.outputs = {b.op("Gather", params, {data, indices})};
      b.graph.ops.back().name = "pick";
      const auto session = open(b.graph, backend);
      ASSERT_TRUE(session);
      const HostTensor values = HostTensor::of(DType::f32, {3}, std::vector<float>{1, 2, 3});
      const auto wrong = session->run({values, HostTensor::of(DType::i64, {2, 1}, std::vector<int64_t>{0, 3})});
      ASSERT_FALSE(wrong.ok());
      EXPECT_EQ(wrong.error().reason, Reason::bad_input);
      EXPECT_EQ(wrong.error().message, "Node 'pick': index 3 at 1x0 lies outside of axis 0 of size 3.");
      const auto right = session->run({values, HostTensor::of(DType::i64, {2, 1}, std::vector<int64_t>{0, -1})});
      ASSERT_TRUE(right.ok()) << right.error().message;
      EXPECT_EQ((*right)[0].data<float>()[1], 3);
    }
    GraphBuilder b;
    const TensorId x = b.input({3}), indices = b.input({1}, DType::i64), updates = b.input({1});
    b.graph.outputs = {b.op("ScatterElements", ScatterElementsOp{}, {x, indices, updates})};
    const auto session = open(b.graph, backend);
    ASSERT_TRUE(session);
    const auto wrong =
        session->run({HostTensor::zeros(DType::f32, {3}), HostTensor::of(DType::i64, {1}, std::vector<int64_t>{-4}),
                      HostTensor::zeros(DType::f32, {1})});
    ASSERT_FALSE(wrong.ok());
    EXPECT_EQ(wrong.error().message, "Node 'n0': index -4 at 0 lies outside of axis 0 of size 3.");
  }
}

TEST(IndexOperators, OutputsHaveTheRowsFound) {
  for (const auto& backend : backends()) {
    GraphBuilder b;
    const TensorId boxes = b.input({1, 3, 4}), scores = b.input({1, 1, 3});
    const TensorId rows = b.op("NonMaxSuppression", NonMaxSuppressionOp{},
                               {boxes, scores, b.ints({3}), b.floats({1}, {0.5f}), b.floats({1}, {0.1f})});
    b.graph.outputs = {rows};
    const auto session = open(b.graph, backend);
    ASSERT_TRUE(session);
    const HostTensor corners = HostTensor::of(DType::f32, {1, 3, 4}, std::vector<float>{0, 0, 1, 1, 0, 0, 1, 0.9f, 5, 5, 6, 6});
    const auto found = session->run({corners, HostTensor::of(DType::f32, {1, 1, 3}, std::vector<float>{0.5f, 0.9f, 0.3f})});
    ASSERT_TRUE(found.ok()) << found.error().message;
    ASSERT_EQ((*found)[0].shape.to_string(), "2x3");
    EXPECT_EQ((*found)[0].data<int64_t>()[2], 1);
    EXPECT_EQ((*found)[0].data<int64_t>()[5], 2);
    const auto none = session->run({corners, HostTensor::zeros(DType::f32, {1, 1, 3})});
    ASSERT_TRUE(none.ok()) << none.error().message;
    EXPECT_EQ((*none)[0].shape.to_string(), "0x3");
    const auto all = session->run(
        {HostTensor::zeros(DType::f32, {1, 3, 4}), HostTensor::of(DType::f32, {1, 1, 3}, std::vector<float>{1, 1, 1})});
    ASSERT_TRUE(all.ok()) << all.error().message;
    EXPECT_EQ((*all)[0].shape.to_string(), "3x3");
    // The plan says so in its text too.
    const auto plan = session->prepare({corners, HostTensor::zeros(DType::f32, {1, 1, 3})});
    ASSERT_TRUE(plan.ok());
    const std::string text = to_text(**plan);
    EXPECT_NE(text.find("\nopen 0\n"), std::string::npos) << text;
  }
}

// The sum written out: every letter runs over its size.
std::vector<double> written_out(const std::vector<std::string>& terms, const std::string& out,
                                const std::vector<HostTensor>& inputs) {
  std::map<char, int64_t> sizes;
  std::string letters = out;
  for (size_t i = 0; i < terms.size(); ++i)
    for (size_t k = 0; k < terms[i].size(); ++k) {
      sizes[terms[i][k]] = inputs[i].shape[static_cast<int>(k)];
      if (letters.find(terms[i][k]) == std::string::npos) letters += terms[i][k];
    }
  int64_t outputs = 1, total = 1;
  for (char c : out) outputs *= sizes[c];
  for (char c : letters) total *= sizes[c];
  std::vector<double> result(static_cast<size_t>(outputs), 0.0);
  for (int64_t i = 0; i < total; ++i) {
    std::map<char, int64_t> at;
    int64_t rest = i;
    for (size_t k = letters.size(); k-- > 0;) at[letters[k]] = rest % sizes[letters[k]], rest /= sizes[letters[k]];
    double product = 1;
    for (size_t t = 0; t < terms.size(); ++t) {
      int64_t place = 0;
      for (char c : terms[t]) place = place * sizes[c] + at[c];
      product *= static_cast<double>(inputs[t].data<float>()[place]);
    }
    int64_t place = 0;
    for (char c : out) place = place * sizes[c] + at[c];
    result[static_cast<size_t>(place)] += product;
  }
  return result;
}

TEST(IndexOperators, EinsumIsTheSumWrittenOut) {
  const std::map<char, int64_t> sizes = {{'a', 2}, {'b', 3}, {'i', 4}, {'j', 5}, {'k', 6}};
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"ij"}, "ji"},
      {{"ij"}, "i"},
      {{"ij"}, ""},
      {{"ii"}, "i"},
      {{"ii"}, ""},
      {{"aibi"}, "iba"},
      {{"iii"}, "i"},
      {{"ij", "jk"}, "ik"},
      {{"ij", "jk"}, "ki"},
      {{"aij", "ajk"}, "aik"},
      {{"aij", "kja"}, "iak"},
      {{"i", "j"}, "ij"},
      {{"ij", "ij"}, "ij"},
      {{"ij", "ij"}, ""},
      {{"abij", "bkj"}, "kaib"},
      {{"ij", "jk", "ka"}, "ai"},
      {{"i", "i", "i"}, ""},
      {{"ijj", "ja"}, "ia"},
  };
  for (const auto& [terms, out] : cases) {
    std::string equation;
    GraphBuilder b;
    std::vector<HostTensor> inputs;
    std::vector<TensorId> ids;
    for (const std::string& term : terms) {
      equation += (equation.empty() ? "" : ",") + term;
      Dims shape;
      for (char c : term) shape.push_back(sizes.at(c));
      ids.push_back(b.input(shape));
      inputs.push_back(HostTensor::zeros(DType::f32, shape));
      for (int64_t i = 0; i < shape.product(); ++i) inputs.back().data<float>()[i] = normal(random);
    }
    equation += "->" + out;
    SCOPED_TRACE(equation);
    b.graph.outputs = {b.op("Einsum", EinsumOp{equation}, ids)};
    const std::vector<double> wanted = written_out(terms, out, inputs);
    for (const auto& backend : backends()) {
      const auto session = open(b.graph, backend);
      ASSERT_TRUE(session);
      const auto got = session->run(inputs);
      ASSERT_TRUE(got.ok()) << got.error().message;
      ASSERT_EQ((*got)[0].elements(), static_cast<int64_t>(wanted.size()));
      // At most 120 products of three normal numbers are added, in float.
      for (size_t i = 0; i < wanted.size(); ++i)
        EXPECT_NEAR(static_cast<double>((*got)[0].data<float>()[i]), wanted[i], 120 * 30 * std::ldexp(1, -24)) << i;
    }
  }
}

// Antialiasing goes axis after axis, but integers and 16-bit floats are rounded once: they are the rounded result of floats.
TEST(IndexOperators, AntialiasRoundsOnce) {
  const Dims shape{1, 2, 13, 11};
  HostTensor floats = HostTensor::zeros(DType::f32, shape), bytes = HostTensor::zeros(DType::u8, shape);
  std::mt19937 random(3);
  for (int64_t i = 0; i < shape.product(); ++i) {
    bytes.data<uint8_t>()[i] = static_cast<uint8_t>(random());
    floats.data<float>()[i] = bytes.data<uint8_t>()[i];
  }
  const auto resized = [&](const HostTensor& x) {
    GraphBuilder b;
    ResizeOp op;
    op.params.mode = ResizeMode::linear;
    op.antialias = true;
    const TensorId input = b.input(shape, x.dtype);
    b.graph.outputs = {b.op("Resize", op, {input, kAbsent, kAbsent, b.ints({1, 2, 5, 4})})};
    const auto session = open(b.graph, backends()[0]);
    auto y = session->run({x});
    EXPECT_TRUE(y.ok()) << (y.ok() ? "" : y.error().message);
    return y.ok() ? (*y)[0] : HostTensor();
  };
  const HostTensor real = resized(floats), whole = resized(bytes);
  ASSERT_EQ(real.shape.to_string(), "1x2x5x4");
  ASSERT_EQ(whole.shape.to_string(), "1x2x5x4");
  for (int64_t i = 0; i < real.elements(); ++i)
    EXPECT_NEAR(static_cast<double>(whole.data<uint8_t>()[i]), static_cast<double>(real.data<float>()[i]), 0.5001) << i;
}

}  // namespace
}  // namespace sparkle
