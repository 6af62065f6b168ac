// Shapes of Attention, RotaryEmbedding, GridSample and DeformConv, and what is wrong with them.
#include "graph/test_graphs.h"

namespace sparkle {
namespace {
using testing::GraphBuilder;

using Shapes = std::vector<Dims>;

// The shape of output `output`, or the error's sentence. An empty shape stands for an absent input.
std::string shape_of(const OpParams& params, const Shapes& inputs, int output = 0, DType last = DType::f32) {
  GraphBuilder b;
  std::vector<TensorId> ids;
  for (size_t i = 0; i < inputs.size(); ++i)
    ids.push_back(inputs[i].empty() ? kAbsent : b.input(inputs[i], i + 1 == inputs.size() ? last : DType::f32));
  const std::vector<TensorId> outputs = b.many("Op", params, ids, 4);
  return b.shape(outputs[static_cast<size_t>(output)]);
}

bool says(const std::string& sentence, const std::string& part) { return sentence.find(part) != std::string::npos; }

TEST(InferAttention, Shapes) {
  AttentionOp op;
  const Dims q{2, 4, 5, 8}, k{2, 2, 7, 8}, v{2, 2, 7, 6};
  EXPECT_EQ(shape_of(op, {q, k, v}), "2x4x5x6");
  EXPECT_EQ(shape_of(op, {q, k, v}, 1), "2x2x7x8");
  EXPECT_EQ(shape_of(op, {q, k, v, {}, {2, 2, 3, 8}, {2, 2, 3, 6}}, 1), "2x2x10x8");
  EXPECT_EQ(shape_of(op, {q, k, v, {}, {2, 2, 3, 8}, {2, 2, 3, 6}}, 3), "2x4x5x10");
  EXPECT_EQ(shape_of(op, {q, k, v, {5, 4}}), "2x4x5x6");  // a mask that ends early
  EXPECT_EQ(shape_of(op, {q, k, v, {}, {}, {}, {2}}, 0, DType::i64), "2x4x5x6");
  op.query_heads = 4, op.key_heads = 2;
  EXPECT_EQ(shape_of(op, {{2, 5, 32}, {2, 7, 16}, {2, 7, 12}}), "2x5x24");
}

TEST(InferAttention, Errors) {
  AttentionOp op;
  const Dims q{2, 4, 5, 8}, k{2, 2, 7, 8}, v{2, 2, 7, 6};
  EXPECT_TRUE(says(shape_of(op, {q, {2, 3, 7, 8}, {2, 3, 7, 6}}), "evenly"));
  EXPECT_TRUE(says(shape_of(op, {q, k, {2, 2, 6, 6}}), "fit together"));
  EXPECT_TRUE(says(shape_of(op, {q, k, v, {5, 8}}), "mask"));
  EXPECT_TRUE(says(shape_of(op, {q, k, v, {}, {2, 2, 3, 8}, {2, 2, 4, 6}}), "past value"));
  EXPECT_TRUE(says(shape_of(op, {q, k, v, {}, {}, {}, {3}}, 0, DType::i64), "lengths"));
  EXPECT_TRUE(says(shape_of(op, {{2, 5, 32}, {2, 7, 16}, {2, 7, 12}}), "heads"));
  op.left = -2;
  EXPECT_TRUE(says(shape_of(op, {q, k, v}), "window"));
}

TEST(InferRotary, ShapesAndErrors) {
  RotaryEmbeddingOp op;
  EXPECT_EQ(shape_of(op, {{2, 3, 4, 6}, {2, 4, 3}, {2, 4, 3}}), "2x3x4x6");
  EXPECT_EQ(shape_of(op, {{2, 3, 4, 6}, {9, 3}, {9, 3}, {2, 4}}, 0, DType::i64), "2x3x4x6");
  EXPECT_TRUE(says(shape_of(op, {{2, 3, 4, 6}, {2, 4, 2}, {2, 4, 2}}), "table"));
  EXPECT_TRUE(says(shape_of(op, {{2, 3, 4, 6}, {9, 3}, {9, 3}, {2, 5}}, 0, DType::i64), "positions"));
  op.turned = 3;
  EXPECT_TRUE(says(shape_of(op, {{2, 3, 4, 6}, {2, 4, 3}, {2, 4, 3}}), "turn"));
}

TEST(InferSample, ShapesAndErrors) {
  const GridSampleOp op;
  EXPECT_EQ(shape_of(op, {{2, 3, 5, 6}, {2, 7, 8, 2}}), "2x3x7x8");
  EXPECT_EQ(shape_of(op, {{2, 3, 4, 5, 6}, {2, 7, 8, 9, 3}}), "2x3x7x8x9");
  EXPECT_TRUE(says(shape_of(op, {{2, 3, 5, 6}, {2, 7, 8, 3}}), "grid"));
  EXPECT_TRUE(says(shape_of(op, {{2, 3, 0, 6}, {2, 7, 8, 2}}), "empty"));
}

TEST(InferDeform, ShapesAndErrors) {
  DeformConvOp op;
  op.strides = {2, 1}, op.pads_begin = {1, 0}, op.pads_end = {1, 0};
  EXPECT_EQ(shape_of(op, {{1, 4, 7, 6}, {8, 4, 3, 3}, {1, 18, 4, 4}}), "1x8x4x4");
  op.offset_groups = 2;
  EXPECT_TRUE(says(shape_of(op, {{1, 4, 7, 6}, {8, 4, 3, 3}, {1, 18, 4, 4}}), "offset"));
  EXPECT_EQ(shape_of(op, {{1, 4, 7, 6}, {8, 4, 3, 3}, {1, 36, 4, 4}, {8}, {1, 18, 4, 4}}), "1x8x4x4");
  EXPECT_TRUE(says(shape_of(op, {{1, 4, 7, 6}, {8, 4, 3, 3}, {1, 36, 4, 4}, {}, {1, 36, 4, 4}}), "mask"));
  op.offset_groups = 3;
  EXPECT_TRUE(says(shape_of(op, {{1, 4, 7, 6}, {8, 4, 3, 3}, {1, 54, 4, 4}}), "offset groups"));
  EXPECT_TRUE(says(shape_of(DeformConvOp{}, {{1, 4, 7}, {8, 4, 3}, {1, 3, 4}}), "spatial"));
}

}  // namespace
}  // namespace sparkle
