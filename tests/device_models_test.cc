// Every network at hand is planned for an H200: CUDA has a kernel for each of its steps, so that the host computes none, with
// the programs that are compiled at run time and without. And what the largest takes of the card's memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "device/device_json.h"
#include "graph/evaluate/values.h"
#include "networks/video_unet.h"
#include "networks/zoo.h"
#include "onnx/reader.h"
#include "onnx/tensor_proto.h"
#include "plan/choose/choose.h"
#include "plan/memory/budget.h"
#include "plan/plan.h"

namespace sparkle {
namespace {
namespace fs = std::filesystem;

Device h200(bool compiles) {
  auto device = load_device(SPARKLE_SOURCE_DIR "/devices/h200.json");
  EXPECT_TRUE(device.ok());
  device->compiles = compiles;
  return *device;
}

// The steps that the card has no kernel for, by name.
std::string left_to_the_host(const Graph& bound, const PlanOptions& options = {}) {
  std::string names;
  for (const bool compiles : {false, true}) {
    const auto plan = make_plan(bound, h200(compiles), options);
    if (!plan.ok()) return plan.error().message;
    for (const PlanStep& step : plan->steps)
      if (!has_kernel(step)) names += " " + step.name + " (" + std::string(name_of(step.stage.family())) + ")";
  }
  return names;
}

Result<Graph> bound(Graph graph, std::vector<InputBinding> bindings = {}) {
  SPARKLE_CHECK(simplify(graph));
  if (bindings.empty())
    for (const TensorId id : graph.inputs) bindings.push_back({graph.tensor(id).shape, std::nullopt});
  SPARKLE_TRY(sized, sparkle::bind(graph, bindings));
  SPARKLE_CHECK(simplify(sized));
  return sized;
}

Result<Graph> bound_by_stored_inputs(const fs::path& folder) {
  SPARKLE_TRY(graph, read_onnx((folder / folder.filename()).string() + ".onnx"));
  std::vector<InputBinding> bindings;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const fs::path path = folder / "test_data_set_0" / ("input_" + std::to_string(i) + ".pb");
    std::ifstream file(path, std::ios::binary);
    ::onnx::TensorProto proto;
    if (!proto.ParseFromIstream(&file)) return Error{Reason::bad_model, "There is no tensor in '" + path.string() + "'."};
    SPARKLE_TRY(value, take_tensor(proto, path.string(), ""));
    bindings.push_back({value.shape, value});
  }
  // Sizes, and values only where these decide shapes.
  const std::vector<bool> needed = inputs_needed_by_value(graph);
  for (size_t i = 0; i < bindings.size(); ++i)
    if (!needed[i]) bindings[i].value.reset();
  return bound(std::move(graph), std::move(bindings));
}

TEST(DeviceModels, CudaComputesEachStepOfTrainedModels) {
  const fs::path folder = fs::path(SPARKLE_SOURCE_DIR).parent_path() / "shared/data/models";
  if (!fs::exists(folder)) GTEST_SKIP() << "SKIP: " << folder << " is not there";
  int models = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_directory()) continue;
    SCOPED_TRACE(entry.path().filename().string());
    const auto graph = bound_by_stored_inputs(entry.path());
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    ++models;
    EXPECT_EQ(left_to_the_host(*graph), "");
    PlanOptions rough;
    rough.accuracy = 1e-3;
    EXPECT_EQ(left_to_the_host(*graph, rough), "");
  }
  EXPECT_GT(models, 0);
}

TEST(DeviceModels, CudaComputesEachStepOfTheNetworksHere) {
  for (const std::string_view name : zoo_names()) {
    SCOPED_TRACE(name);
    auto graph = zoo_network(name);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const auto sized = bound(std::move(*graph));
    ASSERT_TRUE(sized.ok()) << sized.error().message;
    EXPECT_EQ(left_to_the_host(*sized), "");
  }
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    auto graph = video_unet({.batch = 1, .base = 16, .size = 16, .type = type});
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const auto sized = bound(std::move(*graph));
    ASSERT_TRUE(sized.ok()) << sized.error().message;
    EXPECT_EQ(left_to_the_host(*sized), "") << name_of(type);
  }
}

// All products of ResNet-50 in 16 bits are those of matrix units, most of them those of wgmma.
TEST(DeviceModels, Resnet50In16BitsIsForMatrixUnits) {
  for (const DType type : {DType::bf16, DType::f16}) {
    SCOPED_TRACE(name_of(type));
    auto graph = zoo_network("resnet50", {.batch = 32, .type = type});
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const auto sized = bound(std::move(*graph));
    ASSERT_TRUE(sized.ok()) << sized.error().message;
    EXPECT_EQ(left_to_the_host(*sized), "");
    const auto plan = make_plan(*sized, h200(true));
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    int products = 0, by_wgmma = 0;
    for (const PlanStep& step : plan->steps) {
      if (step.stage.family() != Family::gemm) continue;
      const std::string schedule = to_text(step.schedule), unit = "mma-" + std::string(name_of(type)) + " ";
      EXPECT_EQ(step.stage.inputs[0].dtype, type) << step.name;
      EXPECT_NE(schedule.find(unit), std::string::npos) << step.name << ": " << schedule;
      products += 1, by_wgmma += schedule.find("unit=wg" + unit) != std::string::npos;
    }
    EXPECT_EQ(products, 54);
    EXPECT_GE(by_wgmma, 40) << "most of them";
  }
}

// What detectors end in: the data decides how many rows there are.
TEST(DeviceModels, CudaSuppressesBoxesThatOverlap) {
  for (const char* name : {"nonmaxsuppression_corners", "nonmaxsuppression_centers", "nonmaxsuppression_no_threshold"}) {
    SCOPED_TRACE(name);
    auto graph = read_onnx(std::string(SPARKLE_SOURCE_DIR "/tests/vectors/") + name + "/model.onnx");
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const auto sized = bound(std::move(*graph));
    ASSERT_TRUE(sized.ok()) << sized.error().message;
    EXPECT_EQ(left_to_the_host(*sized), "");
  }
}

// 880 million parameters in bfloat16 are 1.76 GB; with all that a pass keeps, in either type of 16 bits, the card holds less
// than 2.5 GB. The weights have no values here: plans go by their sizes.
TEST(DeviceModels, TheVideoUnetTakesLessThanTwoAndAHalfGigabytes) {
  for (const DType type : {DType::bf16, DType::f16}) {
    auto graph = video_unet({.type = type, .weights = false});
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    int64_t parameters = 0;
    for (const GraphTensor& t : graph->tensors)
      if (t.constant && t.dtype == type) parameters += t.constant->elements();
    EXPECT_GT(parameters, 880'000'000);
    const auto sized = bound(std::move(*graph));
    ASSERT_TRUE(sized.ok()) << sized.error().message;
    const Device device = h200(true);
    const auto plan = make_plan(*sized, device);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const int64_t packed = packed_constant_bytes(*plan, device), all = planned_bytes(*plan, device);
    std::printf("%s: %.3f GB, of these %.3f of weights as kernels read them, %.3f of tensors between steps\n",
                std::string(name_of(type)).c_str(), static_cast<double>(all) * 1e-9, static_cast<double>(packed) * 1e-9,
                static_cast<double>(plan->arena_bytes) * 1e-9);
    EXPECT_GT(packed, 1'760'000'000);
    EXPECT_LT(all, 2'500'000'000);
    EXPECT_EQ(plan->host_arena_bytes, 0);
    EXPECT_EQ(left_to_the_host(*sized), "");
  }
}

}  // namespace
}  // namespace sparkle
