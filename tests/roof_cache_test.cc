// The command and the file of measured rates: planning and running neither wait for measurements nor leave traces, `devices`
// measures once and keeps the rates, `devices --calibrate` measures again.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace {
namespace fs = std::filesystem;

class RoofCache : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("sparkle_roof_cache_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Output of `sparkle ARGUMENTS` with a cache folder of its own; the status must be 0.
  std::string sparkle(const std::string& arguments) {
    const std::string command = "XDG_CACHE_HOME='" + folder_.string() + "' '" SPARKLE_COMMAND "' " + arguments + " 2>&1";
    FILE* pipe = ::popen(command.c_str(), "r");
    std::string text;
    for (char buffer[4096]; const size_t count = std::fread(buffer, 1, sizeof buffer, pipe);) text.append(buffer, count);
    EXPECT_EQ(WEXITSTATUS(::pclose(pipe)), 0) << text;
    return text;
  }
  std::vector<fs::path> kept() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_))
      if (entry.is_regular_file()) files.push_back(entry.path());
    return files;
  }
  static std::string text_of(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  fs::path folder_;
};

TEST_F(RoofCache, RunVerifyAndExplainDoNotMeasure) {
  const std::string vectors = SPARKLE_SOURCE_DIR "/tests/vectors/";
  sparkle("run '" + vectors + "network_squeeze/model.onnx'");
  sparkle("verify '" + vectors + "conv_3x3'");
  const std::string plan = sparkle("explain '" + vectors + "network_squeeze/model.onnx'");
  EXPECT_NE(plan.find("estimates"), std::string::npos) << plan;
  EXPECT_TRUE(kept().empty()) << kept()[0];
}

TEST_F(RoofCache, DevicesMeasuresOnceAndAgainWhenAsked) {
  const std::string first = sparkle("devices");
  ASSERT_EQ(kept().size(), 1u) << first;
  const fs::path file = kept()[0];
  EXPECT_NE(first.find(file.string()), std::string::npos) << first;
  EXPECT_NE(first.find("measured on this machine 2"), std::string::npos) << first;
  const std::string rates = text_of(file);
  sparkle("devices");
  EXPECT_EQ(text_of(file), rates);
  EXPECT_EQ(sparkle("explain '" SPARKLE_SOURCE_DIR "/tests/vectors/network_squeeze/model.onnx'").find("estimates"),
            std::string::npos);
  sparkle("devices --calibrate");
  EXPECT_NE(text_of(file), rates);  // to the last bit no two measurements are the same
}

TEST_F(RoofCache, ADescribedMachineIsNotThisOne) {
  const std::string text = sparkle("devices --device '" SPARKLE_SOURCE_DIR "/devices/epyc-zen4.json'");
  EXPECT_EQ(text.find("this machine"), std::string::npos) << text;
  EXPECT_NE(text.find("epyc-zen4.json"), std::string::npos) << text;
}

// Every unit without kernels is marked, the fp16 vector units and all of a GPU too.
TEST_F(RoofCache, UnitsWithoutKernelsAreMarked) {
  const auto marks = [&](const std::string& device) {
    const std::string text = sparkle("devices --device '" SPARKLE_SOURCE_DIR "/devices/" + device + ".json'");
    std::pair<int, int> count{0, 0};  // lines of units, and those with the mark
    bool units = false;
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      const std::string line = text.substr(at, end - at);
      at = end == std::string::npos ? text.size() : end + 1;
      if (line.find("one step costs") != std::string::npos) break;
      if (units) ++count.first, count.second += line.find("no kernel yet") != std::string::npos;
      units = units || line.find("math unit") != std::string::npos;
    }
    return count;
  };
  const auto [gpu_units, gpu_marks] = marks("h200");
  EXPECT_GT(gpu_units, 0);
  EXPECT_EQ(gpu_units, gpu_marks);
  const auto [arm_units, arm_marks] = marks("graviton3-neoverse-v1");
  EXPECT_EQ(arm_units - arm_marks, 2);  // sve and neon
}

}  // namespace
