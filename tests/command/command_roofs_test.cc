// The command and the file of measured rates: planning and running neither wait for measurements nor leave traces, `devices`
// measures once and keeps the rates, `devices --calibrate` measures again, and kept rates that are wrong judge no measurement.
#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "command/command.h"

namespace sparkle {
namespace {
namespace fs = std::filesystem;

class CommandRoofs : public testing::Command {
 protected:
  // What `sparkle ARGUMENTS` prints, with a cache folder of its own; the status must be 0.
  std::string say(const std::string& arguments) {
    fs::create_directories(path("cache"));
    const testing::Said said = sparkle(arguments, "export XDG_CACHE_HOME='" + path("cache") + "';");
    EXPECT_EQ(said.status, 0) << said.out << said.err;
    return said.out;
  }
  std::vector<fs::path> kept() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(path("cache")))
      if (entry.is_regular_file()) files.push_back(entry.path());
    return files;
  }
  static std::string content(const fs::path& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
};

TEST_F(CommandRoofs, RunVerifyAndExplainDoNotMeasure) {
  const std::string vectors = SPARKLE_SOURCE_DIR "/tests/vectors/";
  say("run '" + vectors + "network_squeeze/model.onnx'");
  say("verify '" + vectors + "conv_3x3'");
  const std::string plan = say("explain '" + vectors + "network_squeeze/model.onnx'");
  EXPECT_NE(plan.find("estimates"), std::string::npos) << plan;
  EXPECT_TRUE(kept().empty()) << kept()[0];
}

TEST_F(CommandRoofs, DevicesMeasuresOnceAndAgainWhenAsked) {
  const std::string first = say("devices");
  ASSERT_EQ(kept().size(), 1u) << first;
  const fs::path file = kept()[0];
  EXPECT_NE(first.find(file.string()), std::string::npos) << first;
  EXPECT_NE(first.find("measured on this machine 2"), std::string::npos) << first;
  const std::string rates = content(file);
  say("devices");
  EXPECT_EQ(content(file), rates);
  EXPECT_EQ(say("explain '" SPARKLE_SOURCE_DIR "/tests/vectors/network_squeeze/model.onnx'").find("estimates"),
            std::string::npos);
  say("devices --calibrate");
  EXPECT_NE(content(file), rates);  // to the last bit no two measurements are the same
}

// Rates kept from a day when others had the machine stand in no row's way: what is judged is probed beside it.
TEST_F(CommandRoofs, KeptBandwidthsThatAreFarTooLowJudgeNothing) {
  say("devices --threads 1");
  ASSERT_EQ(kept().size(), 1u);
  const fs::path file = kept()[0];
  auto rates = nlohmann::json::parse(content(file));
  std::map<std::string, double> low;
  for (auto& level : rates["memory"]) {
    for (const char* key : {"bytes_per_second", "total_bytes_per_second", "copy_bytes_per_second"})
      if (level.contains(key)) level[key] = level[key].get<double>() / 50;
    ASSERT_GT(low[level["name"].get<std::string>()] = level.value("total_bytes_per_second", 0.0), 0) << level;
  }
  std::ofstream(file) << rates.dump();
  // Moves so much for what it computes that by the kept rates it would stand at some ten times its roof.
  const std::string layer = "--conv ic16ih56oc16oh56kh1";
  const std::string model = "--runs 5 --model '" SPARKLE_SOURCE_DIR "/tests/vectors/network_squeeze/model.onnx'";
  for (const std::string& what : {layer, model}) {
    const auto json = nlohmann::json::parse(say("bench --threads 1 --json " + what), nullptr, false);
    ASSERT_TRUE(json.is_object()) << what;
    int judged = 0;
    for (const auto& row : json["rows"]) {
      const auto& roofs = row["roofs"];
      double spread = 0;
      for (const char* roof : {"compute", "memory"}) {
        if (!roofs.contains(roof)) continue;
        const double most = 100 + roofs["tolerance_percent"].get<double>() + roofs[roof]["spread_percent"].get<double>();
        EXPECT_LE(100 * roofs[roof]["rate"].get<double>(), most * roofs[roof]["probed"].get<double>()) << row;
        spread = std::max(spread, roofs[roof]["spread_percent"].get<double>());
      }
      if (roofs.contains("memory")) {
        const auto& memory = roofs["memory"];
        EXPECT_GT(memory["probed"].get<double>(), 5 * low[memory["of"].get<std::string>()]) << "the kept rate: " << row;
        ++judged;
      }
      // Steps of a model that fit their level almost may find a part of it further in: not as much as by the kept rates.
      const double most = what == layer ? 100 + roofs["tolerance_percent"].get<double>() + spread : 500;
      EXPECT_LE(row["percent_of_roof"].get<double>(), most) << row;
    }
    EXPECT_GT(judged, 0) << json;
  }
  EXPECT_EQ(kept(), std::vector<fs::path>{file});
  EXPECT_EQ(content(file), rates.dump()) << "it was measured again, so these rates were never in use";
}

TEST_F(CommandRoofs, ADescribedMachineIsNotThisOne) {
  const std::string text = say("devices --device '" SPARKLE_SOURCE_DIR "/devices/epyc-zen4.json'");
  EXPECT_EQ(text.find("this machine"), std::string::npos) << text;
  EXPECT_NE(text.find("epyc-zen4.json"), std::string::npos) << text;
}

// Every unit without kernels is marked, the fp16 vector units and all of a GPU too.
TEST_F(CommandRoofs, UnitsWithoutKernelsAreMarked) {
  const auto marks = [&](const std::string& device) {
    const std::string text = say("devices --device '" SPARKLE_SOURCE_DIR "/devices/" + device + ".json'");
    std::pair<int, int> count{0, 0};  // lines of units, and those with the mark
    bool units = false;
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      const std::string line = text.substr(at, end - at);
      at = end == std::string::npos ? text.size() : end + 1;
      if (line.find("one launch costs") != std::string::npos) break;
      if (units) ++count.first, count.second += line.find("no kernel yet") != std::string::npos;
      units = units || line.find("math unit") != std::string::npos;
    }
    return count;
  };
  const auto [gpu_units, gpu_marks] = marks("h200");
  EXPECT_GT(gpu_units, 0);
  EXPECT_EQ(gpu_marks, 0);  // CUDA's kernels are for each of them
  const auto [arm_units, arm_marks] = marks("graviton3-neoverse-v1");
  EXPECT_EQ(arm_units - arm_marks, 3);  // sve, neon and neon-dot
}

}  // namespace
}  // namespace sparkle
