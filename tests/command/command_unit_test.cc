// `--unit` as a person meets it: networks by each unit that this machine has, and nothing kept for one unit used for another.
#include <nlohmann/json.hpp>

#include "command/command.h"

namespace sparkle {
namespace {

const std::string kVectors = SPARKLE_SOURCE_DIR "/tests/vectors/";
const std::string kHere = "export XDG_CACHE_HOME=\"$PWD\";";

class CommandUnit : public testing::Command {
 protected:
  // The units that may be forced here, as the refusal of another one lists them.
  std::vector<std::string> units() const {
    const std::string text = refusal("explain --conv ic8ih12oc8oh12kh3ph1 --unit abacus");
    const size_t at = text.find("one of ");
    EXPECT_NE(at, std::string::npos) << text;
    std::vector<std::string> list;
    std::istringstream words(text.substr(at + 7));
    for (std::string word; words >> word;) list.push_back(word.substr(0, word.find_first_of(",.")));
    return list;
  }
  size_t rate_files() const {
    size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_))
      count += entry.path().filename().string().starts_with("roofs-");
    return count;
  }
};

TEST_F(CommandUnit, NetworksAreRightByEachUnitAndNameNoOther) {
  for (const std::string& unit : units()) {
    const std::string option = " --threads 2 --fallback forbid --unit " + unit;
    for (const char* vector : {"network_squeeze", "network_mixed", "qlinearconv_pointwise", "qlinearconv_depthwise"}) {
      const testing::Said said = sparkle("verify '" + kVectors + vector + "'" + option);
      EXPECT_EQ(said.status, 0) << unit << ": " << said.out << said.err;
    }
    const testing::Said plan = sparkle("explain '" + kVectors + "network_squeeze/model.onnx' --plan" + option);
    ASSERT_EQ(plan.status, 0) << plan.err;
    size_t named = 0;
    for (size_t at = 0; (at = plan.out.find("unit=", at)) != std::string::npos; ++named) {
      at += 5;
      const std::string used = plan.out.substr(at, plan.out.find_first_of(" \n", at) - at);
      const bool same_level = unit.starts_with(used) || used.starts_with(unit) || (unit == "avx-vnni" && used == "avx2") ||
                              (unit == "sve" && used == "neon");
      EXPECT_TRUE(same_level) << unit << " uses " << used;
    }
    EXPECT_GT(named, 0u) << plan.out;
  }
}

TEST_F(CommandUnit, IsRefusedInOneSentenceWhereItMeansNothing) {
  EXPECT_SAYS(refusal("bench --conv ic8ih12oc8oh12kh3ph1 --unit mmx"), "has no unit 'mmx'");
  EXPECT_SAYS(refusal("devices --device reference --unit avx2"), "a CPU; 'reference' has none");
  EXPECT_SAYS(refusal("devices --device '" SPARKLE_SOURCE_DIR "/devices/h200.json' --unit avx2"), "has none");
  const testing::Said other =
      sparkle("explain --conv ic64ih28oc64oh28kh3ph1 --candidates --unit avx2 --device '" SPARKLE_SOURCE_DIR
              "/devices/epyc-zen4.json'");
  EXPECT_EQ(other.status, 0) << other.err;
  EXPECT_SAYS(other.out, "unit=avx2");
  EXPECT_EQ(other.out.find("unit=avx512"), std::string::npos) << other.out;
}

TEST_F(CommandUnit, RatesStoresAndCompiledFilesBelongToTheirUnits) {
  const std::vector<std::string> here = units();
  if (here.size() < 3 || here[0] == "neon") GTEST_SKIP() << "this machine has one level of units";
  const std::string first = " --threads 1 --unit " + here[0], second = " --threads 1 --unit " + here[1];
  size_t files = 0;
  for (const std::string& options : {first, second}) {
    const testing::Said said = sparkle("devices --json" + options, kHere);
    ASSERT_EQ(said.status, 0) << said.err;
    const auto json = nlohmann::json::parse(said.out);
    EXPECT_LE(json["units"].size(), 3u) << said.out;
    EXPECT_GT(json["units"][0]["flops_per_second"].get<double>(), 0) << said.out;
    EXPECT_EQ(rate_files(), ++files);
  }
  const std::string conv = " --conv ic8ih12oc8oh12kh3ph1 --tuning store";
  ASSERT_EQ(sparkle("tune" + conv + first, kHere).status, 0);
  EXPECT_SAYS(refusal("explain" + conv + second, kHere), "it was made for");
  EXPECT_EQ(sparkle("explain" + conv + first, kHere).status, 0);
  const std::string model = "'" + kVectors + "network_squeeze/model.onnx'";
  ASSERT_EQ(sparkle("compile " + model + " -o squeeze.sparkle" + first, kHere).status, 0);
  EXPECT_SAYS(refusal("explain squeeze.sparkle" + second, kHere), "math units");
  EXPECT_EQ(sparkle("explain squeeze.sparkle" + first, kHere).status, 0);
}

}  // namespace
}  // namespace sparkle
