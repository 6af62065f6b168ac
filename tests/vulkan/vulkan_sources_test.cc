// Golden sources: what drivers of described GPUs would be given for a fixed set of networks, one text per device in
// tests/golden_sources. scripts/update_golden_plans writes them anew; docs/decisions/0013-vulkan.md says how to read them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "backends/vulkan/sources.h"
#include "backends/self_tests/self_tests.h"
#include "device/device_json.h"
#include "backends/vulkan/kernels/kernel_needs.h"
#include "onnx/reader.h"
#include "networks/zoo.h"
#include "plan/choose/choose.h"
#include "plan/plan_testing.h"
#include "stored_text.h"

namespace sparkle {
namespace {

constexpr const char* kDevices[] = {"lavapipe", "radeon-rx-6900-xt", "radeon-rx-7900-xtx", "radeon-rx-vega-64",
                                    "arc-a770", "rtx-3090-vulkan",   "rtx-4090-vulkan",    "h200-vulkan"};
struct Network {
  const char* name;
  double accuracy;  // matrix units round their operands: only networks that allow it have them
};
const Network kNetworks[] = {{"resnet50", PlanOptions{}.accuracy},
                             {"resnet50", 1e-3},
                             {"mobilenetv2", PlanOptions{}.accuracy},
                             {"tiny_detector", PlanOptions{}.accuracy},
                             {"tiny_attention", PlanOptions{}.accuracy},
                             {"qlinearconv_depthwise", PlanOptions{}.accuracy},
                             {"qlinearconv_pointwise", PlanOptions{}.accuracy}};

Result<Graph> graph_of(const std::string& name) {
  const auto zoo = zoo_names();
  auto graph = std::find(zoo.begin(), zoo.end(), name) != zoo.end()
                   ? zoo_network(name)
                   : read_onnx(SPARKLE_SOURCE_DIR "/tests/vectors/" + name + "/model.onnx");
  if (!graph.ok()) return graph;
  return testing::ready(std::move(*graph));
}

struct Block {
  std::string text, first;
  int steps = 0;
};

// Transforms beside a product, sums of its parts: they take less than the step's hungriest kernel.
bool beside(std::string_view shader) {
  return shader.starts_with("winograd_") || shader.starts_with("fft_") || shader.starts_with("gemm_reduce");
}

std::string block_of(const vulkan::KernelSource& source, const TileNeeds& needs) {
  const uint32_t threads = source.group[0] * source.group[1] * source.group[2];
  std::string text = source.shader + "\n  group " + std::to_string(threads);
  if (source.subgroup) text += " subgroup " + std::to_string(source.subgroup);
  if (!beside(source.shader)) {
    EXPECT_EQ(threads, static_cast<uint32_t>(needs.threads)) << source.shader;
    if (needs.shared_bytes > 0) text += " shared " + std::to_string(needs.shared_bytes);
    text += " registers " + std::to_string(needs.registers);
  }
  std::string line;
  for (const auto& constant : source.constants) {
    const std::string word =
        " " + constant.name.substr(constant.name.starts_with("k") ? 1 : 0) + "=" + std::to_string(constant.value);
    if (line.size() + word.size() > 120) text += "\n " + line, line.clear();
    line += word;
  }
  return text + (line.empty() ? "" : "\n " + line) + "\n";
}

// Kernels of a network on a device, each once; printed programs go into `programs`.
Result<std::string> kernels_of(const Graph& graph, const Network& network, const Device& device,
                               std::map<std::string, std::string>& programs) {
  PlanOptions options;
  options.accuracy = network.accuracy;
  SPARKLE_TRY(plan, make_plan(graph, device, options));
  std::vector<Block> blocks;  // in the order of their first steps
  for (const PlanStep& step : plan.steps) {
    if (!has_kernel(step)) continue;
    uint32_t constants = 0;
    for (size_t i = 0; i < step.inputs.size() && i < 32; ++i)
      if (plan.tensors[static_cast<size_t>(step.inputs[i])].kind == PlaceKind::constant) constants |= 1u << i;
    EXPECT_FALSE(stages_of(self_test_of(step.stage, step.schedule)).empty()) << step.name << " has no self-test";
    SPARKLE_TRY(sources, vulkan::sources_of(step.stage, step.schedule, device, constants));
    for (const vulkan::KernelSource& source : sources) {
      const std::string text = block_of(source, vulkan::needs_of(step.stage, step.schedule));
      if (!source.program.empty()) programs[source.shader] = source.program;
      auto at = std::find_if(blocks.begin(), blocks.end(), [&](const Block& b) { return b.text == text; });
      if (at == blocks.end()) at = blocks.insert(blocks.end(), {text, step.name, 0});
      ++at->steps;
    }
  }
  char accuracy[32];
  std::snprintf(accuracy, sizeof accuracy, "%g", network.accuracy);
  std::string text =
      "\n== " + std::string(network.name) + " at accuracy " + accuracy + ": " + std::to_string(blocks.size()) + " kernels\n";
  for (const Block& b : blocks)
    text += b.text + "  " + std::to_string(b.steps) + (b.steps == 1 ? " step: " : " steps, first ") + b.first + "\n";
  return text;
}

TEST(GoldenSources, AreWhatIsStored) {
  std::map<std::string, std::string> texts;
  std::map<std::string, std::map<std::string, std::string>> programs;
  for (const Network& network : kNetworks) {
    const auto graph = graph_of(network.name);
    ASSERT_TRUE(graph.ok()) << network.name << ": " << graph.error().message;
    for (const char* name : kDevices) {
      const Device device = testing::device_named(name);
      const auto text = kernels_of(*graph, network, device, programs[name]);
      ASSERT_TRUE(text.ok()) << network.name << " on " << name << ": " << text.error().message;
      texts[name] += *text;
    }
  }
  for (const char* name : kDevices) {
    std::string now = "kernels for " + testing::device_named(name).name + "\n" + texts[name];
    for (const auto& [shader, program] : programs[name]) now += "\n== " + shader + "\n" + program;
    const std::string file = SPARKLE_SOURCE_DIR "/tests/golden_sources/" + std::string(name) + ".txt";
    testing::expect_stored(file, now);
  }
}

}  // namespace
}  // namespace sparkle
