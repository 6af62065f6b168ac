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

}  // namespace
}  // namespace sparkle
