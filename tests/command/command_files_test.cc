// `sparkle` among files from outside: pipes, devices, folders and names that are not what a command expects, and limits on what
// it may write.
#include <signal.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "base/system/sanitized.h"
#include "command/command.h"
#include "graph/test_graphs.h"
#include "networks/zoo.h"

namespace sparkle::testing {
namespace {

class CommandFiles : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    GraphBuilder b;  // ten classes of a picture
    const TensorId x = b.input({1, 3, 224, 224});
    model_ = save(b.done(b.op("Conv", ConvOp{}, {x, b.weights({10, 3, 224, 224})})), "classifier.onnx");
  }
  // A model whose names steer terminals and are long.
  std::string steering() const {
    GraphBuilder b;
    const TensorId x = b.input({1, 1, 16, 16});
    b.done(b.pointwise(PointwiseOp::sigmoid, {b.op("Conv", ConvOp{}, {x, b.weights({1, 1, 1, 1})})}));
    int number = 0;
    const auto steer = [&](std::string& name) {
      name = "\x1b[31m\r\n\x9b" + std::to_string(++number) + "\xe2\x80\xae" + std::string(1 << 20, 'n');
    };
    for (GraphTensor& t : b.graph.tensors) steer(t.name);
    for (Op& op : b.graph.ops) steer(op.name);
    steer(b.graph.name);
    return save(b.graph, "steering.onnx");
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      const std::string name = entry.path().filename();
      if (name[0] != '.') all.push_back(name);
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  std::string model_;
};

bool steers(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return (c >= 0 && c < ' ' && c != '\n') || c == 0x7f; }) ||
         contains(text, "\x9b") || contains(text, "\xe2\x80\xae");
}

TEST_F(CommandFiles, OnlyRegularFilesAreRead) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  std::filesystem::create_directory(folder_ / "folder");
  for (const std::string what : {"pipe", "/dev/zero", "folder"}) {
    ASSERT_EQ(::symlink(what.c_str(), path("linked.json").c_str()), 0);
    for (const std::string& arguments : {"run " + what, "run " + model_ + " --labels " + what, "run " + model_ + " " + what,
                                         "run " + model_ + " --tuning " + what, "explain " + model_ + " --device linked.json",
                                         "bench --layers " + what, "verify " + what}) {
      const Said said = sparkle(arguments, "timeout 20");
      EXPECT_TRUE(said.status == 1 || said.status == 2) << arguments << said.status << said.out << said.err;
      const std::string text = said.out + said.err;
      EXPECT_TRUE(contains(text, "is a ") || contains(text, "pipe") || contains(text, "neither")) << arguments << ": " << text;
    }
    std::filesystem::remove(folder_ / "linked.json");
  }
  EXPECT_SAYS(refusal("run " + model_ + " --tuning folder"), "it is a folder");
}

// What is kept from earlier runs may have been replaced by anything.
TEST_F(CommandFiles, KeptFilesThatAreNoFilesAreNotWaitedFor) {
  const std::string here = "XDG_CACHE_HOME=$PWD/cache timeout 60";
  ASSERT_EQ(sparkle("devices", here).status, 0);
  std::vector<std::filesystem::path> kept;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "cache"))
    if (entry.is_regular_file()) kept.push_back(entry.path());
  ASSERT_FALSE(kept.empty());
  for (const auto& file : kept) {
    std::filesystem::remove(file);
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  }
  const Said said = sparkle("run " + model_, here);
  EXPECT_EQ(said.status, 0) << said.err;
}

TEST_F(CommandFiles, PipesFromOtherProgramsAreRead) {
  write("layers.csv", "name,c,h,w,k,r,s\nother,8,9,9,8,1,1\nwanted,8,10,10,8,3,3\n");
  const std::string line = "cd '" + folder_.string() +
                           "'; grep -v other layers.csv | '" SPARKLE_COMMAND
                           "' bench --layers /dev/stdin --rounds 1 --json >.out 2>.err";
  EXPECT_EQ(std::system(line.c_str()), 0) << text_of(".err");
  EXPECT_SAYS(text_of(".out"), "wanted");
}

TEST_F(CommandFiles, NamesDoNotSteerTheTerminal) {
  const std::string model = steering();
  for (const std::string& arguments :
       {"run " + model, "run " + model + " --output out", "explain " + model, "explain --candidates " + model,
        "explain --plan " + model, "bench --model " + model + " --runs 2", "compile -o x.sparkle " + model,
        "run --variant plain " + model, "run --shape 1x1x9x9 " + model, "tune --seconds 1e-9 --tuning store " + model,
        "run " + model + " " + model_, "verify " + model, "run --device reference " + model}) {
    const Said said = sparkle(arguments);
    EXPECT_FALSE(steers(said.out + said.err)) << arguments << "\n" << said.out.substr(0, 3000) << said.err.substr(0, 3000);
    if (!contains(arguments, "--plan")) {
      EXPECT_LT(said.out.size() + said.err.size(), 20000u) << arguments;
    }
  }
  const auto json = nlohmann::json::parse(sparkle("explain --json " + model).out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_GT(json["steps"][0]["name"].get<std::string>().size(), size_t{1} << 20);  // whole
  write("bad.csv", "name,c,h,w,k,r,s\na\x1b[31m,8,9,9,8,1,1\n");
  EXPECT_SAYS(refusal("bench --layers bad.csv"), "a\\x1b[31m' holds control characters");
}

// `ulimit -f`: in blocks of 512 or 1024 bytes.
TEST_F(CommandFiles, LimitsOnFilesLeaveNoPart) {
  GraphBuilder b;
  const TensorId x = b.input({1, 1, 300, 300});
  const std::string picture = save(b.done(b.pointwise(PointwiseOp::sigmoid, {x})), "picture.onnx");
  const auto before = names();
  const std::string limit = "ulimit -f 20;";
  EXPECT_SAYS(refusal("run " + picture + " --output .", limit), "could not be written in full: File too large");
  EXPECT_EQ(names(), before);
  EXPECT_SAYS(refusal("compile " + model_ + " -o small.sparkle", limit), "could not be written in full: File too large");
  EXPECT_EQ(names(), before);
  EXPECT_SAYS(refusal("eval 'x * 2' --x 1 -o none/x.npy"), "cannot be written");
}

TEST_F(CommandFiles, AReaderThatHasSeenEnoughIsNoError) {
  for (const std::string& arguments : {"explain --plan " + model_, std::string("--help"), "run " + model_ + " --json"}) {
    const std::string line =
        "cd '" + folder_.string() + "'; { '" SPARKLE_COMMAND "' " + arguments + " 2>.err; echo $? >.status; } | true";
    (void)!std::system(("bash -c \"" + line + "\"").c_str());
    // Most write all before the reader is gone or after; both are no error.
    EXPECT_TRUE(text_of(".status") == std::to_string(128 + SIGPIPE) + "\n" || text_of(".status") == "0\n")
        << arguments << text_of(".status");
    EXPECT_EQ(text_of(".err"), "") << arguments;
  }
  // One that is certainly gone.
  (void)!std::system(("cd '" + folder_.string() + "'; bash -c \"{ sleep 0.5; '" SPARKLE_COMMAND "' explain --plan " + model_ +
                      " 2>.err; echo \\$? >.status; } | true\"")
                         .c_str());
  EXPECT_EQ(text_of(".status"), std::to_string(128 + SIGPIPE) + "\n");
  EXPECT_EQ(text_of(".err"), "");
}

TEST_F(CommandFiles, NumbersAreNumbers) {
  for (const char* number : {"nan", "inf", "-inf", "1e999"}) {
    refusal("run " + model_ + " --accuracy " + number);
    refusal("tune --conv ic8ih8oc8kh3ph1 --tuning store --seconds " + std::string(number));
    refusal("bench --conv ic8ih8oc8kh3ph1 --round-ms " + std::string(number));
    refusal("run " + model_ + " --memory-budget " + number);
    write("x.ppm", "P6 1 1 255\nabc");
    for (const char* option : {"--scale ", "--mean ", "--std ", "--pad-value "})
      refusal("run " + model_ + " x.ppm " + option + number);
  }
  for (const char* number : {"0", "-1"}) refusal("run " + model_ + " --accuracy " + number);
  EXPECT_EQ(sparkle("run " + model_ + " --accuracy 1e-4").status, 0);
}

// 64 million pixels, 192 MB as they are decoded, for a crop of 224x224.
TEST_F(CommandFiles, LargePicturesNeedLittleMoreThanTheirBytes) {
  if (kSanitized) GTEST_SKIP() << "the address sanitizer reserves more memory than any limit";
  std::ifstream in(kSource / "tests/fuzz/seeds/rgb.jpg", std::ios::binary);
  std::string jpeg{std::istreambuf_iterator<char>(in), {}};
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  for (const size_t at : {frame + 5, frame + 7}) jpeg[at] = '\x1f', jpeg[at + 1] = '\x40';  // 8000
  const size_t scan = jpeg.find("\xff\xda");
  ASSERT_NE(scan, std::string::npos);
  jpeg.resize(scan + 14);  // then 500x500 blocks of 16x16 pixels, all grey: four of luminance, two of colour
  for (int block = 0; block < 500 * 500; ++block) jpeg.append("\x28\xa2\x8a\0", 4);
  jpeg += "\xff\xd9";
  write("large.jpg", jpeg);
  const Said said = sparkle("run " + model_ + " large.jpg --threads 1", "ulimit -v 1000000;");
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_SAYS(said.out, "(8000x8000)");
}

TEST_F(CommandFiles, CompiledFilesWithoutTestsAreVerified) {
  ASSERT_EQ(sparkle("compile " + model_ + " -o whole.sparkle").status, 0);
  const Said whole = sparkle("verify whole.sparkle");
  EXPECT_EQ(whole.status, 0) << whole.out << whole.err;
  EXPECT_SAYS(whole.out, "its weights are what was written");
  EXPECT_SAYS(whole.out, "1 passed, 0 failed");
  EXPECT_EQ(sparkle("verify " + model_).status, 1);  // a model alone has nothing to be checked against
  EXPECT_EQ(sparkle("verify " + std::string(5000, 'x')).status, 1);
}

TEST_F(CommandFiles, WhatIsForcedAndCannotServeIsSaid) {
  const std::string conv = "--conv ic8ih9oc8kh5ph2";  // no 3x3 filter
  EXPECT_SAYS(refusal("explain " + conv + " --algorithm winograd2"), "filter_not_served");
  EXPECT_SAYS(refusal("bench " + conv + " --algorithm winograd2 --rounds 1"),
              "The algorithm 'winograd2' supports no layer here");
  for (const std::string& command : {"run " + model_, "compile " + model_ + " -o x.sparkle", "explain " + model_}) {
    const Said said = sparkle(command + " --algorithm winograd2");
    EXPECT_EQ(said.status, 0) << said.err;
    EXPECT_SAYS(said.err, "The algorithm 'winograd2' supports no layer here");
    EXPECT_SAYS(said.err, "filter_not_served");
  }
  GraphBuilder b;
  TensorId x = b.input({1, 8, 12, 12});
  ConvOp conv3;
  conv3.pads_begin = conv3.pads_end = {1, 1};
  x = b.op("Conv", conv3, {x, b.weights({8, 8, 3, 3}, 0.01f)});
  const std::string both = save(b.done(b.op("Conv", ConvOp{}, {x, b.weights({8, 8, 5, 5}, 0.01f)})), "both.onnx");
  for (const std::string command : {"run ", "explain "}) {
    const Said said = sparkle(command + both + " --algorithm winograd2");
    EXPECT_EQ(said.status, 0) << said.err;
    EXPECT_SAYS(said.err, "The algorithm 'winograd2' is not taken for 'n1': filter_not_served");
  }
  EXPECT_EQ(sparkle("run " + both + " --algorithm gemm").err, "");
}

TEST_F(CommandFiles, KernelsAreVerifiedByName) {
  const Said two = sparkle("verify --kernels quantize pool/plain --device cpu --threads 1");
  EXPECT_EQ(two.status, 0) << two.err;
  EXPECT_SAYS(two.out, "PASS  quantize/plain ");
  EXPECT_SAYS(two.out, "PASS  pool/plain ");
  EXPECT_SAYS(two.out, "\n3 passed, 0 failed, 0 skipped\n");
  EXPECT_SAYS(sparkle("verify --kernels pool/plain --device cpu --threads 1").out, "PASS  pool/plain ");
  const Said none = sparkle("verify --kernels poo --device cpu --threads 1");
  EXPECT_EQ(none.status, 2);
  EXPECT_SAYS(none.err, "has no kernel 'poo'; 'sparkle verify --kernels' lists all");
}

}  // namespace
}  // namespace sparkle::testing
