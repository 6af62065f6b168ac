// Planning keeps nothing as long as the tensors that it plans: shapes near what can be addressed are planned in little memory.
#include "plan/plan_testing.h"

namespace sparkle {
namespace {
using testing::device_named;
using testing::GraphBuilder;
using testing::ready;

constexpr int64_t kLong = int64_t{1} << 40;  // elements: a table along such an axis would be terabytes

TEST(LargeShapes, ResizedAxes) {
  const Device device = device_named("epyc-zen4");
  for (const ResizeMode mode : {ResizeMode::nearest, ResizeMode::linear, ResizeMode::cubic})
    for (const bool antialias : {false, true})
      for (const bool longer : {false, true}) {
        GraphBuilder b;
        ResizeOp op;
        op.params.mode = mode;
        op.params.antialias = antialias;
        const TensorId x = b.input({1, 1, 2, longer ? 2 : kLong});
        const TensorId y = b.op("Resize", op, {x, kAbsent, kAbsent, b.ints({1, 1, 2, longer ? kLong : 2})});
        const auto graph = ready(b.done(y));
        ASSERT_TRUE(graph.ok()) << graph.error().message;
        const auto plan = make_plan(*graph, device);
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        EXPECT_EQ(plan->tensors[static_cast<size_t>(plan->outputs[0])].desc.shape[3], longer ? kLong : 2);
      }
}

Result<Plan> plan_of(GraphBuilder& b, TensorId y) {
  SPARKLE_TRY(graph, ready(b.done(y)));
  return make_plan(graph, device_named("epyc-zen4"));
}

TEST(LargeShapes, Windows) {
  const auto planned = [](const Dims& x, const Dims& w, ConvOp op) {
    GraphBuilder b;
    const TensorId image = b.input(x);
    const auto plan = plan_of(b, b.op("Conv", op, {image, b.input(w)}));
    return plan.ok() ? std::string() : plan.error().message;
  };
  ConvOp conv;
  EXPECT_EQ(planned({1, 1, 2, kLong}, {1, 1, 1, 3}, conv), "");
  EXPECT_EQ(planned({1, 1, 2, int64_t{1} << 31}, {1, 1, 1, int64_t{1} << 30}, conv), "");
  EXPECT_EQ(planned({1, 4, 7, kLong}, {4, 4, 7, 7}, conv), "");
  conv.groups = 8;
  EXPECT_EQ(planned({1, 8, 1, kLong}, {8, 1, 1, 3}, conv), "");
  ConvOp transposed;
  transposed.transposed = true;
  transposed.strides = {1, 64};
  EXPECT_EQ(planned({1, 1, 2, kLong / 64}, {1, 1, 1, 3}, transposed), "");
  transposed.strides = {1, 1 << 20};
  const std::string said = planned({1, 1, 2, 1024}, {1, 1, 1, 3}, transposed);
  EXPECT_NE(said.find("'n0'"), std::string::npos) << said;

  GraphBuilder b;
  PoolOp pool;
  pool.kernel = {1, 5};
  const auto plan = plan_of(b, b.op("MaxPool", pool, {b.input({1, 8, 1, kLong})}));
  EXPECT_TRUE(plan.ok()) << plan.error().message;
}

// Each tensor can be addressed, all together cannot.
TEST(LargeShapes, TheSumOfTheTensorsIsChecked) {
  GraphBuilder b;
  TensorId x = b.input({int64_t{1} << 45});
  for (int i = 0; i < (1 << 13) + 1; ++i) b.graph.outputs.push_back(b.pointwise(PointwiseOp::exp, {x}));
  const auto graph = ready(b.graph);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto plan = make_plan(*graph, device_named("epyc-zen4"));
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().message.find("more in all than can be addressed"), std::string::npos) << plan.error().message;
}

}  // namespace
}  // namespace sparkle
