// `sparkle explain --levels` as a person meets it: the layers of docs/patterns.md on a CPU beside a GPU are what
// tests/golden_levels holds (scripts/update_golden_plans writes it), and what cannot be described says so.
#include <nlohmann/json.hpp>

#include "command/command.h"
#include "stored_text.h"

namespace sparkle {
namespace {

using CommandLevels = testing::Command;
const std::string kBoth = " --device xeon-emr,h200-vulkan";

TEST_F(CommandLevels, AreWhatIsStored) {
  for (const std::string conv : {"ic64ih56oc64oh56kh3ph1", "ic256ih14oc256oh14kh3ph1", "ic512ih7oc2048oh7kh1",
                                 "ic16ih256oc64oh256kh1", "ic64ih224oc64oh224kh1"}) {
    const testing::Said said = sparkle("explain --levels" + kBoth + " --algorithm gemm --conv " + conv);
    EXPECT_EQ(said.status, 0) << said.err;
    testing::expect_stored(SPARKLE_SOURCE_DIR "/tests/golden_levels/" + conv + ".txt", said.out);
  }
}

TEST_F(CommandLevels, OfAModelAreThoseOfItsSteps) {
  const std::string model = "'" SPARKLE_SOURCE_DIR "/tests/vectors/network_squeeze/model.onnx'";
  const auto plan = nlohmann::json::parse(sparkle("explain --json --device xeon-emr " + model).out);
  const auto all = nlohmann::json::parse(sparkle("explain --levels --json --device xeon-emr,h200-vulkan " + model).out);
  ASSERT_EQ(all["devices"].size(), 2u);
  EXPECT_EQ(all["devices"][1]["called"], "h200-vulkan");
  size_t steps = 0;
  for (const auto& layer : all["layers"]) {
    ASSERT_EQ(layer["devices"].size(), 2u);
    steps += layer["devices"][0].size();
    for (const auto& step : layer["devices"][0]) {
      EXPECT_EQ(step["levels"][0]["level"], "registers");
      for (const auto& of_plan : plan["steps"]) {
        if (of_plan["name"] != step["name"] || of_plan["schedule"] != step["schedule"]) continue;
        for (const auto& level : step["levels"]) {
          if (level["level"] == "registers") continue;
          EXPECT_EQ(level["bytes_moved"], of_plan["bytes_moved"][level["level"].get<std::string>()]) << step["name"];
        }
      }
    }
  }
  EXPECT_EQ(steps, plan["steps"].size());
  const std::string name = plan["steps"][1]["name"];
  const std::string one = sparkle("explain --levels" + kBoth + " --step '" + name + "' " + model).out;
  for (const char* row : {"registers", "shared", "L1", "DRAM", "vectorised", "in flight", "fused"})
    EXPECT_NE(one.find("\n" + std::string(row)), std::string::npos) << row << ":\n" << one;
  EXPECT_NE(sparkle("explain --levels --step nowhere --device xeon-emr " + model).out.find("no step has a name with 'nowhere'"),
            std::string::npos);
}

TEST_F(CommandLevels, RefusalsSayWhatIsWrong) {
  const std::string conv = " --conv ic8ih12oc8oh12kh3ph1";
  EXPECT_NE(refusal("explain --levels --device xeon-emr,gtx480" + conv).find("'gtx480'"), std::string::npos);
  EXPECT_NE(refusal("explain --levels --device xeon-emr," + conv).find("''"), std::string::npos);
  EXPECT_NE(refusal("explain --levels --candidates" + conv).find("--levels is a page of its own"), std::string::npos);
  EXPECT_NE(refusal("explain --device xeon-emr,h200-vulkan" + conv).find("--levels"), std::string::npos);
  EXPECT_NE(refusal("explain --levels --device h200-vulkan,missing.json" + conv).find("missing.json"), std::string::npos);
}

}  // namespace
}  // namespace sparkle
