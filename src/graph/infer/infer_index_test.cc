// Shapes of the operators that look for, read or write at places, and the sentences where inputs do not belong together.
#include "graph/test_graphs.h"

namespace sparkle::testing {
namespace {

void expect_sentence(const std::string& sentence, const char* what) {
  EXPECT_NE(sentence.find("Node 'n0'"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find(what), std::string::npos) << sentence;
}

std::string arg(const Dims& x, ArgOp op) {
  GraphBuilder b;
  return b.shape(b.op("ArgMax", op, {b.input(x)}));
}

TEST(InferIndex, Arg) {
  EXPECT_EQ(arg({2, 3, 4}, {false, -1, true, false}), "2x3x1");
  EXPECT_EQ(arg({2, 3, 4}, {true, 1, false, false}), "2x4");
  EXPECT_EQ(arg({5}, {false, 0, false, false}), "scalar");
  expect_sentence(arg({2, 0}, {false, 1, true, false}), "fewer than 1 elements along axis 1");
  expect_sentence(arg({2, 3}, {false, 2, true, false}), "axis 2 does not exist");
}

std::string top_k(const Dims& x, int64_t axis, int64_t k) {
  GraphBuilder b;
  const TensorId input = b.input(x);
  return b.shape(b.many("TopK", TopKOp{axis, -1, true}, {input, b.ints({k})}, 2)[1]);
}

TEST(InferIndex, TopK) {
  EXPECT_EQ(top_k({3, 7}, -1, 4), "3x4");
  EXPECT_EQ(top_k({3, 7}, 0, 0), "0x7");
  expect_sentence(top_k({3, 7}, 0, 4), "fewer than 4 elements along axis 0");
  expect_sentence(top_k({3, 7}, 0, -1), "k is -1");
}

TEST(InferIndex, Gathers) {
  const auto elements = [](const Dims& x, const Dims& indices, int64_t axis) {
    GraphBuilder b;
    const TensorId input = b.input(x);
    return b.shape(b.op("GatherElements", GatherElementsOp{axis}, {input, b.input(indices, DType::i64)}));
  };
  EXPECT_EQ(elements({3, 4}, {2, 9}, 1), "2x9");
  expect_sentence(elements({3, 4}, {4, 9}, 1), "larger than");
  expect_sentence(elements({3, 4}, {4}, 1), "should have rank 2");
  const auto tuples = [](const Dims& x, const Dims& indices, int64_t batch) {
    GraphBuilder b;
    const TensorId input = b.input(x);
    return b.shape(b.op("GatherND", GatherNDOp{batch}, {input, b.input(indices, DType::i64)}));
  };
  EXPECT_EQ(tuples({2, 3, 4}, {5, 2}, 0), "5x4");
  EXPECT_EQ(tuples({2, 3, 4}, {2, 5, 1}, 1), "2x5x4");
  EXPECT_EQ(tuples({2, 3}, {2}, 0), "scalar");
  expect_sentence(tuples({2, 3, 4}, {3, 5, 1}, 1), "differ in batch axis 0");
  expect_sentence(tuples({2, 3}, {5, 3}, 0), "tuples of 3");
}

TEST(InferIndex, Scatters) {
  const auto elements = [](const Dims& x, const Dims& indices, const Dims& updates) {
    GraphBuilder b;
    const TensorId input = b.input(x), places = b.input(indices, DType::i64);
    return b.shape(b.op("ScatterElements", ScatterElementsOp{0, ScatterReduction::none}, {input, places, b.input(updates)}));
  };
  EXPECT_EQ(elements({3, 4}, {5, 2}, {5, 2}), "3x4");
  expect_sentence(elements({3, 4}, {5, 2}, {5, 3}), "differ in shape");
  const auto tuples = [](const Dims& x, const Dims& indices, const Dims& updates) {
    GraphBuilder b;
    const TensorId input = b.input(x), places = b.input(indices, DType::i64);
    return b.shape(b.op("ScatterND", ScatterNDOp{}, {input, places, b.input(updates)}));
  };
  EXPECT_EQ(tuples({3, 4}, {5, 1}, {5, 4}), "3x4");
  expect_sentence(tuples({3, 4}, {5, 1}, {5, 3}), "should have the shape 5x4");
}

TEST(InferIndex, OneHotAndCrop) {
  const auto hot = [](const Dims& indices, int64_t axis, int64_t depth) {
    GraphBuilder b;
    const TensorId input = b.input(indices, DType::i64);
    return b.shape(b.op("OneHot", OneHotOp{axis, -1}, {input, b.ints({depth}), b.floats({2}, {0, 1})}));
  };
  EXPECT_EQ(hot({2, 3}, -1, 5), "2x3x5");
  EXPECT_EQ(hot({2, 3}, 0, 5), "5x2x3");
  expect_sentence(hot({2, 3}, 3, 5), "axis 3 does not exist");
  const auto crop = [](const Dims& x, const Dims& axes, const std::vector<int64_t>& shape) {
    GraphBuilder b;
    const TensorId input = b.input(x);
    return b.shape(b.op("CenterCropPad", CenterCropPadOp{axes, {}, false}, {input, b.ints(shape)}));
  };
  EXPECT_EQ(crop({3, 10, 8}, {1, 2}, {5, 9}), "3x5x9");
  EXPECT_EQ(crop({3, 10, 8}, {-1}, {2}), "3x10x2");
  expect_sentence(crop({3, 10}, {1}, {2, 3}), "2 entries for 1 axes");
}

// The most rows are planned for; what reads a tensor whose rows only the data tells is refused by name.
TEST(InferIndex, OpenRows) {
  GraphBuilder b;
  const TensorId boxes = b.input({1, 6, 4}), scores = b.input({1, 2, 6});
  const TensorId rows = b.op("NonMaxSuppression", NonMaxSuppressionOp{}, {boxes, scores, b.ints({3})});
  const auto bound = b.bound({rows});
  ASSERT_TRUE(bound.ok()) << bound.error().message;
  EXPECT_EQ(bound->tensor(bound->outputs[0]).shape.to_string(), "6x3");
  EXPECT_TRUE(bound->tensor(bound->outputs[0]).open);
  const TensorId cast = b.op("Cast", CastOp{DType::f32}, {rows});
  EXPECT_NE(b.shape(cast).find("Node 'n1' (Cast): its input 'n0_out' has a number of rows that only the data tells"),
            std::string::npos)
      << b.shape(cast);
}

}  // namespace
}  // namespace sparkle::testing
