// Golden plans: the plan of each network on each described machine, one line per step, compared with tests/golden_plans. A
// refactoring leaves them alone, a change of the planner shows in their diff. scripts/update_golden_plans writes them anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/half_floats.h"
#include "device/as_measured_testing.h"
#include "device/device_json.h"
#include "device/estimate.h"
#include "families/values/epilogue.h"
#include "families/gemm/gemm.h"
#include "families/pool/pool.h"
#include "graph/evaluate/values.h"
#include "onnx/reader.h"
#include "networks/zoo.h"
#include "plan/choose/choose.h"
#include "plan/plan_testing.h"
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
constexpr const char* kDevices[] = {"epyc-zen4", "xeon-emr",          "ryzen-zen3-laptop", "graviton3-neoverse-v1",
                                    "h200",      "radeon-rx-7900-xtx"};
// One of each architecture besides, for networks of dense and of depthwise layers and of large filters.
constexpr const char* kGpus[] = {"radeon-rx-6900-xt", "radeon-rx-vega-64", "arc-a770", "rtx-3090-vulkan",
                                 "rtx-4090-vulkan",   "h200-vulkan",       "lavapipe"};
constexpr const char* kGpuNetworks[] = {"resnet50", "mobilenetv2", "replknet"};
// On tensors of 16 bits: where these stay so, with matrix units and without.
constexpr const char* kFp16Gpus[] = {"radeon-rx-7900-xtx", "radeon-rx-vega-64", "h200-vulkan"};
constexpr const char* kFp16Networks[] = {"mobilenetv2_halves"};

// NVIDIA's cards by the kernels that CUDA has, as a data sheet describes them and as probes measure them; their files ask for
// what the hardware allows, which the plans above show.
constexpr const char* kCuda[] = {"h200", "a100", "rtx-3090"};
constexpr const char* kCudaNetworks[] = {
    "resnet50",       "mobilenetv2_halves",    "resnet50_halves",       "resnet50_n32_halves",     "unet",
    "tiny_attention", "qlinearconv_depthwise", "qlinearconv_pointwise", "quantizelinear_channels", "bytes",
    "bfloats",        "bfloats_n32",           "long_attention",        "network_float8"};

// What tile registers of CPUs are for, on a machine that has them and on one without.
constexpr const char* kTileNetworks[] = {"bytes", "bfloats"};
constexpr const char* kTileDevices[] = {"xeon-emr", "epyc-zen4"};

// GPUs as their driver describes them and Sparkle's probes measure them: what a user's machine is planned by.
constexpr const char* kMeasured[] = {"h200-vulkan", "rtx-3090-vulkan", "radeon-rx-7900-xtx", "arc-a770"};
constexpr const char* kMeasuredNetworks[] = {"resnet50"};

// Blocks that normalise and activate before the convolution (He et al. 2016, identity mappings): what no other network here has
// is a chain of element-wise operators that no sum of products can take in.
Graph preactivation() {
  testing::GraphBuilder b;
  b.graph.name = "preactivation";
  TensorId x = b.input({1, 64, 56, 56});
  ConvOp conv;
  conv.pads_begin = conv.pads_end = {1, 1};
  for (int block = 0; block < 3; ++block) {
    const TensorId normal = b.op("BatchNormalization", BatchNormalizationOp{},
                                 {x, b.weights({64}), b.weights({64}, 0.1f), b.weights({64}, 0.2f), b.weights({64}, 1.f)});
    const TensorId active = b.pointwise(PointwiseOp::relu, {normal});
    x = b.pointwise(PointwiseOp::add, {x, b.op("Conv", conv, {active, b.weights({64, 64, 3, 3}, -0.3f)})});
  }
  return b.done(x);
}

// The last block of ResNeXt-50's first stage and the first of its second (32 groups; Xie et al. 2017), batch normalisation
// folded.
Graph resnext() {
  testing::GraphBuilder b;
  b.graph.name = "resnext";
  TensorId x = b.input({1, 256, 56, 56});
  const auto conv = [&](TensorId from, int64_t c, int64_t k, int64_t size, int64_t groups, int64_t stride) {
    ConvOp op;
    op.groups = groups;
    op.strides = {stride, stride};
    op.pads_begin = op.pads_end = {size / 2, size / 2};
    return b.op("Conv", op, {from, b.weights({k, c / groups, size, size}), b.weights({k}, 0.1f)});
  };
  const auto relu = [&](TensorId from) { return b.pointwise(PointwiseOp::relu, {from}); };
  const auto block = [&](TensorId from, int64_t c, int64_t wide, int64_t k, int64_t stride) {
    const TensorId squeezed = relu(conv(from, c, wide, 1, 1, 1));
    const TensorId grouped = relu(conv(squeezed, wide, wide, 3, 32, stride));
    const TensorId skip = c == k ? from : conv(from, c, k, 1, 1, stride);
    return relu(b.pointwise(PointwiseOp::add, {conv(grouped, wide, k, 1, 1, 1), skip}));
  };
  x = block(x, 256, 128, 256, 1);
  return b.done(block(x, 256, 256, 512, 2));
}

// Of the layers that SSD adds behind its network (Liu et al. 2016): down to planes of a few pixels.
Graph ssd_extras() {
  testing::GraphBuilder b;
  b.graph.name = "ssd_extras";
  const auto layer = [&](TensorId from, int64_t c, int64_t k, int64_t size, int64_t stride, int64_t pad) {
    ConvOp op;
    op.strides = {stride, stride};
    op.pads_begin = op.pads_end = {pad, pad};
    return b.pointwise(PointwiseOp::relu, {b.op("Conv", op, {from, b.weights({k, c, size, size}), b.weights({k}, 0.1f)})});
  };
  const auto block = [&](TensorId from, int64_t c, int64_t squeezed, int64_t k) {
    return layer(layer(from, c, squeezed, 1, 1, 0), squeezed, k, 3, 2, 1);
  };
  const TensorId ten = b.input({1, 512, 10, 10});
  return b.done(block(block(ten, 512, 128, 256), 256, 128, 256));
}

// SRResNet's first layer, one of its blocks and an upsampling one (Ledig et al. 2017), batch normalisation folded: slopes per
// channel behind convolutions, one of them behind the shuffle of pixels.
Graph srresnet() {
  testing::GraphBuilder b;
  b.graph.name = "srresnet";
  const auto conv = [&](TensorId from, int64_t c, int64_t k, int64_t size) {
    ConvOp op;
    op.pads_begin = op.pads_end = {size / 2, size / 2};
    return b.op("Conv", op, {from, b.weights({k, c, size, size}), b.weights({k}, 0.1f)});
  };
  const auto prelu = [&](TensorId from) { return b.pointwise(PointwiseOp::prelu, {from, b.weights({64, 1, 1}, 0.2f)}); };
  const TensorId first = prelu(conv(b.input({1, 3, 96, 96}), 3, 64, 9));
  const TensorId block = conv(prelu(conv(first, 64, 64, 3)), 64, 64, 3);
  DepthToSpaceOp shuffle;
  shuffle.block = 2;
  const TensorId wide = b.op("DepthToSpace", shuffle, {conv(b.pointwise(PointwiseOp::add, {first, block}), 64, 256, 3)});
  return b.done(conv(prelu(wide), 64, 3, 9));
}

// A residual block whose tensors are all of a type of 16 bits: the sums that matrix units are for.
Graph narrow_block(const char* name, DType type, int64_t batch = 1) {
  testing::GraphBuilder b;
  b.graph.name = name;
  const TensorId x = b.input({batch, 64, 56, 56}, type);
  ConvOp conv;
  conv.pads_begin = conv.pads_end = {1, 1};
  const auto layer = [&](TensorId from) {
    HostTensor w = HostTensor::zeros(type, {64, 64, 3, 3});
    for (int64_t i = 0; i < w.elements(); ++i) w.data<uint16_t>()[i] = static_cast<uint16_t>(0x2c00 + i % 512);
    const TensorId weights = b.graph.add_constant("w" + std::to_string(b.graph.tensors.size()), w);
    return b.op("Conv", conv, {from, weights});
  };
  return b.done(b.pointwise(PointwiseOp::add, {layer(b.pointwise(PointwiseOp::relu, {layer(x)})), x}));
}

// The three convolutions of a bottleneck in 8 bits, the last one of weights that no L2 holds.
Graph bytes() {
  testing::GraphBuilder b;
  b.graph.name = "bytes";
  const auto constant = [&](DType type, const Dims& shape, int value) {
    const HostTensor t = HostTensor::zeros(type, shape);
    for (int64_t i = 0; i < t.size_bytes(); i += size_of(type)) t.bytes[i] = static_cast<std::byte>(value);
    return b.graph.add_constant("q" + std::to_string(b.graph.tensors.size()), t);
  };
  const auto layer = [&](TensorId from, int64_t c, int64_t k, int64_t size) {
    QuantizedConvOp op;
    op.conv.pads_begin = op.conv.pads_end = {size / 2, size / 2};
    const TensorId w = constant(DType::i8, {k, c, size, size}, 3), bias = constant(DType::i32, {k}, 1);
    const TensorId zero = constant(DType::u8, {}, 7), none = constant(DType::i8, {}, 0);
    return b.op("QLinearConv", op,
                {from, w, bias, zero, none, zero, b.floats({}, {0.5f}), b.floats({}, {0.25f}), b.floats({}, {8.f})});
  };
  return b.done(layer(layer(layer(b.input({1, 256, 28, 28}, DType::u8), 256, 64, 1), 64, 512, 3), 512, 512, 3));
}

// What one token of a language model asks for, attention of one query over 4096 keys and the shares of 32000 words, and the
// mean of a whole plane: few results of much, for which GPUs share out the work on one.
Graph decoding() {
  testing::GraphBuilder b;
  b.graph.name = "decoding";
  const TensorId query = b.input({1, 32, 1, 128}), keys = b.input({1, 32, 4096, 128}), values = b.input({1, 32, 4096, 128});
  const TensorId words = b.input({1, 32000}), plane = b.input({1, 64, 112, 112});
  PoolOp mean;
  mean.kind = PoolKind::average;
  mean.kernel = {112, 112};
  b.graph.outputs = {b.op("Attention", AttentionOp{}, {query, keys, values}), b.op("Softmax", SoftmaxOp{}, {words}),
                     b.op("AveragePool", mean, {plane})};
  return b.graph;
}

// A layer's attention of 1024 places in heads of 64, as image and text models have it, in 16 bits and in 32.
Graph long_attention() {
  testing::GraphBuilder b;
  b.graph.name = "long_attention";
  for (const DType type : {DType::f16, DType::f32}) {
    const TensorId q = b.input({1, 16, 1024, 64}, type), k = b.input({1, 16, 1024, 64}, type);
    b.graph.outputs.push_back(b.op("Attention", AttentionOp{}, {q, k, b.input({1, 16, 1024, 64}, type)}));
  }
  return b.graph;
}

// A network as it comes from a file that holds it in 16 bits and casts it at load: constants in f32 with values of that type.
void cast_weights(Graph& graph, DType type) {
  for (GraphTensor& t : graph.tensors) {
    if (!t.constant || t.dtype != DType::f32) continue;
    HostTensor cast = HostTensor::uninitialized(DType::f32, t.shape);
    for (int64_t i = 0; i < cast.elements(); ++i) {
      const float value = t.constant->data<float>()[i];
      cast.data<float>()[i] =
          type == DType::f16 ? half_to_float(float_to_half(value)) : bfloat16_to_float(float_to_bfloat16(value));
    }
    t.constant = std::move(cast);
  }
}

// The network with tensors of f16 throughout, as converters of models write it.
void cast_tensors(Graph& graph) {
  for (GraphTensor& t : graph.tensors) {
    if (t.dtype != DType::f32) continue;
    t.dtype = DType::f16;
    if (!t.constant) continue;
    HostTensor cast = HostTensor::uninitialized(DType::f16, t.shape);
    for (int64_t i = 0; i < cast.elements(); ++i) cast.data<uint16_t>()[i] = float_to_half(t.constant->data<float>()[i]);
    t.constant = std::move(cast);
  }
}

// The convolutions of a LeNet for pictures of 86x86 pixels, ten thousand at a time, each between planes.
Graph few_channels() {
  testing::GraphBuilder b;
  b.graph.name = "few_channels";
  const TensorId first = b.input({10000, 1, 86, 86}), second = b.input({10000, 4, 40, 40});
  b.graph.outputs = {b.op("Conv", ConvOp{}, {first, b.weights({4, 1, 7, 7}, 0.1f)}),
                     b.op("Conv", ConvOp{}, {second, b.weights({16, 4, 7, 7}, 0.1f)})};
  return b.graph;
}

Result<Graph> network(const std::string& name) {
  if (name == "few_channels") return testing::ready(few_channels());
  if (name == "halves") return testing::ready(narrow_block("halves", DType::f16));
  if (name == "bfloats") return testing::ready(narrow_block("bfloats", DType::bf16));
  if (name == "bfloats_n32") return testing::ready(narrow_block("bfloats_n32", DType::bf16, 32));
  if (name == "bytes") return testing::ready(bytes());
  if (name == "long_attention") return testing::ready(long_attention());
  if (name == "decoding") return testing::ready(decoding());
  if (name == "preactivation") return testing::ready(preactivation());
  if (name == "resnext") return testing::ready(resnext());
  if (name == "ssd_extras") return testing::ready(ssd_extras());
  if (name == "srresnet") return testing::ready(srresnet());
  const bool single = name.starts_with("network_") ||  // of tests/vectors too
                      std::find(std::begin(kOperators), std::end(kOperators), name) != std::end(kOperators);
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

Device with_kernels(const char* name) {
  Device device = testing::device_named(name);
  device.by_roofs = false;
  return device;
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
    for (const char* device : kCuda) expect_plan(name, with_kernels(device), std::string(device) + "-cuda");
  for (const char* device : kCuda) {
    expect_plan("resnet50", as_measured(with_kernels(device)), std::string(device) + "-cuda-measured");
    expect_plan("resnet50", with_kernels(device), std::string(device) + "-cuda-rough", 1e-3);
    expect_plan("few_channels", with_kernels(device), std::string(device) + "-cuda-rough", 1e-3);
  }
  // Where NVRTC is at hand.
  Device compiling = with_kernels("h200");
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
        if (params && params->loader == Loader::window)
          EXPECT_TRUE(variant == "implicit" || variant == "points" || variant == "cooperative") << step.name << ": " << variant;
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
  const auto by_tf32 = make_plan(cached_network("resnet50"), with_kernels("a100"), rough);
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
