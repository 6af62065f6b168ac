// `sparkle run` with a picture into networks of 16-bit floats: the pixels become the input's type, the result is shown and
// written like that of any other network.
#include <nlohmann/json.hpp>

#include "command/command.h"
#include "vision/pictures/image.h"

namespace sparkle {
namespace {

class CommandFloatTypes : public testing::Command {
 protected:
  // One operator on a picture of this type.
  std::string model(DType type, const Dims& shape, const std::string& op_type, OpParams params, const std::string& name) const {
    Graph graph;
    GraphTensor x, y;
    x.name = "x", x.dtype = y.dtype = type, x.shape = shape, x.rank_known = true;
    x.known = shape[2] > 0;
    y.name = "y";
    graph.inputs = {graph.add(x)};
    Op op;
    op.name = "one", op.type = op_type, op.params = std::move(params), op.inputs = graph.inputs;
    if (op_type == "Resize") {
      op.inputs.push_back(kAbsent);
      op.inputs.push_back(graph.add_constant("scales", HostTensor::of<float>(DType::f32, {4}, {1, 1, 2, 2})));
    }
    op.outputs = graph.outputs = {graph.add(y)};
    graph.ops.push_back(op);
    return "'" + save(graph, name) + "'";
  }
  std::string picture() const { return "'" + (testing::kSource / "models/test_picture.png").string() + "'"; }
};

TEST_F(CommandFloatTypes, PicturesAreConverted) {
  for (DType type : {DType::f16, DType::bf16, DType::f64}) {
    const std::string name(name_of(type));
    const bool kept = type != DType::bf16;  // NumPy's files have no such type
    const auto said = sparkle("run --json " + model(type, {1, 3, 24, 32}, "Relu", PointwiseNode{PointwiseOp::relu}, name) +
                              " " + picture() + " --preset unit" + (kept ? " --output results_" + name : ""));
    ASSERT_EQ(said.status, 0) << said.err;
    const auto output = nlohmann::json::parse(said.out)["outputs"][0];
    EXPECT_EQ(output["dtype"], name);
    EXPECT_GE(output["min"].get<double>(), 0);
    EXPECT_LE(output["max"].get<double>(), 1);
    EXPECT_GT(output["max"].get<double>(), output["mean"].get<double>());
    if (!kept) continue;
    EXPECT_TRUE(read_image(path("results_" + name + "/y.png")).ok());
    EXPECT_FALSE(text_of("results_" + name + "/y.npy").empty());
  }
}

TEST_F(CommandFloatTypes, PicturesAreEnlarged) {
  const std::string network = model(DType::f16, {1, 3, -1, -1}, "Resize", ResizeOp{}, "resize");
  const auto said = sparkle("run " + network + " " + picture() + " --tile 64 --overlap 4 --output results");
  ASSERT_EQ(said.status, 0) << said.err;
  const auto original = read_image(testing::kSource / "models/test_picture.png");
  const auto enlarged = read_image(path("results/test_picture_upscaled.png"));
  ASSERT_TRUE(original.ok() && enlarged.ok());
  EXPECT_EQ(enlarged->width, 2 * original->width);
  // Nearest neighbours: every pixel is one of the original, but for the rounding to 11 bits.
  for (int y = 0; y < enlarged->height; y += 7)
    for (int x = 0; x < enlarged->width; x += 5)
      EXPECT_NEAR(*enlarged->at(x, y), *original->at(x / 2, y / 2), 1) << x << "," << y;
}

TEST_F(CommandFloatTypes, OfIntegersBytesTakePictures) {
  const auto network = [&](DType type, const std::string& name) {
    return model(type, {1, 3, 24, 32}, "Relu", PointwiseNode{PointwiseOp::relu}, name);
  };
  EXPECT_SAYS(refusal("run " + network(DType::i32, "integers") + " " + picture()), "does not take a picture");
  const testing::Said said = sparkle("run " + network(DType::u8, "bytes") + " " + picture());
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_SAYS(said.out, "values 0..255, bytes");
}

}  // namespace
}  // namespace sparkle
