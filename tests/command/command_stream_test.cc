// `sparkle run` on many items: each answered once and in order, whatever is unreadable and whenever it was stopped.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "command/command.h"
#include "graph/test_graphs.h"
#include "networks/zoo.h"
#include "onnx/model_file.h"
#include "onnx/npy.h"
#include "run/session_testing.h"

namespace sparkle::testing {
namespace {

namespace fs = std::filesystem;

class CommandStream : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    model_ = save(*zoo_network("tiny_chain", {}), "net.onnx");
    fs::create_directory(folder_ / "pictures");
    for (int i = 0; i < kPictures; ++i) write(name_of(i), picture(i));
  }
  static constexpr int kPictures = 24;
  static std::string name_of(int i) { return "pictures/" + std::string(i < 10 ? "0" : "") + std::to_string(i) + ".ppm"; }
  static std::string pixels(int i) {
    std::string text;
    for (int p = 0; p < 16 * 16 * 3; ++p) text += static_cast<char>((p * (i + 3) * 7) % 251);
    return text;
  }
  static std::string picture(int i) { return "P6\n16 16\n255\n" + pixels(i); }

  std::vector<nlohmann::json> lines_of(const std::string& name) const {
    std::vector<nlohmann::json> lines;
    std::istringstream text(text_of(name));
    for (std::string line; std::getline(text, line);) {
      lines.push_back(nlohmann::json::parse(line, nullptr, false));
      EXPECT_TRUE(lines.back().is_object()) << line;
    }
    return lines;
  }
  // A line of classes without its run, the last probability to five places.
  static std::string rounded(std::string line) {
    line.resize(line.rfind(','));
    return line.substr(0, line.rfind(',') + 6);
  }
  std::string run_text(const std::string& rest) const { return "run net.onnx " + rest + " --preset unit"; }
  std::string model_;
};

TEST_F(CommandStream, AFolderIsAnsweredInOrder) {
  const Said said = sparkle(run_text("pictures --output a.jsonl"));
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_SAYS(said.out, "24 items answered");
  const auto lines = lines_of("a.jsonl");
  ASSERT_EQ(lines.size(), static_cast<size_t>(kPictures));
  for (int i = 0; i < kPictures; ++i) {
    EXPECT_EQ(lines[static_cast<size_t>(i)]["item"], name_of(i));
    // The same as a run of its own.
    if (i % 8 != 0) continue;
    const auto alone = nlohmann::json::parse(sparkle(run_text(name_of(i)) + " --json").out, nullptr, false);
    EXPECT_EQ(alone["outputs"], lines[static_cast<size_t>(i)]["outputs"]) << i;
  }
  EXPECT_EQ(sparkle(run_text("'pictures/*.ppm' --output b.jsonl")).status, 0);
  EXPECT_EQ(text_of("b.jsonl"), text_of("a.jsonl"));
  const Said out = sparkle(run_text(name_of(0) + " " + name_of(1)));
  EXPECT_EQ(out.out, text_of("a.jsonl").substr(0, out.out.size()));
  EXPECT_SAYS(out.err, "2 items answered");
}

TEST_F(CommandStream, CsvHasTheClassesAndResumesWhereItStopped) {
  write("labels.txt", "zero\none, \"quoted\"\n2\n3\n4\n5\n6\n7\n8\n9\n");
  const std::string rest = run_text("pictures --labels labels.txt --top 2") + " --output ";
  ASSERT_EQ(sparkle(rest + "whole.csv").status, 0);
  const std::string whole = text_of("whole.csv");
  EXPECT_EQ(whole.substr(0, whole.find('\n')), "item,error,class1,label1,probability1,class2,label2,probability2,run");
  EXPECT_EQ(std::count(whole.begin(), whole.end(), '\n'), kPictures + 1);
  // Stopped at any byte: the whole file all the same.
  for (const size_t bytes : {size_t{0}, size_t{10}, whole.find('\n') + 1, whole.size() / 2, whole.size() - 1, whole.size()}) {
    write("part.csv", whole.substr(0, bytes));
    const Said said = sparkle(rest + "part.csv");
    EXPECT_EQ(said.status, 0) << said.err;
    EXPECT_EQ(text_of("part.csv"), whole) << "stopped at byte " << bytes;
  }
  write("part.csv", whole.substr(0, whole.size() / 2));
  EXPECT_SAYS(sparkle(rest + "part.csv").out, "had been before");
}

// Answers of one file are all of the same model, preparation and labels; errors of before are not forgotten.
TEST_F(CommandStream, ResumesItsOwnRunAlone) {
  write(name_of(3), "P6\n16 16\n255\nshort");
  fs::create_directory(folder_ / "other");
  save(*zoo_network("tiny_chain", {.seed = 9}), "other/net.onnx");
  for (const std::string name : {"a.csv", "a.jsonl"}) {
    const std::string to = "pictures --output " + name;
    EXPECT_EQ(sparkle(run_text(to)).status, 1);
    const std::string whole = text_of(name);
    const Said again = sparkle(run_text(to));
    EXPECT_EQ(again.status, 1);
    EXPECT_SAYS(again.out, "0 items answered, 24 had been before (1 of them with an error; these are not tried again");
    for (const std::string& other : {"run other/net.onnx " + to + " --preset unit", "run net.onnx " + to + " --preset raw",
                                     run_text(to) + " --threshold 0.25"})
      EXPECT_SAYS(refusal(other), "is an answer of another model, preparation or set of labels than are given now");
    EXPECT_EQ(text_of(name), whole);
  }
}

// So are those of files of weights beside the model.
TEST_F(CommandStream, OtherWeightsAreAnotherModel) {
  auto model = read_model_proto((folder_ / "net.onnx").string());
  ASSERT_TRUE(model.ok());
  ASSERT_TRUE(write_model_proto(std::move(*model), (folder_ / "apart.onnx").string(), 1000).ok());
  const std::string data = text_of("apart.onnx.data"), command = "run apart.onnx pictures --output a.jsonl --preset unit";
  ASSERT_FALSE(data.empty());
  EXPECT_EQ(sparkle(command).status, 0);
  EXPECT_EQ(sparkle(command).status, 0);
  std::string other = data;
  other[other.size() - 1] ^= 1;
  write("apart.onnx.data", other);
  EXPECT_SAYS(refusal(command), "is an answer of another model, preparation or set of labels than are given now");
  write("apart.onnx.data", data);
  EXPECT_EQ(sparkle(command).status, 0);
}

TEST_F(CommandStream, KilledAndGoneOnWithIsTheSameFile) {
  ASSERT_EQ(sparkle(run_text("pictures --output whole.jsonl")).status, 0);
  for (const char* seconds : {"0.02", "0.03", "0.05", "0.1"}) {
    fs::remove(folder_ / "part.jsonl");
    sparkle(run_text("pictures --output part.jsonl"), "timeout -s KILL " + std::string(seconds));
    EXPECT_EQ(sparkle(run_text("pictures --output part.jsonl")).status, 0);
    EXPECT_EQ(text_of("part.jsonl"), text_of("whole.jsonl")) << "killed after " << seconds << " s";
  }
}

TEST_F(CommandStream, UnreadableFilesAreNamedAndSkipped) {
  for (int i = 0; i < kPictures; i += 5) write(name_of(i), i % 2 ? "" : "P6\n16 16\n255\nshort");
  const Said said = sparkle(run_text("pictures --output a.jsonl"));
  EXPECT_EQ(said.status, 1);
  EXPECT_SAYS(said.out, "19 items answered, 5 could not be read");
  const auto lines = lines_of("a.jsonl");
  ASSERT_EQ(lines.size(), static_cast<size_t>(kPictures));
  for (int i = 0; i < kPictures; ++i) {
    EXPECT_EQ(lines[static_cast<size_t>(i)].contains("error"), i % 5 == 0) << i;
    if (i % 5 == 0) {
      EXPECT_SAYS(said.err, name_of(i));
    }
  }
}

TEST_F(CommandStream, BatchesGiveTheSameAnswers) {
  ZooOptions options;
  options.batch = 4;
  save(*zoo_network("tiny_chain", options), "four.onnx");
  ASSERT_EQ(sparkle("run four.onnx pictures --preset unit --top 1 --batch 4 --output four.csv").status, 0);
  ASSERT_EQ(sparkle(run_text("pictures --top 1 --output one.csv")).status, 0);
  std::istringstream four(text_of("four.csv")), one(text_of("one.csv"));
  // Classes are the same; probabilities may end in another digit.
  for (std::string a, b; std::getline(four, a) && std::getline(one, b);) EXPECT_EQ(rounded(a), rounded(b));
  EXPECT_SAYS(refusal("run four.onnx pictures --preset unit --batch 3 --output x.csv"), "--batch 3 does not fit the model");
  // 22 of them: the last batch is not full.
  fs::remove(folder_ / name_of(0)), fs::remove(folder_ / name_of(1));
  const Said said = sparkle("run four.onnx pictures --preset unit --batch 4 --output rest.jsonl");
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_EQ(lines_of("rest.jsonl").size(), 22u);
}

// The model is made for one item; where its operators keep items apart it takes more.
TEST_F(CommandStream, AModelForOneItemIsGivenMore) {
  ASSERT_EQ(sparkle(run_text("pictures --top 1 --output one.csv")).status, 0);
  for (const char* device : {"cpu", "cpu,cpu"}) {
    fs::remove(folder_ / "five.csv");
    const Said said = sparkle(run_text("pictures --top 1 --batch 5 --output five.csv --device " + std::string(device)));
    ASSERT_EQ(said.status, 0) << said.err;
    std::istringstream five(text_of("five.csv")), one(text_of("one.csv"));
    int lines = 0;
    for (std::string a, b; std::getline(five, a) && std::getline(one, b); ++lines) EXPECT_EQ(rounded(a), rounded(b));
    EXPECT_EQ(lines, kPictures + 1);
  }
  GraphBuilder b;
  save(b.done(b.op("Transpose", TransposeOp{{1, 0, 2, 3}}, {b.input({1, 3, 16, 16})})), "mixed.onnx");
  EXPECT_SAYS(refusal("run mixed.onnx pictures --preset unit --batch 5 --output x.jsonl"),
              "is made for one item a run and cannot take 5 of them: node 'n0' (Transpose) moves the axis of the items");
}

// Each item has its answer, guessed or asked for, alone and in batches; what is no picture has none.
TEST_F(CommandStream, ItemsHaveAnswersOfTheirOwn) {
  const auto save_network = [&](int64_t rows, const std::string& name) {
    GraphBuilder b;
    const TensorId weights = b.floats({2, 3, 1, 1}, {1, 0, 0, 0, 0.5f, 0.6f});
    save(b.done(b.op("Conv", ConvOp{}, {b.input({rows, 3, 16, 16}), weights})), name);
  };
  save_network(1, "seg.onnx"), save_network(4, "four.onnx");
  for (const char* words : {"seg.onnx", "seg.onnx --batch 5", "four.onnx --batch 4", "four.onnx --batch 4 --task segment"}) {
    fs::remove(folder_ / "s.jsonl");
    const Said said = sparkle("run " + std::string(words) + " pictures --preset unit --output s.jsonl");
    ASSERT_EQ(said.status, 0) << said.err;
    EXPECT_SAYS(said.out,
                std::string(words).ends_with("t") ? "task     segment, as asked for" : "task     segment, guessed from");
    const auto lines = lines_of("s.jsonl");
    ASSERT_EQ(lines.size(), static_cast<size_t>(kPictures));
    for (int i = 0; i < kPictures; i += 7) {
      const auto alone =
          nlohmann::json::parse(sparkle("run seg.onnx " + name_of(i) + " --preset unit --json").out, nullptr, false);
      EXPECT_EQ(lines[static_cast<size_t>(i)]["answer"]["classes"], alone["answer"]["classes"]) << i << words;
      EXPECT_EQ(lines[static_cast<size_t>(i)]["answer"]["width"], 16);
    }
  }
  const Said embedded = sparkle("run seg.onnx " + name_of(0) + " " + name_of(1) + " --preset unit --task embed");
  EXPECT_EQ(embedded.status, 0) << embedded.err;
  EXPECT_SAYS(embedded.out, "\"embedding\":[");
  EXPECT_SAYS(refusal("run seg.onnx pictures --preset unit --task segment --output s.csv"), "CSV holds classes");
  ASSERT_EQ(sparkle("run seg.onnx " + name_of(0) + " --preset unit --task upscale --output x.jsonl").status, 1);  // it does not
  EXPECT_SAYS(text_of("x.jsonl"), "The task upscale does not fit");
}

// Rows of a file, alone and in batches, have the answers that they have as files of their own; in a batch nothing but rows
// goes.
TEST_F(CommandStream, RowsOfAFileAreItems) {
  const HostTensor rows = random_tensor(DType::f32, {7, 3, 16, 16}, 5);
  ASSERT_TRUE(write_npy(path("rows.npy"), rows).ok());
  for (int64_t i = 0; i < 7; ++i) {
    HostTensor row{DType::f32, {1, 3, 16, 16}, nullptr};
    row.bytes = std::shared_ptr<std::byte[]>(rows.bytes, rows.bytes.get() + i * row.size_bytes());
    ASSERT_TRUE(write_npy(path("row" + std::to_string(i) + ".npy"), row).ok());
  }
  ASSERT_EQ(sparkle("run net.onnx 'row[0-6].npy' --top 1 --output one.csv").status, 0);
  const std::string one = text_of("one.csv");
  for (const char* batch : {"", "--batch 1", "--batch 3", "--batch 7", "--batch 64"}) {
    fs::remove(folder_ / "rows.csv");
    const Said said = sparkle("run net.onnx rows.npy --top 1 --output rows.csv " + std::string(batch));
    ASSERT_EQ(said.status, 0) << batch << said.err;
    std::istringstream all(text_of("rows.csv")), alone(one);
    int lines = 0;
    for (std::string a, b; std::getline(all, a) && std::getline(alone, b); ++lines) {
      if (lines == 0) continue;
      EXPECT_EQ(a.substr(0, a.find(',')), "rows.npy[" + std::to_string(lines - 1) + "]");
      a = a.substr(a.find(',')), b = b.substr(b.find(','));
      EXPECT_EQ(rounded(a), rounded(b)) << batch;
    }
    EXPECT_EQ(lines, 8);
  }
  const Said lines = sparkle("run net.onnx rows.npy");
  EXPECT_EQ(lines.status, 0) << lines.err;
  EXPECT_EQ(std::count(lines.out.begin(), lines.out.end(), '\n'), 7);
  // Other shapes beside rows, no rows, and no batch axis at all.
  ASSERT_TRUE(write_npy(path("flat.npy"), random_tensor(DType::f32, {3, 16, 16}, 6)).ok());
  ASSERT_TRUE(write_npy(path("none.npy"), random_tensor(DType::f32, {0, 3, 16, 16}, 6)).ok());
  ASSERT_TRUE(write_npy(path("scalar.npy"), random_tensor(DType::f32, {}, 6)).ok());
  const Said mixed =
      sparkle("run net.onnx flat.npy row0.npy none.npy rows.npy scalar.npy row1.npy --batch 4 --output mixed.jsonl");
  EXPECT_EQ(mixed.status, 1);
  EXPECT_SAYS(mixed.out, "9 items answered, 3 could not be read;");
  EXPECT_SAYS(mixed.err, "'none.npy' is 0x3x16x16, and an item of a batch is one row");
  EXPECT_SAYS(mixed.err, "'flat.npy' is 3x16x16, and an item of a batch is one row");
  EXPECT_EQ(lines_of("mixed.jsonl").size(), 12u);
}

TEST_F(CommandStream, FramesComeThroughAPipe) {
  std::string frames;
  for (int i = 0; i < 7; ++i) frames += pixels(i);
  write("frames.rgb", frames);
  ASSERT_EQ(sparkle(run_text("pictures --output files.jsonl")).status, 0);
  const auto files = lines_of("files.jsonl");
  const Said piped =
      run("/bin/sh", "-c '" SPARKLE_COMMAND " run net.onnx --preset unit --frames 16x16 - --output f.jsonl <frames.rgb'", "");
  EXPECT_EQ(piped.status, 0) << piped.err;
  const auto lines = lines_of("f.jsonl");
  ASSERT_EQ(lines.size(), 7u);
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(lines[i]["item"], std::to_string(i));
    EXPECT_EQ(lines[i]["outputs"], files[i]["outputs"]);
  }
  write("short.rgb", frames.substr(0, frames.size() - 5));
  const Said cut = sparkle(run_text("--frames 16x16 short.rgb --output s.jsonl"));
  EXPECT_EQ(cut.status, 1);
  EXPECT_SAYS(cut.err, "Frame 6 ends after 763 of its 768 bytes");
  const Said live = sparkle(run_text("--frames 16x16 --live frames.rgb --output l.jsonl"));
  EXPECT_EQ(live.status, 0) << live.err;
  EXPECT_SAYS(live.out, " dropped");
  EXPECT_EQ(lines_of("l.jsonl").size(), 7u);
}

TEST_F(CommandStream, WhatDoesNotGoTogetherIsASentence) {
  EXPECT_SAYS(refusal(run_text("pictures --output folder")), "write --output FILE.jsonl or FILE.csv");
  EXPECT_SAYS(refusal(run_text("pictures --repeat 3 --output a.csv")), "is for one run, and many items are given");
  fs::create_directory(folder_ / "empty");
  EXPECT_SAYS(refusal(run_text("empty")), "is a folder without pictures");
  EXPECT_SAYS(refusal(run_text("'none*.png'")), "No file fits");
  EXPECT_SAYS(refusal(run_text("pictures --live --output a.csv")), "it goes with --frames");
  EXPECT_SAYS(refusal(run_text("--frames 16 frames.rgb")), "is no size of frames; write 1280x720");
  ASSERT_EQ(sparkle(run_text("pictures --output a.jsonl")).status, 0);
  EXPECT_SAYS(refusal(run_text(name_of(3) + " " + name_of(4) + " --output a.jsonl")), "line 1 is about 'pictures/00.ppm'");
  save(*zoo_network("tiny_residual", {}), "other.onnx");
  EXPECT_SAYS(refusal("run other.onnx pictures --preset unit --output a.jsonl"), "is an answer of 'net.onnx'");
  write("text.jsonl", "hello\n");
  EXPECT_SAYS(refusal(run_text("pictures --output text.jsonl")), "line 1 is no answer");
  EXPECT_EQ(text_of("text.jsonl"), "hello\n");
}

// Items behind one that is not there yet are read and prepared meanwhile: they come through pipes whose other ends a test
// holds, the first one last.
TEST_F(CommandStream, ItemsAreReadAhead) {
  constexpr int kPipes = 4;
  int pipes[kPipes];
  std::string names;
  for (int i = 0; i < kPipes; ++i) {
    const std::string name = "pipe" + std::to_string(i) + ".ppm";
    ASSERT_EQ(::mkfifo(path(name).c_str(), 0600), 0);
    pipes[i] = ::open(path(name).c_str(), O_RDWR | O_CLOEXEC);  // waits for nobody
    ASSERT_GE(pipes[i], 0);
    names += name + " ";
  }
  Said said;
  std::thread command([&] { said = sparkle(run_text(names + "--threads 2 --output a.jsonl"), "timeout 60"); });
  // False: nobody has come to read it.
  const auto give = [&](int i) {
    const std::string bytes = picture(i);
    bool read = ::write(pipes[i], bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    int left = static_cast<int>(bytes.size());
    for (int tries = 0; read && left > 0 && tries < 30000; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      read = ::ioctl(pipes[i], FIONREAD, &left) == 0;
    }
    ::close(pipes[i]);
    return read && left == 0;
  };
  for (int i = 1; i < kPipes; ++i) EXPECT_TRUE(give(i)) << i;
  EXPECT_EQ(text_of("a.jsonl"), "");
  EXPECT_TRUE(give(0));
  command.join();
  EXPECT_EQ(said.status, 0) << said.err;
  const auto lines = lines_of("a.jsonl");
  ASSERT_EQ(lines.size(), static_cast<size_t>(kPipes));
  ASSERT_EQ(sparkle(run_text("pictures --output files.jsonl")).status, 0);
  const auto files = lines_of("files.jsonl");
  for (size_t i = 0; i < kPipes; ++i) EXPECT_EQ(lines[i]["outputs"], files[i]["outputs"]) << i;
}

// Requirements are held against the plans of items, before any is answered.
TEST_F(CommandStream, ARequirementThatIsNotMetIsStatus3) {
  for (const char* required : {"device=vulkan", "matrix"}) {
    const std::string unit = " --unit avx2 --require ";  // no matrix unit
    const Said said = sparkle(run_text("pictures --device cpu --output a.jsonl" + unit + required));
    if (said.err.find("--unit") != std::string::npos) GTEST_SKIP() << said.err;  // another CPU
    EXPECT_EQ(said.status, 3) << said.err;
    EXPECT_SAYS(said.err, std::string("--require ") + required + " is not met");
    EXPECT_EQ(text_of("a.jsonl"), "");
  }
  EXPECT_EQ(sparkle(run_text("pictures --device cpu --require device=cpu --output a.jsonl")).status, 0);
  EXPECT_EQ(lines_of("a.jsonl").size(), static_cast<size_t>(kPictures));
}

// What is written to a full disk is said; nothing hangs.
TEST_F(CommandStream, AFullDiskEndsTheStream) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  const Said said = run("/bin/sh", "-c '" SPARKLE_COMMAND " run net.onnx pictures --preset unit >/dev/full'", "");
  EXPECT_EQ(said.status, 2);
  EXPECT_SAYS(said.err, "Standard output cannot be written: No space left on device.");
}

}  // namespace
}  // namespace sparkle::testing
