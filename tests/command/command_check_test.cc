// `sparkle check` as a person uses it: devices by name and by file, text and JSON, what it refuses, real models, weights that
// it does not read.
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/system/sanitized.h"
#include "command/command.h"
#include "device/known/known_devices.h"
#include "graph/test_graphs.h"
#include "onnx/tensor_proto.h"

namespace sparkle::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class CommandCheck : public Command {
 protected:
  // 3 -> 67 -> 129 channels, then 129 -> 251 features: sizes that no matrix unit takes.
  std::string odd_network() const {
    GraphBuilder b;
    b.graph.name = "odd";
    const auto conv = [&](TensorId x, int64_t c, int64_t k) {
      ConvOp op;
      op.kernel = {3, 3}, op.pads_begin = op.pads_end = {1, 1};
      return b.op("Conv", op, {x, b.weights({k, c, 3, 3})});
    };
    TensorId x = conv(conv(b.input({1, 3, 56, 56}), 3, 67), 67, 129);
    ReduceOp mean;
    mean.kind = ReduceKind::mean, mean.all_spatial = true;
    ReshapeOp flat;
    flat.form = ReshapeOp::Form::flatten;
    x = b.op("Flatten", flat, {b.op("GlobalAveragePool", mean, {x})});
    b.done(b.op("MatMul", MatMulOp{}, {x, b.weights({129, 251})}));
    return save(b.graph, "odd.onnx");
  }
  json checked(const std::string& arguments) const {
    const Said said = sparkle("check " + arguments + " --json");
    EXPECT_EQ(said.status, 0) << said.err;
    return json::parse(said.out, nullptr, false);
  }
};

TEST_F(CommandCheck, NamesTheSizesThatMatrixUnitsDoNotTake) {
  const std::string model = odd_network();
  const Said said = sparkle("check " + model + " --target h200,avx512");
  EXPECT_EQ(said.status, 0) << said.err;
  for (const char* part : {"NVIDIA H200 (h200)", "bound, not calibrated", "what matters most", "channels_unaligned",
                           "72 input channels and 136 filters", "features_unaligned", "fp16, fixed", "AMD EPYC (avx512)",
                           "the device has no matrix units"})
    EXPECT_TRUE(contains(said.out, part)) << part << "\n" << said.out;
  const json target = checked(model + " --target h200")["targets"][0];
  EXPECT_EQ(target["target"], "h200");
  std::string fixes;
  for (const json& f : target["findings"]) fixes += f["fix"].get<std::string>() + "\n";
  EXPECT_TRUE(contains(fixes, "pad to 136 inputs and 256 outputs")) << fixes;
  EXPECT_GT(target["speedup"], 1);
  EXPECT_EQ(target["matrix_share"], 0);
  EXPECT_EQ(target["precisions"].size(), 6u);
  double sum = 0;
  for (const json& layer : target["layers"]) sum += layer["predicted_ms"].get<double>();
  EXPECT_NEAR(sum, target["predicted_ms"].get<double>(), 1e-9);
}

TEST_F(CommandCheck, TakesDevicesByNameAndByFile) {
  const std::string model = odd_network(), file = (kSource / "devices/rtx-3090.json").string();
  const json both = checked(model + " --target rtx3090," + file)["targets"];
  EXPECT_EQ(both[1]["target"], "rtx-3090");
  EXPECT_EQ(both[0]["findings"], both[1]["findings"]);
  const std::string wrong = refusal("check " + model + " --target gtx480");
  for (const char* part : {"'gtx480'", "h200", "rdna3", "FILE.json"}) EXPECT_TRUE(contains(wrong, part)) << wrong;
  EXPECT_TRUE(contains(sparkle("explain " + model + " --device h200").out, "on NVIDIA H200"));
  EXPECT_TRUE(contains(refusal("run " + model + " --device h200"), "only describes a machine"));
}

TEST_F(CommandCheck, SaysOneSentenceOfDamagedModels) {
  write("damaged.onnx", text_of("odd.onnx").substr(0, 40) + "nonsense");
  EXPECT_TRUE(contains(refusal("check damaged.onnx --target h200"), "damaged.onnx"));
  const std::string whole = (odd_network(), text_of("odd.onnx"));
  write("short.onnx", whole.substr(0, whole.size() / 2));
  EXPECT_TRUE(contains(refusal("check short.onnx --target h200"), "short.onnx"));
  EXPECT_TRUE(contains(refusal("check missing.onnx --target h200"), "missing.onnx"));
}

// A gigabyte of weights that are a hole in a file: reading them would take its memory.
TEST_F(CommandCheck, DoesNotReadAGigabyteOfWeights) {
  constexpr int kLayers = 16;
  constexpr int64_t kSize = 4096, kBytes = kSize * kSize * 4;
  ::onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto& graph = *model.mutable_graph();
  graph.set_name("large");
  const auto declare = [&](::onnx::ValueInfoProto& info, const std::string& name) {
    info.set_name(name);
    auto& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(1);
    for (const int64_t size : {int64_t{512}, kSize}) type.mutable_shape()->add_dim()->set_dim_value(size);
  };
  declare(*graph.add_input(), "h0");
  declare(*graph.add_output(), "h" + std::to_string(kLayers));
  for (int i = 0; i < kLayers; ++i) {
    auto& w = *graph.add_initializer();
    w.set_name("w" + std::to_string(i)), w.set_data_type(1);
    w.add_dims(kSize), w.add_dims(kSize);
    w.set_data_location(::onnx::TensorProto::EXTERNAL);
    const auto entry = [&](const char* key, const std::string& value) {
      auto& e = *w.add_external_data();
      e.set_key(key), e.set_value(value);
    };
    entry("location", "large.data"), entry("offset", std::to_string(i * kBytes)), entry("length", std::to_string(kBytes));
    auto& node = *graph.add_node();
    node.set_op_type(i % 3 == 0 ? "Gemm" : "MatMul");
    node.add_input("h" + std::to_string(i)), node.add_input(w.name()), node.add_output("h" + std::to_string(i + 1));
  }
  write("large.onnx", model.SerializeAsString());
  write("large.data", "");
  fs::resize_file(path("large.data"), kLayers * kBytes);
  const auto start = std::chrono::steady_clock::now();
  const Said said = sparkle("check large.onnx --target h200,avx512,rdna3");
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_TRUE(contains(said.out, "1.07 GB of weights")) << said.out;
  EXPECT_LT(seconds, 5);
  fs::resize_file(path("large.data"), kLayers * kBytes / 2);
  EXPECT_TRUE(contains(refusal("check large.onnx --target h200"), "large.data"));
}

TEST_F(CommandCheck, MeasuresWhatIsHere) {
  const std::string model = (kSource / "models/upscale2x.onnx").string() + " --shape image=1x3x270x480 --threads 1";
  EXPECT_TRUE(contains(refusal("check " + model + " --target h200 --measure"), "'h200' is none"));
  if (kSanitized) GTEST_SKIP() << "times of a sanitized build say nothing";
  double share = 0;
  for (int attempt = 0; attempt < 3 && (share < 0.9 || share > 1.1); ++attempt) {  // a busy machine spoils some
    const json target = checked(model + " --target cpu --measure")["targets"][0];
    double sum = 0;
    for (const json& layer : target["layers"]) {
      EXPECT_GT(layer["measured_ms"], 0) << layer["name"];
      sum += layer["measured_ms"].get<double>();
    }
    share = sum / target["measured_ms"].get<double>();
  }
  EXPECT_NEAR(share, 1, 0.1);
  const Said said = sparkle("check " + model + " --target cpu --measure");
  for (const char* part : {"measured", "the layers add up to"}) EXPECT_TRUE(contains(said.out, part)) << said.out;
  // Every layer, what is fast too.
  const json target = checked(model + " --target cpu --measure")["targets"][0];
  EXPECT_GT(target["layers"].size(), 1u);
  for (const json& layer : target["layers"])
    EXPECT_SAYS(said.out, "\n" + layer["name"].get<std::string>().substr(0, 20)) << layer["name"];
}

// Shapes of the models that leave them open.
std::string shape_of(const std::string& model) { return model == "style-red-vineyards" ? " --shape image=1x3x224x224" : ""; }

TEST_F(CommandCheck, ServesRealModelsForEveryTarget) {
  const fs::path root = kSource / "../shared/data/models";
  if (!fs::exists(root)) GTEST_SKIP() << "no ../shared/data/models beside the source tree";
  std::string targets;
  for (const KnownDevice& known : known_devices()) targets += (targets.empty() ? "" : ",") + std::string(known.name);
  int models = 0;
  for (const auto& folder : fs::directory_iterator(root)) {
    const std::string name = folder.path().filename().string();
    const fs::path file = folder.path() / (name + ".onnx");
    if (!fs::exists(file)) continue;
    SCOPED_TRACE(name);
    ++models;
    const json all = checked(file.string() + shape_of(name) + " --target " + targets)["targets"];
    ASSERT_EQ(all.size(), known_devices().size());
    for (const json& target : all) {
      EXPECT_GT(target["predicted_ms"], 0) << target["target"];
      EXPECT_LE(target["fixed_ms"].get<double>(), target["predicted_ms"].get<double>() * (1 + 1e-9)) << target["target"];
      for (const json& layer : target["layers"]) EXPECT_GE(layer["predicted_ms"], 0) << layer["name"];
    }
  }
  EXPECT_GE(models, 20);
}

}  // namespace
}  // namespace sparkle::testing
