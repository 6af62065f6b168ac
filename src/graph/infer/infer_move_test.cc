#include <cmath>

#include "graph/test_graphs.h"

namespace sparkle {
namespace {
using testing::GraphBuilder;

std::string reshape(Dims x, std::vector<int64_t> target, bool allow_zero = false) {
  GraphBuilder b;
  ReshapeOp op;
  op.allow_zero = allow_zero;
  return b.shape(b.op("Reshape", op, {b.input(x), b.ints(std::move(target))}));
}
std::string view(ReshapeOp::Form form, Dims x, Dims axes, bool given = true) {
  GraphBuilder b;
  return b.shape(b.op("View", ReshapeOp{form, axes, false, given}, {b.input(x)}));
}
std::string slice(Dims x, std::vector<int64_t> starts, std::vector<int64_t> ends, std::vector<int64_t> axes,
                  std::vector<int64_t> steps) {
  GraphBuilder b;
  return b.shape(b.op("Slice", SliceOp{}, {b.input(x), b.ints(starts), b.ints(ends), b.ints(axes), b.ints(steps)}));
}

TEST(InferReshape, ZeroMinusOneAllowZero) {
  EXPECT_EQ(reshape({2, 3, 4}, {0, -1}), "2x12");
  EXPECT_EQ(reshape({2, 3, 4}, {4, 0, -1}), "4x3x2");
  EXPECT_EQ(reshape({0, 3, 4}, {3, 4, 0}, true), "3x4x0");
  EXPECT_EQ(reshape({1}, {}), "scalar");
  EXPECT_EQ(reshape({2, 3, 4}, {5, -1}), "Node 'n0' (Reshape): 'x0' of shape 2x3x4 cannot be reshaped to 5x-1.");
  EXPECT_NE(reshape({2, 3}, {-1, -1}).find("leaves two sizes open"), std::string::npos);
  EXPECT_NE(reshape({2, 3}, {6, 1, 0}).find("copies axis 2"), std::string::npos);
  EXPECT_NE(reshape({2, 3}, {INT64_MAX, INT64_MAX, INT64_MAX}).find("exceeds"), std::string::npos);
  EXPECT_NE(reshape({1}, {1, 1, 1, 1, 1, 1, 1, 1, 1}).find("more than 8"), std::string::npos);
}

TEST(InferReshape, FlattenSqueezeUnsqueeze) {
  using Form = ReshapeOp::Form;
  EXPECT_EQ(view(Form::flatten, {2, 3, 4}, {0}), "1x24");
  EXPECT_EQ(view(Form::flatten, {2, 3, 4}, {-1}), "6x4");
  EXPECT_EQ(view(Form::flatten, {2, 3, 4}, {3}), "24x1");
  EXPECT_EQ(view(Form::squeeze, {1, 3, 1, 5}, {}, false), "3x5");
  EXPECT_EQ(view(Form::squeeze, {1, 3, 1, 5}, {-2}), "1x3x5");
  EXPECT_NE(view(Form::squeeze, {1, 3, 1, 5}, {1}).find("not of size 1"), std::string::npos);
  EXPECT_EQ(view(Form::unsqueeze, {3, 4}, {0, -1}), "1x3x4x1");
  EXPECT_NE(view(Form::unsqueeze, {3, 4}, {5}).find("axis 5 does not exist"), std::string::npos);
}

TEST(InferSlice, ClampsAndNegativeSteps) {
  EXPECT_EQ(slice({20, 10, 5}, {0, 0}, {3, 10}, {0, 1}, {1, 1}), "3x10x5");
  EXPECT_EQ(slice({20, 10, 5}, {1}, {1000}, {1}, {1}), "20x9x5");
  EXPECT_EQ(slice({20, 10, 5}, {1000}, {2000}, {1}, {1}), "20x0x5");
  EXPECT_EQ(slice({20, 10, 5}, {20, 10, 4}, {0, 0, 1}, {0, 1, 2}, {-1, -3, -2}), "19x3x2");
  EXPECT_EQ(slice({5}, {-1}, {INT64_MIN}, {0}, {-1}), "5");
  EXPECT_EQ(slice({5}, {0}, {-1}, {-1}, {2}), "2");
  EXPECT_NE(slice({5}, {0}, {5}, {0}, {0}).find("a step of 0"), std::string::npos);
}

TEST(InferSlice, ResolvedFormReadsTheSameAgain) {
  GraphBuilder b;
  auto g = b.bound({b.op("Slice", SliceOp{}, {b.input({4, 6}), b.ints({-1}), b.ints({-100}), b.ints({1}), b.ints({-2})})});
  ASSERT_TRUE(g.ok());
  const auto& op = std::get<SliceOp>(g->ops[0].params);
  EXPECT_EQ(op.starts, (Dims{0, 5}));
  EXPECT_EQ(op.steps, (Dims{1, -2}));
  EXPECT_EQ(g->ops[0].inputs.size(), 1u);
  const auto again = sparkle::bind(*g, {{{4, 6}, std::nullopt}});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(to_text(*again), to_text(*g));
}

TEST(InferSplit, EvenUnevenAndGiven) {
  const auto split = [](int parts, std::vector<int64_t> sizes) {
    GraphBuilder b;
    std::vector<TensorId> inputs{b.input({2, 7})};
    if (!sizes.empty()) inputs.push_back(b.ints(sizes));
    const auto g = b.bound(b.many("Split", SplitOp{-1, {}}, inputs, parts));
    if (!g.ok()) return g.error().message;
    std::string text;
    for (TensorId id : g->outputs) text += g->tensor(id).shape.to_string() + " ";
    return text;
  };
  EXPECT_EQ(split(3, {}), "2x3 2x3 2x1 ");
  EXPECT_EQ(split(2, {2, 5}), "2x2 2x5 ");
  EXPECT_NE(split(2, {2, 4}).find("do not cut axis 1"), std::string::npos);
  EXPECT_NE(split(2, {-1, 8}).find("do not cut"), std::string::npos);
}

TEST(InferMove, TransposeTileExpandConcatGather) {
  GraphBuilder b;
  const TensorId x = b.input({2, 3, 4});
  EXPECT_EQ(b.shape(b.op("Transpose", TransposeOp{}, {x})), "4x3x2");
  EXPECT_EQ(b.shape(b.op("Transpose", TransposeOp{{1, 0, 2}}, {x})), "3x2x4");
  EXPECT_NE(b.shape(b.op("Transpose", TransposeOp{{1, 1, 2}}, {x})).find("no permutation"), std::string::npos);
  EXPECT_EQ(b.shape(b.op("Tile", TileOp{}, {x, b.ints({1, 2, 3})})), "2x6x12");
  EXPECT_EQ(b.shape(b.op("Expand", ExpandOp{}, {x, b.ints({5, 1, 3, 1})})), "5x2x3x4");
  EXPECT_NE(b.shape(b.op("Expand", ExpandOp{}, {x, b.ints({2, 5, 4})})).find("does not broadcast"), std::string::npos);
  EXPECT_EQ(b.shape(b.op("Concat", ConcatOp{-1}, {x, x, x})), "2x3x12");
  EXPECT_NE(b.shape(b.op("Concat", ConcatOp{0}, {x, b.input({2, 4, 4})})).find("does not line up"), std::string::npos);
  EXPECT_EQ(b.shape(b.op("Gather", GatherOp{1}, {x, b.ints({0, 2})})), "2x2x4");
  const TensorId scalar = b.graph.add_constant("i", HostTensor::of<int64_t>(DType::i64, {}, {1}));
  EXPECT_EQ(b.shape(b.op("Gather", GatherOp{1}, {x, scalar})), "2x4");
  const TensorId image = b.input({1, 8, 2, 3});
  EXPECT_EQ(b.shape(b.op("DepthToSpace", DepthToSpaceOp{2}, {image})), "1x2x4x6");
  EXPECT_NE(b.shape(b.op("DepthToSpace", DepthToSpaceOp{3}, {image})).find("do not divide by 9"), std::string::npos);
  EXPECT_EQ(b.shape(b.op("SpaceToDepth", SpaceToDepthOp{1}, {image})), "1x8x2x3");
  EXPECT_NE(b.shape(b.op("Tile", TileOp{}, {x, b.ints({INT64_MAX, 2, 3})})).find("exceed"), std::string::npos);
}

TEST(InferPad, AxesNegativeAndReflect) {
  GraphBuilder b;
  const TensorId x = b.input({1, 2, 5, 6});
  EXPECT_EQ(b.shape(b.op("Pad", PadOp{}, {x, b.ints({0, 0, 1, 2, 0, 0, 3, 4})})), "1x2x9x12");
  EXPECT_EQ(b.shape(b.op("Pad", PadOp{}, {x, b.ints({-1, 1, 2, -3}), kAbsent, b.ints({-1, 2})})), "1x2x3x7");
  PadOp reflect{PadMode::reflect, {0, 0, 5, 0}, {0, 0, 0, 0}, 0, true};
  EXPECT_NE(b.shape(b.op("Pad", reflect, {x})).find("too short to reflect"), std::string::npos);
  EXPECT_NE(b.shape(b.op("Pad", PadOp{}, {x, b.ints({0, 0, -4, 0, 0, 0, -2, 0})})).find("would be negative"),
            std::string::npos);
}

TEST(InferResize, ScalesSizesAxesAndAspect) {
  GraphBuilder b;
  const TensorId x = b.input({1, 2, 4, 6});
  EXPECT_EQ(b.shape(b.op("Resize", ResizeOp{}, {x, kAbsent, b.floats({4}, {1, 1, 2, 0.6f})})), "1x2x8x3");
  EXPECT_EQ(b.shape(b.op("Upsample", ResizeOp{}, {x, b.floats({4}, {1, 1, 2, 3})})), "1x2x8x18");
  EXPECT_EQ(b.shape(b.op("Resize", ResizeOp{}, {x, kAbsent, kAbsent, b.ints({1, 2, 9, 7})})), "1x2x9x7");
  ResizeOp op;
  op.axes = {3, 2};
  EXPECT_EQ(b.shape(b.op("Resize", op, {x, kAbsent, kAbsent, b.ints({3, 8})})), "1x2x8x3");
  op.axes = {2, 3}, op.keep = ResizeOp::Keep::not_larger;
  EXPECT_EQ(b.shape(b.op("Resize", op, {x, kAbsent, kAbsent, b.ints({7, 8})})), "1x2x5x8");
  op.keep = ResizeOp::Keep::not_smaller;
  EXPECT_EQ(b.shape(b.op("Resize", op, {x, kAbsent, kAbsent, b.ints({7, 8})})), "1x2x7x11");
  EXPECT_NE(b.shape(b.op("Resize", ResizeOp{}, {x})).find("neither scales nor sizes"), std::string::npos);
}

TEST(InferResize, NumbersThatMakeNoSize) {
  GraphBuilder b;
  const TensorId x = b.input({4, 1 << 20}), scales = b.floats({2}, {1, 2});
  ResizeOp crop;
  crop.params.coordinates = ResizeCoordinates::tf_crop;
  EXPECT_NE(b.shape(b.op("Resize", crop, {x, b.floats({4}, {0, 0, 1, INFINITY}), scales})).find("not all finite numbers"),
            std::string::npos);
  EXPECT_NE(b.shape(b.op("Resize", crop, {x, b.floats({4}, {0, 0, 1, 1e30f}), scales})).find("scaled by"), std::string::npos);
  EXPECT_EQ(b.shape(b.op("Resize", crop, {x, b.floats({4}, {0, 1, 1, 0}), scales})), "4x0");
  ResizeOp keep;
  keep.keep = ResizeOp::Keep::not_smaller;
  EXPECT_NE(b.shape(b.op("Resize", keep, {x, kAbsent, kAbsent, b.ints({int64_t{1} << 46, 8})})).find("addressed"),
            std::string::npos);
}

// Strides are products of the other axes: an empty tensor's are bounded too.
TEST(InferShapes, EmptyTensorsWithEndlessAxes) {
  GraphBuilder b;
  const TensorId one = b.input({1});
  const auto expanded = [&](std::vector<int64_t> sizes) { return b.shape(b.op("Expand", ExpandOp{}, {one, b.ints(sizes)})); };
  EXPECT_EQ(expanded({0, 1 << 20, 1 << 20}), "0x1048576x1048576");
  EXPECT_NE(expanded({0, int64_t{1} << 40, int64_t{1} << 40}).find("more than can be addressed"), std::string::npos);
  EXPECT_NE(expanded({int64_t{1} << 40, int64_t{1} << 40, 0}).find("more than can be addressed"), std::string::npos);
}

}  // namespace
}  // namespace sparkle
