// What families foresee of packed weights against what the CPU's kernels say.
#include <gtest/gtest.h>

#include "backends/cpu/cpu_backend.h"
#include "base/system/thread_pool.h"
#include "device/probe_cpu.h"
#include "families/loops/packed.h"
#include "networks/zoo.h"
#include "plan/plan.h"

namespace sparkle {
namespace {

TEST(PackedBytes, AreForeseenToTheByte) {
  const Device device = probe_cpu();
  const auto backend = cpu::make_cpu_backend(device, std::make_shared<ThreadPool>(1));
  int compared = 0;
  for (const char* name : {"resnet50", "mobilenetv2", "squeezenet1.1", "tiny_unet", "tiny_attention"})
    for (const char* algorithm : {"", "gemm", "gemm_f16", "gemm_bf16", "winograd2", "winograd4", "winograd6"}) {
      auto graph = zoo_network(name);
      ASSERT_TRUE(graph.ok());
      ASSERT_TRUE(simplify(*graph).ok());
      std::vector<InputBinding> bindings;
      for (TensorId id : graph->inputs) bindings.push_back({graph->tensor(id).shape, std::nullopt});
      auto bound = sparkle::bind(*graph, bindings);
      ASSERT_TRUE(bound.ok() && simplify(*bound).ok());
      PlanOptions options;
      options.algorithm = algorithm;
      const auto plan = make_plan(*bound, device, options);
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      for (const PlanStep& step : plan->steps) {
        const int64_t foreseen = packed_weight_bytes(step.stage, step.schedule, device);
        const bool constant =
            step.inputs.size() > 1 && plan->tensors[static_cast<size_t>(step.inputs[1])].kind == PlaceKind::constant;
        if (foreseen == 0 || !constant) continue;
        const auto kernel = backend->compile(step.stage, step.schedule, 2);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        EXPECT_EQ((*kernel)->packed_bytes(1), foreseen) << name << ", " << step.name << ", " << to_text(step.schedule);
        ++compared;
      }
    }
  EXPECT_GT(compared, 100);
}

}  // namespace
}  // namespace sparkle
