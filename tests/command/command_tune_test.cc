// `sparkle tune` as a person meets it. Nothing here judges a time.
#include "command/command.h"

namespace sparkle {
namespace {

class CommandTune : public testing::Command {};

constexpr const char* kConv = "tune --conv ic8ih12oc8oh12kh3ph1 --threads 1 --tuning store";

TEST_F(CommandTune, WritesAStoreThatOthersTake) {
  const testing::Said first = sparkle(std::string(kConv) + " --json");
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_NE(first.out.find("\"outcome\""), std::string::npos) << first.out;
  const std::string text = text_of("store");
  EXPECT_EQ(text.rfind("sparkle-tuning 2\tversion=", 0), 0u) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  EXPECT_NE(sparkle(kConv).out.find("in the store already"), std::string::npos);
  EXPECT_EQ(text_of("store"), text);
  EXPECT_EQ(sparkle("explain --conv ic8ih12oc8oh12kh3ph1 --threads 1 --tuning store").status, 0);
  EXPECT_EQ(sparkle("bench --conv ic8ih12oc8oh12kh3ph1 --threads 1 --rounds 1 --tuning store", "XDG_CACHE_HOME=$PWD").status,
            0);
}

// What the store names for its only problem is what `explain` plans with.
TEST_F(CommandTune, IsUsedByExplain) {
  for (const std::string device : {"cpu --threads 1", "vulkan"}) {
    const std::string options = " --conv ic8ih12oc8oh12kh3ph1 --tuning " + device.substr(0, 3) + " --device " + device;
    if (device == "vulkan" && sparkle("devices --device vulkan").status != 0) GTEST_SKIP() << "no Vulkan device";
    const testing::Said tuned = sparkle("tune" + options);
    ASSERT_EQ(tuned.status, 0) << tuned.err;
    std::string text = text_of(device.substr(0, 3));
    ASSERT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
    text.pop_back();
    const std::string schedule = text.substr(text.rfind('\t') + 1);
    const testing::Said plan = sparkle("explain --candidates" + options);
    EXPECT_EQ(plan.status, 0) << plan.err;
    EXPECT_NE(plan.out.find(schedule + "  chosen"), std::string::npos) << schedule << "\n" << plan.out;
  }
}

TEST_F(CommandTune, KeepsItsStoreInTheCacheAndWithoutTimeTunesNothing) {
  const std::string here = "XDG_CACHE_HOME=$PWD";
  EXPECT_NE(refusal("explain --conv ic8ih12oc8oh12kh3ph1 --tuning kept", here).find("'sparkle tune' makes one"),
            std::string::npos);
  const testing::Said none = sparkle("tune --conv ic8ih12oc8oh12kh3ph1 --seconds 1e-9", here);
  EXPECT_EQ(none.status, 0) << none.err;
  EXPECT_NE(none.out.find("no time left"), std::string::npos) << none.out;
  EXPECT_EQ(sparkle("explain --conv ic8ih12oc8oh12kh3ph1 --tuning kept", here).status, 0);
}

TEST_F(CommandTune, SeveralAtOnceKeepAllResults) {
  std::string all;
  for (const char* size : {"7", "8", "9", "10", "11", "12"})
    all += "'" SPARKLE_COMMAND "' tune --conv ic8ih" + std::string(size) + "oc8kh3ph1 --threads 1 --tuning store >.out" + size +
           " 2>&1 & ";
  ASSERT_EQ(std::system(("cd '" + folder_.string() + "'; " + all + " wait").c_str()), 0);
  const std::string text = text_of("store");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 7) << text;
}

TEST_F(CommandTune, RefusesInOneSentence) {
  EXPECT_NE(refusal("explain --conv ic8ih12oc8oh12kh3ph1 --plan").find("--plan prints the plan of a model"), std::string::npos);
  EXPECT_NE(refusal("tune").find("Give either a model"), std::string::npos);
  EXPECT_NE(refusal("tune --conv ic8ih12oc8oh12kh3ph1 --algorithm gemm").find("--algorithm does not go with tune"),
            std::string::npos);
  EXPECT_NE(refusal("tune --conv ic8ih12oc8oh12kh3ph1 --tuning /proc/nowhere/store").find("cannot be written"),
            std::string::npos);
  write("store", "hello\n");
  EXPECT_NE(refusal("tune --conv ic8ih12oc8oh12kh3ph1 --tuning store").find("no tuning store"), std::string::npos);
  EXPECT_EQ(text_of("store"), "hello\n");
}

}  // namespace
}  // namespace sparkle
