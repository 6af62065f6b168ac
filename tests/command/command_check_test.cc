// `sparkle check` as a person uses it: devices by name and by file, text and JSON, what it refuses, real models, weights that
// it does not read.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

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
  json findings(const std::string& model, const std::string& target) const {
    return checked(model + " --target " + target)["targets"][0]["findings"];
  }
};

TEST_F(CommandCheck, NamesTheSizesThatMatrixUnitsDoNotTake) {
  const std::string model = odd_network();
  const Said said = sparkle("check " + model + " --target a4500,avx512");
  EXPECT_EQ(said.status, 0) << said.err;
  for (const char* part : {"NVIDIA RTX A4500 (a4500)", "bound, not calibrated", "what matters most", "channels_unaligned",
                           "72 input channels and 136 filters", "features_unaligned", "fp16, fixed", "AMD EPYC (avx512)",
                           "the device has no matrix units"})
    EXPECT_TRUE(contains(said.out, part)) << part << "\n" << said.out;
  const json target = checked(model + " --target a4500")["targets"][0];
  EXPECT_EQ(target["target"], "a4500");
  std::string fixes;
  for (const json& f : target["findings"]) fixes += f["fix"].get<std::string>() + "\n";
  // Outputs at the model's end would be copied: no gain.
  EXPECT_TRUE(contains(fixes, "pad to 136 inputs with zeros")) << fixes;
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
  EXPECT_EQ(refusal("fix " + model + " -o out.onnx --target gtx480"), wrong);
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
  EXPECT_EQ(sparkle("compile odd.onnx -o odd.sparkle").status, 0);
  const std::string compiled = refusal("check odd.sparkle --target h200");
  for (const char* part : {"'odd.sparkle' is a compiled model", "give the ONNX file"})
    EXPECT_TRUE(contains(compiled, part)) << compiled;
  EXPECT_EQ(refusal("fix odd.sparkle -o out.onnx --target h200"), compiled);
  EXPECT_EQ(sparkle("report odd.sparkle --runs 2").status, 0);  // it runs, and so it is measured
}

// What of a file lies in the page cache: that of a file just made holds what was read of it.
double cached_share(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY);
  const auto bytes = static_cast<size_t>(fs::file_size(path)), page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* map = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  std::vector<unsigned char> pages((bytes + page - 1) / page);
  if (map == MAP_FAILED || mincore(map, bytes, pages.data()) != 0) return ADD_FAILURE() << "mincore of " << path, 1;
  munmap(map, bytes);
  return static_cast<double>(std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return p & 1; })) /
         static_cast<double>(pages.size());
}

// A gigabyte of weights that are a hole in a file: what is read of it comes into the page cache.
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
  EXPECT_LT(cached_share(path("large.data")), 0.01);
  fs::resize_file(path("large.data"), kLayers * kBytes / 2);
  EXPECT_TRUE(contains(refusal("check large.onnx --target h200"), "large.data"));
}

// What is advised and counted is what `fix` then does, for each kind of device; afterwards nothing of it is left to do.
TEST_F(CommandCheck, AdvisesWhatFixDoes) {
  const std::string model = odd_network();
  for (const std::string target : {"h200", "a4500", "rtx3080", "rdna3", "avx512", "xe"}) {
    SCOPED_TRACE(target);
    std::map<std::string, std::string> advised;  // by layer
    for (const json& f : findings(model, target))
      if (f["by_fix"] == true && contains(f["code"].get<std::string>(), "unaligned")) {
        advised[f["layer"]] = f["fix"].get<std::string>();
        EXPECT_LE(f["fixed_ms"], f["now_ms"]);
      }
    const Said said = sparkle("fix " + model + " -o out.onnx --target " + target + " --proof none --json");
    ASSERT_EQ(said.status, 0) << said.err;
    const json fixed = json::parse(said.out);
    EXPECT_EQ(fixed.contains("predicted"), !advised.empty());
    std::set<std::string> layers;
    if (fixed.contains("predicted")) {
      EXPECT_LT(fixed["predicted"]["after_ms"], fixed["predicted"]["before_ms"]);
      for (const json& layer : fixed["predicted"]["layers"]) {
        layers.insert(layer["layer"]);
        EXPECT_GT(layer["predicted_before_ms"], 0);
        EXPECT_GT(layer["predicted_after_ms"], 0);
      }
    }
    for (const auto& [layer, fix] : advised) EXPECT_TRUE(layers.contains(layer)) << layer << ": " << fix;
    for (const json& f : findings("out.onnx", target))
      EXPECT_FALSE(f["by_fix"] == true && contains(f["code"].get<std::string>(), "unaligned")) << f;
  }
}

// 3 -> 67 -> 129 channels and 129 -> 251 features end to end, the same to the bit by plain loops. At the model's ends kernels
// that take such sizes as they are are faster than the copies of pictures and answers; `fix` pads those where it is told to.
TEST_F(CommandCheck, TheExamplesThatPeopleKnow) {
  const std::string model = odd_network();
  std::string advice;
  for (const json& f : findings(model, "a4500")) advice += f["fix"].get<std::string>() + "\n";
  for (const char* part :
       {"pad to 72 filters", "72 input channels and 136 filters", "pad to 136 inputs", "the rest stays: no gain"})
    EXPECT_SAYS(advice, part);
  const Said said = sparkle("fix " + model + " -o wide.onnx --target a4500 --only channels_unaligned");
  EXPECT_EQ(said.status, 0) << said.err;
  for (const char* part : {"3 -> 8 channels in, 67 -> 72 out", "67 -> 72 channels in, 129 -> 136 out",
                           "129 -> 136 channels in, 251 -> 256 out", "by plain loops: the same to the bit", "predicted for"})
    EXPECT_SAYS(said.out, part);
  for (const json& f : findings("wide.onnx", "a4500")) EXPECT_FALSE(contains(f["code"].get<std::string>(), "unaligned")) << f;
}

// Above the limit of `fix` nothing is promised, and it is said how to have it all the same.
TEST_F(CommandCheck, NamesTheLimitOfExtraArithmetic) {
  GraphBuilder b;
  ConvOp op;
  op.kernel = {7, 7}, op.pads_begin = op.pads_end = {3, 3};
  b.done(b.op("Conv", op, {b.input({4, 9, 160, 160}), b.weights({65, 9, 7, 7})}));
  const std::string model = save(b.graph, "thin.onnx");
  const json target = checked(model + " --target h200")["targets"][0];
  int found = 0;
  for (const json& f : target["findings"]) {
    if (f["code"] != "channels_unaligned") continue;
    ++found;
    EXPECT_SAYS(f["fix"].get<std::string>(), "limit of 25 % extra arithmetic");
    EXPECT_SAYS(f["fix"].get<std::string>(), "--max-extra ");
  }
  EXPECT_EQ(found, 1);
  EXPECT_SAYS(sparkle("fix " + model + " -o out.onnx --target h200 --proof none").out, "--max-extra ");
}

// By how much rows add up to the whole is measured by bench/checks/check_measured.py; how they are made of runs,
// step_times_test.cc.
TEST_F(CommandCheck, MeasuresWhatIsHere) {
  const std::string model = (kSource / "models/upscale2x.onnx").string() + " --shape image=1x3x270x480 --threads 1";
  EXPECT_TRUE(contains(refusal("check " + model + " --target h200 --measure"), "'h200' is none"));
  const Said said = sparkle("check " + model + " --target cpu --measure");
  for (const char* part : {"measured", "the layers add up to"}) EXPECT_TRUE(contains(said.out, part)) << said.out;
  // Every layer, what is fast too.
  const json target = checked(model + " --target cpu --measure")["targets"][0];
  EXPECT_GT(target["layers"].size(), 1u);
  EXPECT_GT(target["measured_ms"], 0);
  for (const json& layer : target["layers"]) {
    EXPECT_SAYS(said.out, "\n" + layer["name"].get<std::string>().substr(0, 20)) << layer["name"];
    EXPECT_GT(layer["measured_ms"], 0) << layer["name"];
  }
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
