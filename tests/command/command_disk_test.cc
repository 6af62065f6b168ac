// A full disk (/dev/full refuses every byte) ends each command with status 2 and one sentence, whatever it was writing.
#include "command/command.h"
#include "graph/test_graphs.h"

namespace sparkle::testing {
namespace {

class CommandDisk : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this machine has no /dev/full";
    GraphBuilder b;  // a picture in, a picture out
    const TensorId x = b.input({1, 1, 16, 16});
    model_ = save(b.done(b.pointwise(PointwiseOp::sigmoid, {x})), "picture.onnx");
  }
  // The file `name` of the folder "out" lies on a full disk.
  void fill(const std::string& name) const {
    std::filesystem::create_directories(folder_ / "out");
    std::filesystem::create_symlink("/dev/full", folder_ / "out" / name);
  }
  std::string model_;
};

TEST_F(CommandDisk, TensorsAndPictures) {
  ASSERT_EQ(sparkle("run " + model_ + " --output out").status, 0);
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "out")) files.push_back(entry.path().filename());
  std::sort(files.begin(), files.end());
  ASSERT_EQ(files.size(), 2u);  // NAME.npy, NAME.png
  for (const std::string& file : files) {
    std::filesystem::remove_all(folder_ / "out");
    fill(file);
    EXPECT_SAYS(refusal("run " + model_ + " --output out"),
                "'out/" + file + "' could not be written in full: No space left on device.");
  }
}

TEST_F(CommandDisk, Results) {
  for (const std::string& what : {"--model " + model_ + " --runs 2", std::string("--conv ic8ih8oc8kh3ph1 --rounds 1")})
    EXPECT_SAYS(refusal("bench " + what + " --output /dev/full"),
                "'/dev/full' could not be written in full: No space left on device.");
}

TEST_F(CommandDisk, WhatIsPrinted) {
  const std::string full = "full() { \"$@\" >/dev/full; }; full";
  for (const std::string& arguments :
       {"run " + model_, "run " + model_ + " --json", "explain " + model_, "explain " + model_ + " --plan",
        "explain " + model_ + " --json", std::string("devices --device " + (kSource / "devices/epyc-zen4.json").string()),
        "bench --model " + model_ + " --runs 2", std::string("--help"), std::string("--version"), std::string("run --help")})
    EXPECT_SAYS(refusal(arguments, full), "sparkle: The output could not be printed in full") << arguments;
}

}  // namespace
}  // namespace sparkle::testing
