// A full disk (/dev/full refuses every byte) ends each command with status 2 and one sentence, whatever it was writing.
#include <cstdio>
#include <set>

#include "command/command.h"
#include "graph/test_graphs.h"
#include "networks/zoo.h"

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
  // Pictures 0.ppm, 1.ppm ... of a folder "in", of so many channels.
  void write_pictures(int count, int channels) const {
    std::filesystem::create_directories(folder_ / "in");
    for (int i = 0; i < count; ++i) {
      std::string pixels;
      for (int p = 0; p < 16 * 16 * channels; ++p) pixels += static_cast<char>((p * (i + 3) * 7) % 251);
      write("in/" + std::to_string(i) + (channels == 1 ? ".pgm" : ".ppm"),
            (channels == 1 ? "P5" : "P6") + std::string("\n16 16\n255\n") + pixels);
    }
  }
  // Where no file may be longer than so many bytes; what it prints goes nowhere, which has room.
  Said limited(size_t bytes, const std::string& arguments) const {
    const std::string limit = std::to_string(bytes);
    const std::string line = "cd '" + folder_.string() + "'; exec prlimit --fsize=" + limit + ":" + limit +
                             " '" SPARKLE_COMMAND "' " + arguments + " 2>&1 >/dev/null </dev/null";
    Said said;
    std::FILE* pipe = ::popen(line.c_str(), "r");
    if (!pipe) return said;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) said.err += static_cast<char>(c);
    const int status = ::pclose(pipe);
    said.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return said;
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

// The disk is full at any of the writes of a stream's answers: one sentence, whole lines alone, and who goes on has the file of
// an undisturbed run.
TEST_F(CommandDisk, AnswersOfManyItems) {
  if (::system("prlimit --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "this machine has no prlimit";
  save(*zoo_network("tiny_chain", {}), "net.onnx");
  write_pictures(6, 3);
  for (const std::string name : {"a.jsonl", "a.csv"}) {
    const std::string command = "run net.onnx in --device cpu --preset unit --top 2 --output " + name;
    ASSERT_EQ(sparkle(command).status, 0);
    const std::string whole = text_of(name);
    std::set<size_t> rooms{0, 1};
    for (size_t end = whole.find('\n'); end != std::string::npos; end = whole.find('\n', end + 1))
      rooms.insert({end, end + 1, end + 2, end + 40});
    for (const size_t room : rooms) {
      if (room >= whole.size()) continue;
      SCOPED_TRACE(name + " with room for " + std::to_string(room) + " bytes of " + std::to_string(whole.size()));
      std::filesystem::remove(path(name));
      const Said said = limited(room, command);
      EXPECT_EQ(said.status, 2);
      EXPECT_EQ(std::count(said.err.begin(), said.err.end(), '\n'), 1) << said.err;
      EXPECT_SAYS(said.err, "The answers '" + name + "' cannot be written: File too large.");
      EXPECT_EQ(text_of(name), whole.substr(0, room == 0 ? 0 : whole.rfind('\n', room - 1) + 1));
      const Said again = sparkle(command);
      EXPECT_EQ(again.status, 0) << again.err;
      EXPECT_EQ(text_of(name), whole);
    }
  }
}

// The same of a picture of an answer: its item has no line, and is answered by who goes on.
TEST_F(CommandDisk, PicturesOfManyAnswers) {
  write_pictures(4, 1);
  const std::string command = "run " + model_ + " in --device cpu --preset unit --task depth --output out";
  const Said undisturbed = sparkle(command);
  ASSERT_EQ(undisturbed.status, 0) << undisturbed.err;
  std::string lines;
  std::vector<std::string> pictures;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "out"))
    (entry.path().extension() == ".jsonl" ? lines : pictures.emplace_back()) = entry.path().filename();
  ASSERT_EQ(pictures.size(), 4u);
  const std::string whole = text_of("out/" + lines);
  for (const std::string& picture : pictures) {
    SCOPED_TRACE(picture);
    std::filesystem::remove_all(folder_ / "out");
    fill(picture);
    EXPECT_SAYS(refusal(command), picture + "' could not be written in full: No space left on device.");
    const std::string there = text_of("out/" + lines);
    EXPECT_EQ(there, whole.substr(0, there.size()));
    EXPECT_LT(there.size(), whole.size());
    EXPECT_TRUE(there.empty() || there.back() == '\n');
    std::filesystem::remove(folder_ / "out" / picture);
    EXPECT_EQ(sparkle(command).status, 0);
    EXPECT_EQ(text_of("out/" + lines), whole);
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
