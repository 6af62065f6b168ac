// Golden plans: the plan of each network on each described machine, one line per step, compared with tests/golden_plans. A
// refactoring leaves them alone, a change of the planner shows in their diff. scripts/update_golden_plans writes them anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "device/as_measured_testing.h"
#include "device/device_json.h"
#include "device/estimate.h"
#include "families/values/epilogue.h"
#include "families/gemm/gemm.h"
#include "onnx/reader.h"
#include "networks/zoo.h"
#include "plan/choose/choose.h"
#include "plan/plan_testing.h"
#include "networks/golden_networks.h"
#include "stored_text.h"

namespace sparkle {
namespace {

const std::string kFolder = SPARKLE_SOURCE_DIR "/tests/golden_plans/";
constexpr const char* kNetworks[] = {"resnet50",         "mobilenetv2",   "squeezenet1.1",  "unet",
                                     "upscale2x",        "preactivation", "resnext",        "ssd_extras",
                                     "replknet",         "tiny_detector", "tiny_attention", "mobilenetv2_f16",
                                     "mobilenetv2_bf16", "halves",        "srresnet",       "decoding"};
// Single operators of tests/vectors, for the families that no network here has.
constexpr const char* kOperators[] = {
    "scatterelements_add",       "topk_smallest",         "cumsum_reverse",         "trilu_upper",
    "nonmaxsuppression_corners", "rotaryembedding_4d",    "gridsample_linear",      "deformconv_groups",
    "qlinearconv_depthwise",     "qlinearconv_pointwise", "quantizelinear_channels"};
constexpr const char* kDevices[] = {"epyc-zen4", "xeon-emr", "ryzen-zen3-laptop", "graviton3-neoverse-v1",
                                    "radeon-rx-7900-xtx"};
// One of each architecture besides, for networks of dense and of depthwise layers and of large filters.
constexpr const char* kGpus[] = {"radeon-rx-6900-xt", "radeon-rx-vega-64", "arc-a770", "rtx-3090-vulkan",
                                 "rtx-4090-vulkan",   "h200-vulkan",       "lavapipe"};
constexpr const char* kGpuNetworks[] = {"resnet50", "mobilenetv2", "replknet"};
// On tensors of 16 bits: where these stay so, with matrix units and without.
constexpr const char* kFp16Gpus[] = {"radeon-rx-7900-xtx", "radeon-rx-vega-64", "h200-vulkan"};
constexpr const char* kFp16Networks[] = {"mobilenetv2_halves"};

// NVIDIA's cards by the kernels that CUDA has, as a data sheet describes them and as probes measure them.
constexpr const char* kCuda[] = {"h200", "a100", "rtx-3090"};
constexpr const char* kCudaNetworks[] = {
    "resnet50",       "mobilenetv2_halves",    "resnet50_halves",       "resnet50_n32_halves",     "unet",
    "tiny_attention", "qlinearconv_depthwise", "qlinearconv_pointwise", "quantizelinear_channels", "bytes",
    "bfloats",        "bfloats_n32",           "long_attention",        "network_float8"};
// Single operators besides, and layers of bytes with a group for each channel, whose kernels CUDA chooses in none of these.
constexpr const char* kCudaOperators[] = {"resize_cubic_half_pixel", "argmax_default", "depthwise_bytes"};
// As a probe would measure the card: fp32, fp16, bf16 and bytes.
constexpr const char* kCudaMeasured[] = {"resnet50", "resnet50_n32_halves", "bfloats_n32", "bytes"};

// What tile registers of CPUs are for, on a machine that has them and on one without.
constexpr const char* kTileNetworks[] = {"bytes", "bfloats"};
constexpr const char* kTileDevices[] = {"xeon-emr", "epyc-zen4"};

// GPUs as their driver describes them and Sparkle's probes measure them: what a user's machine is planned by.
constexpr const char* kMeasured[] = {"h200-vulkan", "rtx-3090-vulkan", "radeon-rx-7900-xtx", "arc-a770"};
constexpr const char* kMeasuredNetworks[] = {"resnet50"};

Result<Graph> network(const std::string& name) {
  if (name == "few_channels") return testing::ready(few_channels());
  if (name == "halves") return testing::ready(narrow_block("halves", DType::f16));
  if (name == "bfloats") return testing::ready(narrow_block("bfloats", DType::bf16));
  if (name == "bfloats_n32") return testing::ready(narrow_block("bfloats_n32", DType::bf16, 32));
  if (name == "bytes") return testing::ready(bytes());
  if (name == "depthwise_bytes") return testing::ready(depthwise_bytes());
  if (name == "long_attention") return testing::ready(long_attention());
  if (name == "decoding") return testing::ready(decoding());
  if (name == "preactivation") return testing::ready(preactivation());
  if (name == "resnext") return testing::ready(resnext());
  if (name == "ssd_extras") return testing::ready(ssd_extras());
  if (name == "srresnet") return testing::ready(srresnet());
  const bool single = name.starts_with("network_") ||  // of tests/vectors too
                      std::find(std::begin(kOperators), std::end(kOperators), name) != std::end(kOperators) ||
                      std::find(std::begin(kCudaOperators), std::end(kCudaOperators), name) != std::end(kCudaOperators);
  const std::string cast = name.ends_with("_f16")      ? "_f16"
                           : name.ends_with("_bf16")   ? "_bf16"
                           : name.ends_with("_halves") ? "_halves"
                                                       : "";
  constexpr std::string_view kBatch = "_n32";
  std::string plain = name.substr(0, name.size() - cast.size());
  const bool batch = plain.ends_with(kBatch);
  if (batch) plain.resize(plain.size() - kBatch.size());
  Result<Graph> graph = single                ? read_onnx(SPARKLE_SOURCE_DIR "/tests/vectors/" + name + "/model.onnx")
                        : name == "upscale2x" ? read_onnx(SPARKLE_SOURCE_DIR "/models/upscale2x.onnx")
                                              : zoo_network(plain);
  if (!graph.ok()) return graph;
  if (!cast.empty()) graph->name = name;
  if (batch)
    for (TensorId id : graph->inputs) graph->tensor(id).shape[0] = 32;
  if (cast == "_halves") cast_tensors(*graph);
  else if (!cast.empty()) cast_weights(*graph, cast == "_f16" ? DType::f16 : DType::bf16);
  SPARKLE_CHECK(simplify(*graph));
  std::vector<InputBinding> bindings;
  for (TensorId id : graph->inputs) {
    Dims shape = graph->tensor(id).shape;
    constexpr int64_t kOpen[] = {1, 3, 270, 480};
    for (int i = 0; i < shape.size() && i < 4; ++i) shape[i] = shape[i] < 0 ? kOpen[i] : shape[i];
    bindings.push_back({shape, std::nullopt});
  }
  SPARKLE_TRY(bound, sparkle::bind(*graph, bindings));
  SPARKLE_CHECK(simplify(bound));
  return bound;
}

// One network at a time stays in memory: the tests run network by network.
const Graph& cached_network(const std::string& name) {
  static std::pair<std::string, Graph> last;
  if (last.first != name) {
    auto graph = network(name);
    EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
    last = {name, graph.ok() ? std::move(*graph) : Graph{}};
  }
  return last.second;
}

std::string digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string operand(const Plan& plan, int tensor, const TensorDesc& desc) {
  const PlanTensor& t = plan.tensors[static_cast<size_t>(tensor)];
  std::string text(name_of(t.kind));
  text += t.kind == PlaceKind::arena      ? "@" + std::to_string(t.offset)
          : t.kind == PlaceKind::constant ? ""
                                          : std::to_string(t.index);
  text += ":" + desc.shape.to_string() + ":" + name_of(desc.shape, desc.layout);
  return desc.layout.offset != 0 ? text + "+" + std::to_string(desc.layout.offset) : text;
}

// What matters of a plan, without weights and nodes: short enough to be read in a diff.
std::string golden_text(const Plan& plan) {
  std::string text = "plan of " + plan.model + " on " + plan.device + "\n";
  text += "arena " + std::to_string(plan.arena_bytes) + " constants " + std::to_string(plan.constant_bytes());
  text += plan.calibrated ? " predicted_ms " : " bound_ms ";
  text += digits(plan.predicted_seconds() * 1e3) + "\n";
  for (const PlanStep& step : plan.steps) {
    text += step.name + " | " + step.algorithm + " | ";
    if (const auto problem = from_text<Problem>(step.problem); problem.ok()) {
      text += short_name(*problem) + " {" + to_text(problem->epilogue) + "}";
    } else {
      text += to_text(step.stage.params);
    }
    text += " | " + to_text(step.schedule) + " |";
    for (size_t i = 0; i < step.inputs.size(); ++i) text += " " + operand(plan, step.inputs[i], step.stage.inputs[i]);
    text += " ->";
    for (size_t i = 0; i < step.outputs.size(); ++i) text += " " + operand(plan, step.outputs[i], step.stage.outputs[i]);
    text += " | " + digits(step.cost.seconds * 1e6) + " us " + step.cost.bound + "\n";
  }
  return text;
}

Result<Plan> plan_of(const std::string& network_name, const std::string& device_name, const PlanOptions& options = {}) {
  SPARKLE_TRY(device, load_device(SPARKLE_SOURCE_DIR "/devices/" + device_name + ".json"));
  return make_plan(cached_network(network_name), device, options);
}

std::vector<const char*> all_names() {
  std::vector<const char*> names(std::begin(kNetworks), std::end(kNetworks));
  names.insert(names.end(), std::begin(kOperators), std::end(kOperators));
  return names;
}

struct Golden {
  const char *network, *device;
};
std::vector<Golden> all_plans() {
  std::vector<Golden> plans;
  for (const char* name : all_names())
    for (const char* device : kDevices) plans.push_back({name, device});
  for (const char* name : kGpuNetworks)
    for (const char* device : kGpus) plans.push_back({name, device});
  for (const char* name : kFp16Networks)
    for (const char* device : kFp16Gpus) plans.push_back({name, device});
  for (const char* name : kTileNetworks)
    for (const char* device : kTileDevices) plans.push_back({name, device});
  return plans;
}

TEST(GoldenPlans, AreWhatIsStored) {
  for (const auto& [name, device] : all_plans()) {
    const auto plan = plan_of(name, device);
    ASSERT_TRUE(plan.ok()) << name << " on " << device << ": " << plan.error().message;
    testing::expect_stored(kFolder + name + "." + device + ".txt", golden_text(*plan));
  }
}

Result<Plan> measured_plan_of(const std::string& network_name, const std::string& device_name, double accuracy = 0) {
  PlanOptions options;
  if (accuracy > 0) options.accuracy = accuracy;
  return make_plan(cached_network(network_name), as_measured(testing::device_named(device_name)), options);
}

void expect_plan(const char* name, const Device& device, const std::string& file, double accuracy = 0) {
  PlanOptions options;
  if (accuracy > 0) options.accuracy = accuracy;
  const auto plan = make_plan(cached_network(name), device, options);
  ASSERT_TRUE(plan.ok()) << name << " on " << file << ": " << plan.error().message;
  testing::expect_stored(kFolder + name + "." + file + ".txt", golden_text(*plan));
  for (const PlanStep& step : plan->steps) EXPECT_TRUE(has_kernel(step)) << file << ": " << name << ", " << step.name;
}

TEST(GoldenPlans, OfCudaAreWhatIsStored) {
  for (const char* name : kCudaNetworks)
    for (const char* device : kCuda) expect_plan(name, testing::device_named(device), std::string(device) + "-cuda");
  // What one of them does with everything else.
  std::set<std::string_view> done(std::begin(kCudaNetworks), std::end(kCudaNetworks));
  std::vector<const char*> rest = all_names();
  rest.insert(rest.end(), std::begin(kCudaOperators), std::end(kCudaOperators));
  for (const char* name : rest)
    if (done.insert(name).second) expect_plan(name, testing::device_named("h200"), "h200-cuda");
  for (const char* device : kCuda) {
    for (const char* name : kCudaMeasured)
      expect_plan(name, as_measured(testing::device_named(device)), std::string(device) + "-cuda-measured");
    expect_plan("resnet50", testing::device_named(device), std::string(device) + "-cuda-rough", 1e-3);
    expect_plan("few_channels", testing::device_named(device), std::string(device) + "-cuda-rough", 1e-3);
  }
  // Where NVRTC is at hand.
  Device compiling = testing::device_named("h200");
  compiling.compiles = true;
  expect_plan("preactivation", compiling, "h200-cuda-nvrtc");
}

TEST(GoldenPlans, OfMeasuredGpusAreWhatIsStored) {
  for (const char* name : kMeasuredNetworks)
    for (const char* device : kMeasured) {
      const auto plan = measured_plan_of(name, device);
      ASSERT_TRUE(plan.ok()) << name << " on " << device << ": " << plan.error().message;
      testing::expect_stored(kFolder + name + "." + device + "-measured.txt", golden_text(*plan));
    }
}

// Probes that reach 85 % of a data sheet lead to its plan: convolutions in tiles, on matrix units where the accuracy lets them.
TEST(GoldenPlans, MeasuredGpusArePlannedLikeDescribedOnes) {
  for (const char* device : kMeasured)
    for (const double accuracy : {0.0, 1e-3}) {
      SCOPED_TRACE(std::string(device) + " at accuracy " + digits(accuracy));
      PlanOptions options;
      if (accuracy > 0) options.accuracy = accuracy;
      const auto described = plan_of("resnet50", device, options), measured = measured_plan_of("resnet50", device, accuracy);
      ASSERT_TRUE(described.ok() && measured.ok());
      std::map<std::string, int> want, have;
      for (const PlanStep& step : described->steps) ++want[variant_of(step.schedule)];
      for (const PlanStep& step : measured->steps) {
        const std::string& variant = variant_of(step.schedule);
        ++have[variant];
        const auto* params = get_if<GemmParams>(&step.stage.params);
        if (params && params->loader == Loader::window) {
          EXPECT_TRUE(variant == "implicit" || variant == "points" || variant == "cooperative") << step.name << ": " << variant;
        }
      }
      EXPECT_GE(have["cooperative"], want["cooperative"] * 9 / 10);
      const double ratio = measured->predicted_seconds() / described->predicted_seconds();
      std::printf("%-18s accuracy %-5s data sheet %.3f ms, measured %.3f ms\n", device, digits(accuracy).c_str(),
                  described->predicted_seconds() * 1e3, measured->predicted_seconds() * 1e3);
      EXPECT_LE(ratio, 1.3);
      EXPECT_GE(ratio, 0.9);
    }
}

// Tensors of 16 bits stay so from the input to the output on GPUs that store them.
TEST(GoldenPlans, Fp16StayFp16OnGpus) {
  for (const char* network_name : kFp16Networks)
    for (const char* device : kFp16Gpus) {
      const auto plan = plan_of(network_name, device);
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      for (const PlanStep& step : plan->steps) {
        EXPECT_TRUE(has_kernel(step)) << step.name;
        for (const auto* list : {&step.stage.inputs, &step.stage.outputs})
          for (const TensorDesc& desc : *list) EXPECT_NE(desc.dtype, DType::f32) << device << " " << step.name;
      }
    }
}

// Nothing is built and left unconnected: each family, algorithm and kind of fusion is the default somewhere.
TEST(GoldenPlans, UseEveryAlgorithmAndFusion) {
  std::map<std::string, int> seen;
  for (const char* name : all_names()) {
    const auto plan = plan_of(name, "epyc-zen4");
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    for (const PlanStep& step : plan->steps) {
      ++seen[step.algorithm];
      ++seen["family " + std::string(name_of(step.stage.family()))];
      ++seen["variant " + variant_of(step.schedule)];
      if (const auto problem = from_text<Problem>(step.problem); problem.ok()) {
        const Epilogue& e = problem->epilogue;
        seen["residual before"] += e.residuals_before > 0;
        seen["residual after"] += e.residuals_after > 0;
        seen["activation"] += e.activation != Activation::none;
        seen["transposed"] += problem->kind == ProblemKind::conv_transpose;
      }
      if (const auto* program = get_if<PointwiseParams>(&step.stage.params)) seen["program"] += program->program.size() > 1;
      // A sum of products that writes into a part of a larger tensor: a concatenation that costs nothing.
      const TensorDesc& y = step.stage.outputs[0];
      seen["concat in place"] += !step.problem.empty() && name_of(y.shape, y.layout) == "nhwc+view";
    }
  }
  // What only tile registers are for.
  for (const char* name : kTileNetworks) {
    const auto on_tiles = plan_of(name, "xeon-emr");
    ASSERT_TRUE(on_tiles.ok()) << on_tiles.error().message;
    for (const PlanStep& step : on_tiles->steps) ++seen[step.algorithm], ++seen["variant " + variant_of(step.schedule)];
  }
  // What only GPUs have kernels for.
  const auto on_gpu = plan_of("halves", "radeon-rx-7900-xtx");
  ASSERT_TRUE(on_gpu.ok()) << on_gpu.error().message;
  for (const PlanStep& step : on_gpu->steps) ++seen[step.algorithm];
  const auto with_post_ops = plan_of("srresnet", "radeon-rx-7900-xtx");
  ASSERT_TRUE(with_post_ops.ok()) << with_post_ops.error().message;
  for (const PlanStep& step : with_post_ops->steps)
    if (const auto problem = from_text<Problem>(step.problem); problem.ok()) seen["tail"] += problem->epilogue.has_post_op();
  // And what is fast enough to be taken by those who ask for less than its error.
  PlanOptions rough;
  rough.accuracy = 2e-3;
  const auto without_matrix_units = plan_of("resnet50", "radeon-rx-vega-64", rough);
  ASSERT_TRUE(without_matrix_units.ok()) << without_matrix_units.error().message;
  for (const PlanStep& step : without_matrix_units->steps) ++seen[step.algorithm];
  const auto by_tf32 = make_plan(cached_network("resnet50"), testing::device_named("a100"), rough);
  ASSERT_TRUE(by_tf32.ok()) << by_tf32.error().message;
  for (const PlanStep& step : by_tf32->steps) ++seen[step.algorithm];
  const auto few = plan_of("decoding", "radeon-rx-7900-xtx");
  ASSERT_TRUE(few.ok()) << few.error().message;
  for (const PlanStep& step : few->steps) ++seen["variant " + variant_of(step.schedule)];
  for (int i = 0; i < kFamilies; ++i) {
    const std::string family(name_of(static_cast<Family>(i)));
    EXPECT_GT(seen["family " + family], 0) << family;
  }
  for (const char* variant : {"separable", "split", "parts_gpu", "group", "matrix_i8"})
    EXPECT_GT(seen["variant " + std::string(variant)], 0) << variant;
  for (const Algorithm& algorithm : algorithms()) EXPECT_GT(seen[std::string(algorithm.name)], 0) << algorithm.name;
  for (const char* what :
       {"residual before", "residual after", "activation", "transposed", "program", "concat in place", "tail"})
    EXPECT_GT(seen[what], 0) << what;
}

// A CPU as a probe describes it before anything was measured, its rates estimated.
Device uncalibrated(Device device) {
  device.launch_seconds = 0;
  device.calibrated = false;
  for (MemoryLevel& level : device.memory)
    level.bytes_per_second = level.total_bytes_per_second = level.copy_bytes_per_second = 0;
  for (MathUnit& unit : device.units) unit.flops_per_second = unit.total_flops_per_second = 0;
  estimate_rates(device);
  return device;
}

// Predicted cost of a step's candidate with this schedule, or -1 where there is none.
double cost_of(const PlanStep& step, const std::string& algorithm, const std::string& schedule) {
  for (const Candidate& c : step.candidates)
    if (c.algorithm == algorithm && c.schedule == schedule) return c.cost ? c.cost->seconds : -1;
  return -1;
}

// The first command on a machine plans by estimates. They lead to the choices that measured rates lead to, ties aside: by the
// measured rates no choice costs over a fifth more than the best: data
// sheets, which some device files are made of, promise that much more than the probes behind the estimates gave.
TEST(GoldenPlans, EstimatedRatesChooseAsWell) {
  constexpr double kTie = 1.2;
  int steps = 0, ties = 0;
  for (const char* name : kNetworks)
    for (const char* device_name : kDevices) {
      const Device device = testing::device_named(device_name);
      if (device.kind != DeviceKind::cpu) continue;
      SCOPED_TRACE(std::string(name) + " on " + device_name);
      // Layer by layer: whether a block of them becomes one step changes which steps there are.
      PlanOptions apart;
      apart.fusion = "none";
      const auto measured = make_plan(cached_network(name), device, apart);
      const auto estimated = make_plan(cached_network(name), uncalibrated(device), apart);
      ASSERT_TRUE(measured.ok() && estimated.ok());
      EXPECT_FALSE(estimated->calibrated);
      ASSERT_EQ(measured->steps.size(), estimated->steps.size());
      for (size_t i = 0; i < measured->steps.size(); ++i) {
        const PlanStep &want = measured->steps[i], &have = estimated->steps[i];
        ++steps;
        if (to_text(want.schedule) == to_text(have.schedule)) continue;
        ++ties;
        const double best = cost_of(want, want.algorithm, to_text(want.schedule));
        const double cost = cost_of(want, have.algorithm, to_text(have.schedule));
        EXPECT_GT(best, 0) << want.name;
        EXPECT_GT(cost, 0) << want.name << ": " << to_text(have.schedule);
        EXPECT_LE(cost, kTie * best) << want.name << ": " << to_text(have.schedule) << "\ninstead of "
                                     << to_text(want.schedule);
      }
    }
  EXPECT_LT(ties, steps / 10) << "of " << steps;
}

// Steps on 8-bit integers are predicted by the rate of the unit that multiplies them, not by that of floats.
TEST(GoldenPlans, IntegerStepsFollowTheRateOfTheirUnit) {
  const Device described = testing::device_named("epyc-zen4");
  for (const char* unit_name : {"avx512-vnni", "avx2-int16"})
    for (const char* name : {"qlinearconv_depthwise", "qlinearconv_pointwise"}) {
      SCOPED_TRACE(std::string(name) + " on " + unit_name);
      const auto seconds = [&](double rate, double rate_of_floats) {
        Device device = described;
        std::erase_if(device.units, [&](const MathUnit& u) { return u.kind == UnitKind::dot_product && u.name != unit_name; });
        device.launch_seconds = 0;  // nothing but arithmetic binds
        for (MemoryLevel& level : device.memory) level.bytes_per_second = level.total_bytes_per_second = 1e18;
        for (MathUnit& u : device.units) u.flops_per_second = u.kind == UnitKind::dot_product ? rate : rate_of_floats;
        const auto plan = make_plan(cached_network(name), device);
        EXPECT_TRUE(plan.ok());
        for (const PlanStep& step : plan->steps)
          if (unit_of(step.schedule) == unit_name) return step.cost.seconds;
        ADD_FAILURE() << "no step on the unit";
        return 0.0;
      };
      // A part that the rate divides and one for the calls.
      const double slow = seconds(1e11, 1e12), fast = seconds(2e11, 1e12), faster = seconds(4e11, 1e12);
      EXPECT_GT(slow - fast, 0);
      EXPECT_NEAR(slow - fast, 2 * (fast - faster), 1e-6 * slow);
      EXPECT_DOUBLE_EQ(seconds(1e11, 1e10), slow);
    }
}

// A plan depends on nothing but graph and device: made twice it is the same text.
TEST(GoldenPlans, AreTheSameEveryTime) {
  for (const char* device : {"epyc-zen4", "h200"}) {
    const auto a = plan_of("squeezenet1.1", device), b = plan_of("squeezenet1.1", device);
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(to_text(*a), to_text(*b));
  }
}

}  // namespace
}  // namespace sparkle
