#include "graph/test_graphs.h"

namespace sparkle {
namespace {
using testing::GraphBuilder;

std::string conv(Dims x, Dims w, ConvOp op) {
  GraphBuilder b;
  return b.shape(b.op("Conv", op, {b.input(x), b.weights(w)}));
}
std::string pool(Dims x, PoolOp op) {
  GraphBuilder b;
  return b.shape(b.op("MaxPool", op, {b.input(x)}));
}

TEST(InferConv, SizesAndPads) {
  ConvOp op;
  EXPECT_EQ(conv({1, 3, 8, 9}, {4, 3, 3, 3}, op), "1x4x6x7");
  op.strides = {2, 2}, op.pads_begin = {1, 1}, op.pads_end = {1, 1};
  EXPECT_EQ(conv({2, 3, 8, 9}, {4, 3, 3, 3}, op), "2x4x4x5");
  op.dilations = {2, 3};
  EXPECT_EQ(conv({2, 3, 8, 9}, {4, 3, 3, 3}, op), "2x4x3x3");
  EXPECT_EQ(conv({1, 3, 8}, {4, 3, 3}, ConvOp{}), "1x4x6");
  EXPECT_EQ(conv({1, 3, 8, 8, 8}, {4, 3, 1, 2, 3}, ConvOp{}), "1x4x8x7x6");
}

TEST(InferConv, AutoPadIsResolved) {
  for (AutoPad mode : {AutoPad::same_upper, AutoPad::same_lower, AutoPad::valid}) {
    GraphBuilder b;
    ConvOp op;
    op.auto_pad = mode, op.strides = {2, 2};
    const auto g = b.bound({b.op("Conv", op, {b.input({1, 3, 8, 7}), b.weights({4, 3, 3, 3})})});
    ASSERT_TRUE(g.ok()) << g.error().message;
    const auto& r = std::get<ConvOp>(g->ops[0].params);
    EXPECT_EQ(r.auto_pad, AutoPad::notset);
    EXPECT_EQ(g->tensor(g->outputs[0]).shape, mode == AutoPad::valid ? (Dims{1, 4, 3, 3}) : (Dims{1, 4, 4, 4}));
    const Dims pads[] = {r.pads_begin, r.pads_end};
    if (mode == AutoPad::same_upper) {
      EXPECT_EQ(pads[0], (Dims{0, 1}));
    }
    if (mode == AutoPad::same_lower) {
      EXPECT_EQ(pads[1], (Dims{0, 1}));
    }
    if (mode != AutoPad::valid) {
      EXPECT_EQ(pads[mode == AutoPad::same_upper], (Dims{1, 1}));
    }
  }
}

TEST(InferConv, GroupsAndErrors) {
  ConvOp op;
  op.groups = 6;
  EXPECT_EQ(conv({1, 6, 5, 5}, {12, 1, 3, 3}, op), "1x12x3x3");
  EXPECT_EQ(
      conv({1, 5, 5, 5}, {12, 1, 3, 3}, op),
      "Node 'n0' (Conv): the channels of 'x0' of shape 1x5x5x5 do not match the weights 'c1' of shape 12x1x3x3 in 6 group(s).");
  EXPECT_EQ(conv({1, 3, 2, 2}, {4, 3, 3, 3}, ConvOp{}),
            "Node 'n0' (Conv): the window of 3x3 (dilations 1x1) does not fit into 'x0' of shape 1x3x2x2 with its padding.");
  op = {};
  op.strides = {0, 1};
  EXPECT_NE(conv({1, 3, 8, 8}, {4, 3, 3, 3}, op).find("strides holds 0"), std::string::npos);
  op.strides = {1};
  EXPECT_NE(conv({1, 3, 8, 8}, {4, 3, 3, 3}, op).find("strides has 1 entries"), std::string::npos);
  op = {};
  op.groups = 0;
  EXPECT_NE(conv({1, 3, 8, 8}, {4, 3, 3, 3}, op).find("group 0 is out of range"), std::string::npos);
}

TEST(InferConv, HostileSizesAreRefused) {
  ConvOp op;
  op.pads_begin = op.pads_end = {int64_t{1} << 31, int64_t{1} << 31};
  EXPECT_NE(conv({1, 3, 8, 8}, {4, 3, 3, 3}, op).find("more than can be addressed"), std::string::npos);
  op.pads_begin = {INT64_MAX, 0};
  EXPECT_NE(conv({1, 3, 8, 8}, {4, 3, 3, 3}, op).find("out of range"), std::string::npos);
  op = {};
  op.dilations = {int64_t{1} << 31, 1};
  EXPECT_NE(conv({1, 3, 8, 8}, {4, 3, 3, 3}, op).find("does not fit"), std::string::npos);
}

TEST(InferConvTranspose, SizesPadsAndOutputShape) {
  ConvOp op;
  op.transposed = true;
  EXPECT_EQ(conv({1, 3, 4, 4}, {3, 2, 3, 3}, op), "1x2x6x6");
  op.strides = {2, 2}, op.output_padding = {1, 1}, op.pads_begin = op.pads_end = {1, 1};
  EXPECT_EQ(conv({1, 3, 4, 4}, {3, 2, 3, 3}, op), "1x2x8x8");
  op = {};
  op.transposed = true, op.groups = 3, op.strides = {2, 2}, op.auto_pad = AutoPad::same_upper;
  EXPECT_EQ(conv({1, 3, 4, 4}, {3, 2, 3, 3}, op), "1x6x8x8");
  GraphBuilder b;
  op = {};
  op.transposed = true, op.strides = {3, 2}, op.output_shape = {10, 8};
  const auto g = b.bound({b.op("ConvTranspose", op, {b.input({1, 1, 3, 3}), b.weights({1, 2, 3, 3})})});
  ASSERT_TRUE(g.ok());
  EXPECT_EQ(g->tensor(g->outputs[0]).shape, (Dims{1, 2, 10, 8}));
  // 10 exceeds the 9 rows that the input reaches; 8 exceeds 7 columns.
  EXPECT_EQ(std::get<ConvOp>(g->ops[0].params).pads_end, (Dims{-1, -1}));
}

TEST(InferPool, CeilModeStartsInsideThePaddedInput) {
  PoolOp op;
  op.kernel = {3, 3}, op.strides = {2, 2};
  EXPECT_EQ(pool({1, 2, 6, 7}, op), "1x2x2x3");
  op.ceil_mode = true;
  EXPECT_EQ(pool({1, 2, 6, 7}, op), "1x2x3x3");
  // A third window would start at 4, beyond the input of 3 with padding 1.
  op.kernel = {1, 1}, op.strides = {2, 2}, op.pads_begin = {0, 1}, op.pads_end = {1, 1};
  EXPECT_EQ(pool({1, 1, 3, 2}, op), "1x1x2x2");
  op = {};
  op.kernel = {2, 2}, op.strides = {3, 3}, op.ceil_mode = true;
  EXPECT_EQ(pool({1, 1, 5, 6}, op), "1x1x2x2");
}

TEST(InferPool, IndicesAndMissingKernel) {
  GraphBuilder b;
  PoolOp op;
  op.kernel = {2, 2}, op.auto_pad = AutoPad::same_lower, op.strides = {2, 2};
  const auto outputs = b.many("MaxPool", op, {b.input({1, 2, 5, 5})}, 2);
  const auto g = b.bound(outputs);
  ASSERT_TRUE(g.ok());
  EXPECT_EQ(g->tensor(g->outputs[1]).dtype, DType::i64);
  EXPECT_EQ(g->tensor(g->outputs[1]).shape, (Dims{1, 2, 3, 3}));
  EXPECT_EQ(pool({1, 2, 5, 5}, PoolOp{}), "Node 'n0' (MaxPool): kernel_shape is missing.");
}

// The product of three sizes that are each allowed.
TEST(InferWindow, TapsBeyondCounting) {
  GraphBuilder b;
  PoolOp pool;
  pool.kernel = pool.pads_begin = pool.pads_end = {1 << 30, 1 << 30, 1 << 30};
  const std::string said = b.shape(b.op("MaxPool", pool, {b.input({1, 1, 4, 4, 4})}));
  EXPECT_NE(said.find("window's taps would exceed what can be addressed"), std::string::npos) << said;
}

}  // namespace
}  // namespace sparkle
