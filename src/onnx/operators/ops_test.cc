// Every form of operator through a file of one node: what its attributes become, and which forms are refused by name.
#include <gtest/gtest.h>

#include <cmath>

#include "onnx/test_model.h"

namespace sparkle {
namespace {
using testing::TestModel;

// x [2,6,8,8] and constants w, b through one node of `type`.
TestModel one(int64_t opset, const std::string& type, const std::vector<std::string>& inputs = {"x"},
              const std::vector<std::string>& outputs = {"y"}) {
  TestModel model(opset);
  model.input("x", {2, 6, 8, 8});
  model.constant("w", HostTensor::zeros(DType::f32, {6}));
  model.constant("i", HostTensor::of(DType::i64, {4}, std::vector<int64_t>{1, 1, 2, 2}));
  model.constant("s", HostTensor::of(DType::f32, {4}, std::vector<float>{1, 1, 2, 2}));
  model.constant("empty", HostTensor::zeros(DType::f32, {0}));
  for (const auto& name : outputs) model.output(name);
  model.node(type, inputs, outputs);
  return model;
}

// The parameters of the last operator as T.
template <class T>
T params(const TestModel& model) {
  const auto graph = model.read();
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  if (!graph.ok() || graph->ops.empty()) return {};
  const auto* value = std::get_if<T>(&graph->ops.back().params);
  const auto* unknown = std::get_if<UnknownOp>(&graph->ops.back().params);
  EXPECT_NE(value, nullptr) << (unknown ? unknown->why : "another kind");
  return value ? *value : T{};
}

std::string why(const TestModel& model) {
  const auto graph = model.read();
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  if (!graph.ok() || graph->ops.empty()) return "";
  const auto* unknown = std::get_if<UnknownOp>(&graph->ops.back().params);
  EXPECT_NE(unknown, nullptr);
  return unknown ? unknown->why : "";
}

std::string error_text(const TestModel& model) {
  const auto graph = model.read();
  EXPECT_FALSE(graph.ok());
  return graph.ok() ? "" : graph.error().message;
}

using Ints = std::vector<int64_t>;

TEST(OnnxOps, Conv) {
  const auto conv = params<ConvOp>(one(11, "Conv", {"x", "w", "w"})
                                       .with("kernel_shape", Ints{3, 5})
                                       .with("pads", Ints{1, 2, 3, 4})
                                       .with("strides", Ints{2, 1})
                                       .with("dilations", Ints{1, 2})
                                       .with("group", int64_t{2}));
  EXPECT_EQ(conv.kernel, (Dims{3, 5}));
  EXPECT_EQ(conv.pads_begin, (Dims{1, 2}));
  EXPECT_EQ(conv.pads_end, (Dims{3, 4}));
  EXPECT_EQ(conv.strides, (Dims{2, 1}));
  EXPECT_EQ(conv.dilations, (Dims{1, 2}));
  EXPECT_EQ(conv.groups, 2);
  EXPECT_FALSE(conv.transposed);
  EXPECT_EQ(params<ConvOp>(one(11, "Conv", {"x", "w"}).with("auto_pad", "SAME_LOWER")).auto_pad, AutoPad::same_lower);
  const auto up = params<ConvOp>(one(11, "ConvTranspose", {"x", "w"}).with("output_padding", Ints{1, 1}));
  EXPECT_TRUE(up.transposed);
  EXPECT_EQ(up.output_padding, (Dims{1, 1}));
  EXPECT_NE(error_text(one(11, "Conv", {"x", "w"}).with("strides", Ints{0, 1})).find("strides"), std::string::npos);
  EXPECT_NE(error_text(one(11, "Conv", {"x", "w"}).with("pads", Ints{1, 1, 1})).find("pads"), std::string::npos);
  EXPECT_NE(error_text(one(11, "Conv", {"x", "w"}).with("strides", Ints{1, 1}).with("pads", Ints{1, 1})).find("spatial"),
            std::string::npos);
  EXPECT_NE(error_text(one(11, "Conv", {"x", "w"}).with("auto_pad", "SIDEWAYS")).find("SIDEWAYS"), std::string::npos);
  EXPECT_NE(error_text(one(11, "Conv", {"x", "w"}).with("group", 1.5f)).find("group"), std::string::npos);
  EXPECT_NE(error_text(one(11, "Conv", {"x"})).find("lacks its input 1"), std::string::npos);
}

TEST(OnnxOps, Pools) {
  const auto pool = params<PoolOp>(one(12, "MaxPool").with("kernel_shape", Ints{3, 3}).with("ceil_mode", int64_t{1}));
  EXPECT_EQ(pool.kind, PoolKind::max);
  EXPECT_TRUE(pool.ceil_mode);
  const auto average =
      params<PoolOp>(one(12, "AveragePool").with("kernel_shape", Ints{2, 2}).with("count_include_pad", int64_t{1}));
  EXPECT_EQ(average.kind, PoolKind::average);
  EXPECT_TRUE(average.count_pad);
  EXPECT_EQ(params<PoolOp>(one(12, "LpPool").with("kernel_shape", Ints{2, 2}).with("p", int64_t{3})).p, 3);
  EXPECT_EQ(params<PoolOp>(one(1, "LpPool").with("kernel_shape", Ints{2, 2}).with("p", 1.0f)).p, 1);
  EXPECT_NE(error_text(one(12, "MaxPool")).find("kernel_shape"), std::string::npos);
  EXPECT_TRUE(params<ReduceOp>(one(12, "GlobalAveragePool")).all_spatial);
  EXPECT_EQ(params<ReduceOp>(one(12, "GlobalMaxPool")).kind, ReduceKind::max);
  EXPECT_EQ(params<ReduceOp>(one(12, "GlobalLpPool")).kind, ReduceKind::l2);
  EXPECT_EQ(params<ReduceOp>(one(12, "GlobalLpPool").with("p", int64_t{1})).kind, ReduceKind::l1);
  EXPECT_NE(why(one(12, "GlobalLpPool").with("p", int64_t{3})).find("'p'"), std::string::npos);
}

TEST(OnnxOps, PointwiseParameters) {
  const auto check = [](const TestModel& model, PointwiseOp op, double a, double b) {
    const auto node = params<PointwiseNode>(model);
    EXPECT_EQ(node.op, op);
    EXPECT_FLOAT_EQ(static_cast<float>(node.a), static_cast<float>(a)) << name_of(op);
    EXPECT_FLOAT_EQ(static_cast<float>(node.b), static_cast<float>(b)) << name_of(op);
  };
  check(one(6, "LeakyRelu"), PointwiseOp::leaky_relu, 0.01, 0);
  EXPECT_EQ(params<PointwiseNode>(one(6, "LeakyRelu")).a, static_cast<double>(0.01f))
      << "a default is float32, as attributes are";
  check(one(6, "Elu").with("alpha", 2.0f), PointwiseOp::elu, 2, 0);
  check(one(6, "Selu"), PointwiseOp::selu, 1.6732632, 1.0507010);
  check(one(12, "Celu"), PointwiseOp::celu, 1, 0);
  check(one(10, "ThresholdedRelu"), PointwiseOp::thresholded_relu, 1, 0);
  check(one(6, "HardSigmoid"), PointwiseOp::hard_sigmoid, 0.2, 0.5);
  check(one(6, "Clip").with("min", 0.0f).with("max", 6.0f), PointwiseOp::clip, 0, 6);
  check(one(20, "Gelu"), PointwiseOp::gelu, 0, 0);
  check(one(20, "Gelu").with("approximate", "tanh"), PointwiseOp::gelu_tanh, 0, 0);
  check(one(24, "Swish"), PointwiseOp::silu, 0, 0);
  check(one(24, "Swish").with("alpha", 2.0f), PointwiseOp::mul, 0, 0);
  check(one(13, "Mod", {"x", "w"}).with("fmod", int64_t{1}), PointwiseOp::mod, 0, 0);
  check(one(16, "Where", {"x", "x", "x"}), PointwiseOp::select, 0, 0);
  const auto clip = one(11, "Clip", {"x", "w", "w"}).read();
  ASSERT_TRUE(clip.ok());
  EXPECT_EQ(clip->ops[0].inputs.size(), 3u);
  EXPECT_TRUE(std::isinf(std::get<PointwiseNode>(clip->ops[0].params).b));
  EXPECT_NE(why(one(20, "Gelu").with("approximate", "guess")).find("approximate"), std::string::npos);
  check(one(13, "Mod", {"x", "w"}), PointwiseOp::floor_mod, 0, 0);
  EXPECT_NE(why(one(13, "Relu").with("slope", 1.0f)).find("slope"), std::string::npos);
}

TEST(OnnxOps, ChainsAndOldBroadcasting) {
  const auto sum = one(8, "Sum", {"x", "x", "x", "x"}).read();
  ASSERT_TRUE(sum.ok());
  EXPECT_EQ(sum->ops.size(), 3u);
  EXPECT_EQ(sum->ops[2].outputs[0], sum->outputs[0]);
  const auto mean = one(8, "Mean", {"x", "x"}).read();
  ASSERT_TRUE(mean.ok());
  ASSERT_EQ(mean->ops.size(), 2u);
  EXPECT_EQ(std::get<PointwiseNode>(mean->ops[1].params).a, 0.5);
  EXPECT_EQ(params<PointwiseNode>(one(8, "Max")).op, PointwiseOp::identity);
  // w [6] belongs to axis 1 of x [2,6,8,8]: it gets two trailing axes.
  const auto old = one(6, "Add", {"x", "w"}).with("broadcast", int64_t{1}).with("axis", int64_t{1}).read();
  ASSERT_TRUE(old.ok());
  ASSERT_EQ(old->ops.size(), 2u);
  EXPECT_EQ(std::get<ReshapeOp>(old->ops[0].params).target, (Dims{1, 2}));
  const auto slope = one(6, "PRelu", {"x", "w"}).read();
  ASSERT_TRUE(slope.ok());
  EXPECT_EQ(slope->ops.size(), 2u);
  for (int64_t axis : {int64_t{9}, int64_t{-9}, INT64_MIN, INT64_MAX})
    EXPECT_FALSE(one(6, "Add", {"x", "w"}).with("broadcast", int64_t{1}).with("axis", axis).read().ok());
}

TEST(OnnxOps, Normalisation) {
  EXPECT_FLOAT_EQ(
      static_cast<float>(
          params<BatchNormalizationOp>(one(9, "BatchNormalization", {"x", "w", "w", "w", "w"}).with("epsilon", 0.5f)).epsilon),
      0.5f);
  EXPECT_NE(why(one(6, "BatchNormalization", {"x", "w", "w", "w", "w"})).find("is_test"), std::string::npos);
  EXPECT_NE(why(one(7, "BatchNormalization", {"x", "w", "w", "w", "w"}).with("spatial", int64_t{0})).find("spatial"),
            std::string::npos);
  EXPECT_FLOAT_EQ(
      static_cast<float>(params<BatchNormalizationOp>(
                             one(14, "BatchNormalization", {"x", "w", "w", "w", "w"}).with("training_mode", int64_t{1}))
                             .epsilon),
      1e-5f);
  EXPECT_EQ(params<LayerNormalizationOp>(one(17, "LayerNormalization", {"x", "w"}).with("axis", int64_t{2})).axis, 2);
  const auto rms = params<LayerNormalizationOp>(one(23, "RMSNormalization", {"x", "w"}).with("axis", int64_t{1}));
  EXPECT_EQ(rms.axis, 1);
  EXPECT_FALSE(rms.centred);
  EXPECT_EQ(params<MeanVarianceNormalizationOp>(one(13, "MeanVarianceNormalization")).axes, (Dims{0, 2, 3}));
  EXPECT_EQ(params<LpNormalizationOp>(one(22, "LpNormalization").with("p", int64_t{1})).p, 1);
  EXPECT_NE(why(one(22, "LpNormalization").with("p", int64_t{3})).find("'p'"), std::string::npos);
  EXPECT_EQ(params<GroupNormalizationOp>(one(21, "GroupNormalization", {"x", "w", "w"}).with("num_groups", int64_t{3})).groups,
            3);
  EXPECT_EQ(params<LocalResponseOp>(one(13, "LRN").with("size", int64_t{5})).size, 5);
  EXPECT_TRUE(params<SoftmaxOp>(one(11, "Softmax")).to_the_end);
  EXPECT_EQ(params<SoftmaxOp>(one(13, "LogSoftmax")).axis, -1);
  EXPECT_TRUE(params<MatMulOp>(one(13, "Gemm", {"x", "w"}).with("transB", int64_t{1})).transpose_b);
  params<InstanceNormalizationOp>(one(6, "InstanceNormalization", {"x", "w", "w"}));
  // Statistics are f32 or bf16 whatever x is: each of them ends with a cast.
  const auto statistics = [](int64_t type) {
    return one(17, "LayerNormalization", {"x", "w"}, {"y", "mean", "deviation"}).with("stash_type", type);
  };
  for (const int64_t type : {1, 16}) {
    const auto graph = statistics(type).read();
    ASSERT_TRUE(graph.ok());
    for (size_t output : {1u, 2u})
      for (const Op& op : graph->ops)
        if (op.outputs[0] == graph->outputs[output]) {
          ASSERT_TRUE(std::holds_alternative<CastOp>(op.params)) << op.type;
          EXPECT_EQ(std::get<CastOp>(op.params).to, type == 1 ? DType::f32 : DType::bf16);
        }
    EXPECT_TRUE(std::holds_alternative<CastOp>(graph->ops[0].params));
  }
  EXPECT_NE(why(statistics(11)).find("stash_type"), std::string::npos);
}

TEST(OnnxOps, ShapesAndMovement) {
  EXPECT_EQ(params<ReduceOp>(one(13, "ReduceMean").with("axes", Ints{2, 3})).axes, (Dims{2, 3}));
  EXPECT_EQ(params<ConcatOp>(one(13, "Concat", {"x", "x"}).with("axis", int64_t{1})).axis, 1);
  EXPECT_EQ(params<SplitOp>(one(2, "Split", {"x"}, {"a", "b"}).with("axis", int64_t{1}).with("split", Ints{2, 4})).sizes,
            (Dims{2, 4}));
  EXPECT_EQ(params<SliceOp>(one(1, "Slice").with("starts", Ints{1}).with("ends", Ints{3})).axes, (Dims{0}));
  params<SliceOp>(one(10, "Slice", {"x", "i", "i"}));
  EXPECT_TRUE(params<ReshapeOp>(one(1, "Reshape").with("shape", Ints{0, -1})).target_given);
  EXPECT_TRUE(params<ReshapeOp>(one(14, "Reshape", {"x", "i"}).with("allowzero", int64_t{1})).allow_zero);
  EXPECT_EQ(params<ReshapeOp>(one(13, "Flatten")).target, (Dims{1}));
  EXPECT_EQ(params<ReshapeOp>(one(1, "Squeeze").with("axes", Ints{0})).form, ReshapeOp::Form::squeeze);
  EXPECT_EQ(params<ReshapeOp>(one(13, "Unsqueeze", {"x", "i"})).form, ReshapeOp::Form::unsqueeze);
  EXPECT_EQ(params<TransposeOp>(one(1, "Transpose").with("perm", Ints{0, 2, 3, 1})).permutation, (Dims{0, 2, 3, 1}));
  params<ExpandOp>(one(8, "Expand", {"x", "i"}));
  params<TileOp>(one(13, "Tile", {"x", "i"}));
  params<TileOp>(one(1, "Tile", {"x", "i", "i"}));
  EXPECT_NE(error_text(one(1, "Tile", {"x", "i"})).find("lacks its inputs 'tiles' and 'axis'"), std::string::npos);
  const auto pad = params<PadOp>(one(2, "Pad").with("pads", Ints{0, 0, 1, 2, 0, 0, 3, 4}).with("mode", "edge"));
  EXPECT_EQ(pad.begin, (Dims{0, 0, 1, 2}));
  EXPECT_EQ(pad.end, (Dims{0, 0, 3, 4}));
  EXPECT_EQ(pad.mode, PadMode::edge);
  EXPECT_FALSE(params<PadOp>(one(11, "Pad", {"x", "i"})).given);
  EXPECT_TRUE(params<DepthToSpaceOp>(one(11, "DepthToSpace").with("blocksize", int64_t{2}).with("mode", "CRD")).columns_first);
  EXPECT_EQ(params<SpaceToDepthOp>(one(1, "SpaceToDepth").with("blocksize", int64_t{2})).block, 2);
  EXPECT_FALSE(params<SpaceToDepthOp>(one(13, "SpaceToDepth").with("blocksize", int64_t{2})).columns_first);
  EXPECT_TRUE(params<SpaceToDepthOp>(one(24, "SpaceToDepth").with("blocksize", int64_t{2}).with("mode", "CRD")).columns_first);
  EXPECT_EQ(params<GatherOp>(one(13, "Gather", {"x", "i"}).with("axis", int64_t{-1})).axis, -1);
  EXPECT_EQ(params<PointwiseNode>(one(12, "Dropout")).op, PointwiseOp::identity);
  EXPECT_EQ(one(12, "Dropout", {"x"}, {"y", "mask"}).read()->ops.size(), 3u);
  EXPECT_EQ(params<CastOp>(one(13, "Cast").with("to", int64_t{10})).to, DType::f16);
  EXPECT_EQ(params<CastOp>(one(1, "Cast").with("to", "INT32")).to, DType::i32);
  EXPECT_EQ(params<CastOp>(one(19, "Cast").with("to", int64_t{20})).to, DType::f8e5m2fnuz);
  EXPECT_EQ(params<CastOp>(one(25, "Cast").with("to", int64_t{26})).to, DType::i2);
  EXPECT_TRUE(params<CastOp>(one(19, "Cast").with("to", int64_t{17})).saturate);
  EXPECT_FALSE(params<CastOp>(one(19, "Cast").with("to", int64_t{17}).with("saturate", int64_t{0})).saturate);
  EXPECT_EQ(params<CastOp>(one(24, "Cast").with("to", int64_t{24}).with("round_mode", "down")).rounding, PowerRounding::down);
  EXPECT_NE(why(one(24, "Cast").with("to", int64_t{24}).with("round_mode", "odd")).find("'odd'"), std::string::npos);
  EXPECT_NE(why(one(13, "Cast").with("to", int64_t{8})).find("STRING"), std::string::npos);
}

TEST(OnnxOps, Resize) {
  const auto resize = params<ResizeOp>(
      one(13, "Resize", {"x", "empty", "s"}).with("mode", "linear").with("coordinate_transformation_mode", "align_corners"));
  EXPECT_EQ(resize.params.mode, ResizeMode::linear);
  EXPECT_EQ(resize.params.coordinates, ResizeCoordinates::align_corners);
  const auto ten = one(10, "Resize", {"x", "s"}).read();
  ASSERT_TRUE(ten.ok());
  EXPECT_EQ(ten->ops[0].inputs.size(), 3u);
  EXPECT_EQ(ten->ops[0].inputs[1], kAbsent);
  EXPECT_EQ(params<ResizeOp>(one(10, "Resize", {"x", "s"})).params.nearest, ResizeNearest::per_axis);
  EXPECT_EQ(params<ResizeOp>(one(7, "Upsample").with("scales", std::vector<float>{1, 1, 2, 2})).given_scales.size(), 4u);
  EXPECT_EQ(params<ResizeOp>(one(1, "Upsample").with("height_scale", 2.0f).with("width_scale", 3.0f)).given_scales[3], 3);
  params<ResizeOp>(one(9, "Upsample", {"x", "s"}).with("mode", "linear"));
  EXPECT_NE(why(one(13, "Resize", {"x", "", "s"}).with("coordinate_transformation_mode", "odd")).find("odd"),
            std::string::npos);
  EXPECT_NE(error_text(one(13, "Resize", {"x"})).find("neither"), std::string::npos);
}

TEST(OnnxOps, Constants) {
  TestModel model(13);
  model.node("Constant", {}, {"a"}).with("value_floats", std::vector<float>{1, 2});
  model.node("Constant", {}, {"b"}).with("value_int", int64_t{7});
  model.output("a").output("b", {}, DType::i64);
  const auto graph = model.read();
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_TRUE(graph->ops.empty());
  EXPECT_EQ(graph->tensor(graph->outputs[0]).constant->data<float>()[1], 2);
  EXPECT_EQ(*graph->tensor(graph->outputs[1]).constant->data<int64_t>(), 7);
  EXPECT_EQ(params<ShapeOp>(one(15, "Shape").with("start", int64_t{1}).with("end", int64_t{3})).end, 3);
  EXPECT_EQ(params<ConstantOfShapeOp>(one(9, "ConstantOfShape", {"i"})).value, 0);
  auto filled = one(9, "ConstantOfShape", {"i"});
  put_tensor(HostTensor::of(DType::i32, {1}, std::vector<int32_t>{5}), "",
             *filled.attribute("value", ::onnx::AttributeProto::TENSOR).mutable_t());
  EXPECT_EQ(params<ConstantOfShapeOp>(filled).value, 5);
  auto half = one(9, "ConstantOfShape", {"i"});
  put_tensor(HostTensor::of(DType::f16, {1}, std::vector<uint16_t>{0x3e01}), "",
             *half.attribute("value", ::onnx::AttributeProto::TENSOR).mutable_t());
  EXPECT_EQ(params<ConstantOfShapeOp>(half).value, 1.5009765625);
  params<SizeOp>(one(13, "Size"));
  params<RangeOp>(one(11, "Range", {"w", "w", "w"}));
  EXPECT_NE(why(one(13, "Constant", {}).with("value_string", "text")).find("value_string"), std::string::npos);
  EXPECT_NE(why(one(13, "NonSense")).find("ONNX has no operator of this name"), std::string::npos);
  EXPECT_NE(why(one(13, "RandomNormalLike")).find("not supported"), std::string::npos);
}

}  // namespace
}  // namespace sparkle
