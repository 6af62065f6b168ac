// What composed operators become: shapes, how many products a recurrent network takes, and sentences where inputs do not belong
// together. Values: tests/vectors/composed.py.
#include "graph/composed/compose.h"

#include <algorithm>

#include "graph/test_graphs.h"

namespace sparkle::testing {
namespace {

// x [steps, 2, 3] through an LSTM of four states with constant weights.
std::vector<TensorId> lstm(GraphBuilder& b, int64_t steps, int directions, Dims recurrent = {16, 4}) {
  RecurrentOp op;
  op.directions = directions;
  for (int d = 0; d < directions; ++d)
    op.activations.insert(op.activations.end(), {{PointwiseOp::sigmoid}, {PointwiseOp::tanh}, {PointwiseOp::tanh}});
  std::vector<TensorId> inputs{b.input({steps, 2, 3}), b.weights({directions * 16, 3}), kAbsent, kAbsent, kAbsent, kAbsent};
  for (int d = 0; d < directions; ++d) inputs.insert(inputs.end(), {b.weights(recurrent), kAbsent, kAbsent, kAbsent, kAbsent});
  return b.many("LSTM", ComposedOp{op}, inputs, 3);
}

TEST(Composed, ARecurrentNetworkIsOneProductOfAllInputsAndOneAStep) {
  for (const int directions : {1, 2}) {
    GraphBuilder b;
    const auto y = lstm(b, 7, directions);
    const auto g = b.bound(y);
    ASSERT_TRUE(g.ok()) << g.error().message;
    const auto products =
        std::count_if(g->ops.begin(), g->ops.end(), [](const Op& op) { return std::holds_alternative<MatMulOp>(op.params); });
    EXPECT_EQ(products, 1 + 7 * directions);
    EXPECT_EQ(g->tensor(g->outputs[0]).shape, Dims({7, directions, 2, 4}));
    EXPECT_EQ(g->tensor(g->outputs[1]).shape, Dims({directions, 2, 4}));
    EXPECT_EQ(g->tensor(g->outputs[2]).shape, Dims({directions, 2, 4}));
  }
}

TEST(Composed, AllStepsReadTheSameWeights) {
  GraphBuilder b;
  const auto y = lstm(b, 5, 1);
  const auto g = b.bound({y[0]});
  ASSERT_TRUE(g.ok()) << g.error().message;
  std::vector<TensorId> read;
  for (const Op& op : g->ops)
    if (std::holds_alternative<MatMulOp>(op.params)) read.push_back(op.inputs[1]);
  ASSERT_EQ(read.size(), 6u);
  for (size_t i = 2; i < read.size(); ++i) EXPECT_EQ(read[i], read[1]);
}

TEST(Composed, Errors) {
  const auto mentions = [](const std::string& sentence, const char* node, const char* what) {
    EXPECT_NE(sentence.find(node), std::string::npos) << sentence;
    EXPECT_NE(sentence.find(what), std::string::npos) << sentence;
  };
  GraphBuilder b;
  mentions(b.shape(lstm(b, 3, 1, {12, 4})[0]), "Node 'n0' (LSTM)", "of shape 12x4 should have the shape 16x4");
  GraphBuilder many;
  mentions(many.shape(lstm(many, 5000, 1)[0]), "Node 'n0' (LSTM)", "more than the 4096");
  GraphBuilder c;
  const TensorId x = c.input({2, 6, 9}), image = c.ints({4, 4}), block = c.ints({2, 2});
  mentions(c.shape(c.op("Col2Im", ComposedOp{ColumnsToImageOp{}}, {x, image, block})), "Node 'n0' (Col2Im)",
           "a multiple of 4 rows and 9 columns");
  GraphBuilder d;
  mentions(d.shape(d.op("DFT", ComposedOp{DftOp{}}, {d.input({2, 8, 3})})), "Node 'n0' (DFT)", "the last of size 1 or 2");
  GraphBuilder e;
  mentions(e.shape(e.op("DFT", ComposedOp{DftOp{}}, {e.input({2, 8000, 1})})), "Node 'n0' (DFT)", "2^24");
  GraphBuilder f;
  mentions(f.shape(f.op("CumProd", ComposedOp{CumProdOp{}}, {f.input({2, 8}), f.ints({5})})), "Node 'n0' (CumProd)",
           "axis 5 does not exist");
}

// Torch exports the samples of torch.stft as rows.
TEST(Composed, ARealSignalNeedsNoAxisForItsParts) {
  for (const Dims& samples : {Dims{2, 64}, Dims{2, 64, 1}}) {
    GraphBuilder b;
    const std::vector<TensorId> inputs{b.input(samples), b.ints({8}), kAbsent, b.ints({16})};
    EXPECT_EQ(b.shape(b.op("STFT", ComposedOp{StftOp{true}}, inputs)), b.shape(b.input({2, 7, 9, 2})));
  }
  GraphBuilder row;
  const std::string refused = row.shape(row.op("STFT", ComposedOp{StftOp{true}}, {row.input({64}), row.ints({8})}));
  EXPECT_NE(refused.find("should have rank 3"), std::string::npos) << refused;
}

TEST(Composed, ConstantsAreFolded) {
  GraphBuilder b;
  const TensorId size = b.ints({8});
  const auto g = b.bound({b.op("HannWindow", ComposedOp{WindowOp{}}, {size})});
  ASSERT_TRUE(g.ok()) << g.error().message;
  ASSERT_TRUE(g->tensor(g->outputs[0]).constant);
  EXPECT_EQ(g->tensor(g->outputs[0]).constant->data<float>()[4], 1);
  EXPECT_TRUE(g->ops.empty());
}

}  // namespace
}  // namespace sparkle::testing
