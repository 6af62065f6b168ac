// The command on a CUDA device, which the functional model stands for.
#include <nlohmann/json.hpp>
#include <set>

#include "command/command.h"

namespace sparkle::testing {
namespace {

const std::string kShort = " --rounds 2 --round-ms 0.1 --json";

class CommandCuda : public Command {
 protected:
  void SetUp() override {
    if (std::string(SPARKLE_CUDA_MODEL).empty()) GTEST_SKIP() << "this build has no functional model of CUDA's devices";
  }
  nlohmann::json rows_of(const std::string& arguments) const {
    const Said said = sparkle(arguments, model());
    EXPECT_EQ(said.status, 0) << said.err;
    auto json = nlohmann::json::parse(said.out, nullptr, false);
    EXPECT_TRUE(json.is_object()) << said.out;
    return json.is_object() ? json["rows"] : nlohmann::json::array();
  }
  std::string model() const {
    return "export SPARKLE_CUDA_DRIVER='" SPARKLE_CUDA_MODEL "' XDG_CACHE_HOME='" + path("cache") + "';";
  }
};

// Each step's whole output has been checked, or there would be no row.
TEST_F(CommandCuda, TheLadderHasItsSteps) {
  for (const std::string type : {"", " --precision bf16"}) {
    std::set<std::string> measured;
    for (const auto& row : rows_of("bench --device cuda --ladder --conv ic16ih9oc24oh9kh3ph1" + type + kShort)) {
      if (row.contains("absent")) continue;
      measured.insert(row["level"].get<std::string>());
      EXPECT_EQ(row["clock"], "device");
      EXPECT_TRUE(row["predicted_bytes"].is_object());
    }
    for (const char* step :
         {"unrolled", "one_output", "mma", "mma_in_turn", "wgmma", "wgmma_halo", "wgmma_pairs", "as planned"})
      EXPECT_TRUE(measured.count(step)) << step << type;
    EXPECT_EQ(measured.count("fma"), type.empty() ? 1u : 0u);
  }
}

TEST_F(CommandCuda, AblationSwitchesOnePatternAtATime) {
  std::vector<std::string> without, absent;
  for (const auto& row : rows_of("bench --device cuda --ablate --conv ic16ih9oc24oh9kh3ph1" + kShort)) {
    without.push_back(row["without"]);
    if (row.contains("absent")) absent.push_back(row["without"]);
    else EXPECT_LT(row["max_error"], 1e-5) << row["without"];
  }
  EXPECT_EQ(without, (std::vector<std::string>{"all on", "tile", "matrix units", "copying engine", "window reuse", "cluster",
                                               "vectorise", "pipeline", "fuse", "implicit window"}));
  EXPECT_EQ(absent, (std::vector<std::string>{"matrix units", "copying engine", "window reuse", "cluster"}));
}

TEST_F(CommandCuda, SaysWhatTheDeviceIsGiven) {
  const Said said = sparkle("explain --device cuda --source 3x3 --conv ic64ih56oc64oh56kh3ph1 --precision bf16", model());
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_SAYS(said.out, "kernel sparkle_gemm_");
  EXPECT_SAYS(said.out, " threads, ");
  EXPECT_SAYS(said.out, " bytes of shared memory");
  EXPECT_SAYS(sparkle("explain --device rdna3 --source 3x3 --conv ic64ih56oc64oh56kh3ph1").out, "shader ");
  EXPECT_SAYS(refusal("explain --device avx2 --source 3x3 --conv ic64ih56oc64oh56kh3ph1"), "What a GPU would be given");
  EXPECT_SAYS(refusal("explain --device rdna3 --source 5x5 --conv ic64ih56oc64oh56kh3ph1"), "No step of the plan");
  EXPECT_SAYS(refusal("explain --device rdna3 --source 3x3 --levels --conv ic64ih56oc64oh56kh3ph1"),
              "--source is a page of its own");
}

}  // namespace
}  // namespace sparkle::testing
