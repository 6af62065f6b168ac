// Each operator that the reader knows has at least three vectors in tests/vectors that this version plans: an operator whose
// vectors are all of types or forms not supported yet is as good as untested, and the test says which vectors those are.
#include <gtest/gtest.h>
#include <onnx.pb.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "device/device_json.h"
#include "onnx/node.h"
#include "onnx/reader.h"
#include "onnx/tensor_file.h"
#include "graph/parts/expand.h"
#include "plan/lower/supported.h"
#include "plan/plan_testing.h"

namespace sparkle {
namespace {
namespace fs = std::filesystem;

constexpr int kWanted = 3;

struct Coverage {
  int supported = 0;
  std::string others;  // vectors not supported, each with the reason
};

std::set<std::string> operators_of(const fs::path& model) {
  std::ifstream file(model, std::ios::binary);
  ::onnx::ModelProto proto;
  EXPECT_TRUE(proto.ParseFromIstream(&file)) << model;
  std::set<std::string> types;
  for (const auto& node : proto.graph().node())
    types.insert(node.domain().empty() ? node.op_type() : node.domain() + "." + node.op_type());
  return types;
}

// Read, bound to its stored inputs and planned.
Status planned(const fs::path& folder, const Device& device) {
  SPARKLE_TRY(graph, read_onnx((folder / "model.onnx").string()));
  SPARKLE_CHECK(check_supported(graph, folder.filename().string()));
  if (runs_in_parts(graph)) SPARKLE_CHECK(expand_paths(graph));
  if (runs_in_parts(graph)) return ok();  // `sparkle verify` runs it
  SPARKLE_CHECK(simplify(graph));
  const std::vector<bool> needed = inputs_needed_by_value(graph);
  std::vector<InputBinding> bindings;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::string file = "input_" + std::to_string(i) + ".pb";
    SPARKLE_TRY(input, read_tensor_pb((folder / "test_data_set_0" / file).string()));
    bindings.push_back({input.value.shape, needed[i] ? std::optional(input.value) : std::nullopt});
  }
  SPARKLE_TRY(bound, sparkle::bind(graph, bindings));
  SPARKLE_CHECK(simplify(bound));
  SPARKLE_TRY(plan, make_plan(bound, device));
  return ok();
}

TEST(VectorCoverage, ThreeVectorsPerOperator) {
  const Device device = testing::device_named("epyc-zen4");
  std::map<std::string, Coverage> coverage;
  for (const auto& entry : fs::directory_iterator(SPARKLE_SOURCE_DIR "/tests/vectors")) {
    if (!fs::exists(entry.path() / "model.onnx")) continue;
    const Status status = planned(entry.path(), device);
    for (const std::string& type : operators_of(entry.path() / "model.onnx")) {
      Coverage& c = coverage[type];
      if (status.ok()) {
        ++c.supported;
      } else {
        const Reason reason = status.error().reason;
        EXPECT_TRUE(reason == Reason::operator_not_served || reason == Reason::type_not_served) << status.error().message;
        c.others += "\n  " + entry.path().filename().string() + ": " + status.error().message;
      }
    }
  }
  int operators = 0;
  for (const auto& theme : operator_themes())
    for (const OperatorRow& row : theme) {
      ++operators;
      const Coverage& c = coverage[std::string(row.type)];
      EXPECT_GE(c.supported, kWanted) << row.type << ": tests/vectors has " << c.supported
                                      << " vectors that are supported; add cases to tests/vectors/*.py. Not supported: "
                                      << (c.others.empty() ? "none" : c.others);
    }
  EXPECT_GT(operators, 100);
}

}  // namespace
}  // namespace sparkle
