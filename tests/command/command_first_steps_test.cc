// What goes wrong in the first ten minutes with `sparkle`: each gets one sentence that names what, where and what to do.
#include <nlohmann/json.hpp>

#include "command/command.h"
#include "onnx/npy.h"
#include "onnx/test_model.h"

namespace sparkle::testing {
namespace {
namespace fs = std::filesystem;

const std::string kUpscale = (kSource / "models/upscale2x.onnx").string();

class FirstSteps : public Command {
 protected:
  std::string save_model(const TestModel& model, const std::string& name) const {
    write(name, model.bytes());
    return path(name);
  }
  // Two inputs, f32 [n, 3] and i64 [n].
  std::string two_inputs() const {
    TestModel model(13);
    model.input("values", {1, 3}).input("rows", {1}, DType::i64).output("y").node("Gather", {"values", "rows"}, {"y"});
    for (int i = 0; i < 2; ++i)
      model.graph().mutable_input(i)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param(
          "n");
    model.with("axis", int64_t{0});
    return save_model(model, "two.onnx");
  }
};

TEST_F(FirstSteps, ModelsThatCannotRunNameEveryNode) {
  TestModel model(17);
  model.input("x", {1, 3}).output("y");
  model.node("Foo", {"x"}, {"a"}).node("Bernoulli", {"a"}, {"b"}).node("Foo", {"b"}, {"y"});
  const std::string file = save_model(model, "strange.onnx");
  for (const std::string& command :
       {"run " + file, "explain " + file, "bench --model " + file, "tune " + file, "compile " + file + " -o out.sparkle"}) {
    const Said said = sparkle(command);
    EXPECT_EQ(said.status, 2) << command;
    EXPECT_SAYS(
        said.err,
        "strange.onnx' has 3 nodes that cannot run here (Foo x2, Bernoulli x1); export it without them (docs/operators.md "
        "lists what is supported).\n");
    EXPECT_SAYS(said.err, "\n  Foo x2: ONNX has no operator of this name: 'Foo_0', 'Foo_2'\n");
    EXPECT_SAYS(said.err, "\n  Bernoulli x1: this operator is not supported: 'Bernoulli_1'\n");
  }
  const auto json = nlohmann::json::parse(sparkle("run " + file + " --json").out)["error"];
  EXPECT_EQ(json["reason"], "operator_not_served");
  EXPECT_EQ(json["message"].get<std::string>().find('\n'), std::string::npos);
  EXPECT_EQ(json["details"], (nlohmann::json{"Foo x2: ONNX has no operator of this name: 'Foo_0', 'Foo_2'",
                                             "Bernoulli x1: this operator is not supported: 'Bernoulli_1'"}));
  EXPECT_EQ(sparkle("run " + kUpscale + " --shape 1x3x8x8 --json --threads 1").status, 0);
}

TEST_F(FirstSteps, TypesThatAreDeclaredWronglyAreRefusedWhenOpened) {
  TestModel stored(18), truths(13), early(19), strange(18);
  stored.input("x", {2, 3}).output("y", {2, 3}, DType::bf16).node("Relu", {"x"}, {"y"});
  truths.input("a", {2, 3}).input("b", {2, 3}).output("y").node("Less", {"a", "b"}, {"y"});
  early.input("x", {2, 3}).output("y").node("Gelu", {"x"}, {"y"});
  strange.input("x", {2, 3}).output("y").node("Foo\x1b[31m\n\r\x07", {"x"}, {"y"});
  const auto refused = [&](const TestModel& model) { return sparkle("run " + save_model(model, "model.onnx")).err; };
  EXPECT_SAYS(refused(stored), "the model declares this output as bf16, but its nodes compute f32");
  EXPECT_SAYS(refused(truths), "the model declares this output as f32, but its nodes compute bool");
  EXPECT_SAYS(refused(early), "the model imports opset 19, but this operator came with opset 20");
  const std::string said = refused(strange);  // of the type as of names: nothing steers the terminal
  EXPECT_SAYS(said, "Foo\\x1b[31m");
  EXPECT_TRUE(std::none_of(said.begin(), said.end(), [](char c) { return c >= 0 && c < ' ' && c != '\n'; })) << said;
}

// Sizes that tools have left behind are said once and not believed.
TEST_F(FirstSteps, SizesThatAreDeclaredWronglyAreSaid) {
  TestModel model(17);
  model.input("x", {2, 3}).output("y", {2, 4}).node("Relu", {"x"}, {"y"});
  const std::string file = save_model(model, "stale.onnx");
  for (const std::string& command : {"run " + file, "explain " + file, "bench --model " + file + " --runs 2",
                                     "compile " + file + " -o stale.sparkle", "tune --seconds 1e-9 --tuning store " + file}) {
    const Said said = sparkle(command);
    EXPECT_EQ(said.status, 0) << command << said.err;
    EXPECT_EQ(said.err,
              "sparkle: 'test': the model declares its output 'y' with the shape 2x4, but for these inputs its nodes compute "
              "2x3, which is what it has.\n")
        << command;
  }
  EXPECT_SAYS(sparkle("run " + file).out, "2x3");
  EXPECT_EQ(sparkle("run stale.sparkle").err, "");  // its sizes are the real ones
}

TEST_F(FirstSteps, WhatIsNoModel) {
  const auto file = [&](const std::string& name, const std::string& bytes) {
    write(name, bytes);
    return refusal("run " + name);
  };
  EXPECT_SAYS(refusal("run https://example.com/resnet.onnx"), "it is an address, and only files are; download it");
  EXPECT_SAYS(refusal("run '~/resnet.onnx'"), "'~' stands for the home folder in a shell alone");
  EXPECT_SAYS(refusal("run ''"), "the path is empty");
  EXPECT_SAYS(refusal("run missing.onnx"), "'missing.onnx' cannot be read: No such file or directory");
  fs::copy_file(kUpscale, path("net.onnx"));
  EXPECT_SAYS(refusal("run net"), "there is no such file; did you mean 'net.onnx'?");
  EXPECT_SAYS(refusal("run ."), "it is a folder; the model in it is './net.onnx'");
  fs::copy_file(kUpscale, path("other.onnx"));
  EXPECT_SAYS(refusal("run ."), "it is a folder; give one of the 2 models in it, as './net.onnx'");
  fs::create_directory(path("empty"));
  EXPECT_SAYS(refusal("run empty"), "it is a folder, and no .onnx file is in it");
  fs::create_directory(path("saved"));
  write("saved/saved_model.pb", "x");
  EXPECT_SAYS(refusal("run saved"), "it is a folder of TensorFlow (SavedModel); convert it with tf2onnx");
  EXPECT_SAYS(file("a.tflite", std::string("\x1c\0\0\0TFL3....", 12)), "is no ONNX model but a TensorFlow Lite model; convert");
  EXPECT_SAYS(file("a.pt", std::string("PK\x03\x04....", 8)), "a ZIP archive, as PyTorch's files (.pt, .pth) are; export");
  EXPECT_SAYS(file("b.pth", "\x80\x02}q"), "but a PyTorch file; export the model with torch.onnx.export");
  EXPECT_SAYS(file("a.h5", "\x89HDF\r\n"), "but a Keras or HDF5 file");
  EXPECT_SAYS(file("a.mlmodel", "\x08\x01 coreml"), "a Core ML model");
  EXPECT_SAYS(file("page.onnx", "<!DOCTYPE html><html>"), "a web page, not the file it links to");
  EXPECT_SAYS(file("lfs.onnx", "version https://git-lfs.github.com/spec/v1\noid"), "fetch that with 'git lfs pull'");
  EXPECT_SAYS(file("nothing.onnx", ""), "'nothing.onnx' is no ONNX model: it is empty");
  EXPECT_SAYS(file("cat.png", "\x89PNG\r\n"), "a picture; the model comes first");
}

TEST_F(FirstSteps, InputsThatDoNotFit) {
  const std::string two = two_inputs();
  const std::string both = "'values' (f32 nx3), 'rows' (i64 n)";
  ASSERT_TRUE(write_npy(path("v.npy"), HostTensor::zeros(DType::f32, {2, 3})).ok());
  ASSERT_TRUE(write_npy(path("d.npy"), HostTensor::zeros(DType::f64, {2, 3})).ok());
  ASSERT_TRUE(write_npy(path("r.npy"), HostTensor::zeros(DType::i64, {2})).ok());
  EXPECT_EQ(sparkle("run " + two + " v.npy r.npy").status, 0);
  EXPECT_SAYS(refusal("run " + two + " v.npy"),
              "The model has 2 inputs; 1 file is given; give one for each, in this order: " + both);
  EXPECT_SAYS(refusal("run " + two + " d.npy r.npy"), "Input 'values' is f32 in the model, f64 was given; convert it");
  EXPECT_SAYS(refusal("run " + two + " --shape vals=2x3"), "the model has no input 'vals'; it has " + both);
  EXPECT_SAYS(refusal("run " + two + " --shape 2x3"),
              "does not say of which input, as in NAME=1x3x224x224; the model has " + both);
  write("cat.ppm", "P6\n8 8\n255\n" + std::string(8 * 8 * 3, 'x'));
  EXPECT_SAYS(refusal("run " + two + " cat.ppm r.npy"),
              "Input 'values' (f32 nx3) does not take a picture; give a .npy or .pb tensor");
  EXPECT_SAYS(refusal("run " + kUpscale), "The model leaves sizes of input 'image' (f32 Nx3xHxW) open");
  EXPECT_SAYS(refusal("run " + kUpscale), "give them with --shape 'image=1x3x224x224'");
}

TEST_F(FirstSteps, ShapesThatAreNearlyRight) {
  TestModel model(13);
  model.input("x", {1, 3, 8, 6}).output("y").node("Relu", {"x"}, {"y"});
  const std::string file = save_model(model, "relu.onnx");
  const auto said = [&](const Dims& shape) {
    EXPECT_TRUE(write_npy(path("x.npy"), HostTensor::zeros(DType::f32, shape)).ok());
    return refusal("run " + file + " x.npy");
  };
  EXPECT_SAYS(said({3, 8, 6}), "3x8x6 was given; put the batch axis in front of it: 1x3x8x6.");
  EXPECT_SAYS(said({1, 8, 6, 3}), "1x8x6x3 was given; its channels are last, transpose it to 1x3x8x6.");
  EXPECT_SAYS(said({8, 6, 3}), "8x6x3 was given; its channels are last and it has no batch axis, bring it to 1x3x8x6.");
  EXPECT_SAYS(said({1, 3, 8, 7}), "has shape 1x3x8x6 in the model, 1x3x8x7 was given.");
}

TEST_F(FirstSteps, ExternalDataThatIsNotThere) {
  TestModel model(13);
  model.input("x", {4}).output("y").constant("w", HostTensor::zeros(DType::f32, {4})).node("Add", {"x", "w"}, {"y"});
  auto& tensor = *model.graph().mutable_initializer(0);
  tensor.clear_raw_data();
  tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
  auto& entry = *tensor.add_external_data();
  entry.set_key("location");
  entry.set_value("weights.bin");
  const std::string said = refusal("run " + save_model(model, "external.onnx"));
  EXPECT_SAYS(said, "tensor 'w' keeps its data in 'weights.bin', and there is no such file in '");
  EXPECT_SAYS(said, "put it beside the model");
}

TEST_F(FirstSteps, CommandLinesThatAreNotUnderstood) {
  EXPECT_SAYS(refusal(""), "A command is missing, as in 'sparkle run MODEL'; see 'sparkle --help'.");
  EXPECT_SAYS(refusal("run"), "model is required; see 'sparkle run --help'.");
  EXPECT_SAYS(refusal("run " + kUpscale + " --algoritm gemm"), "--algoritm; did you mean --algorithm?");
  EXPECT_SAYS(refusal("run " + kUpscale + " --nonsense"), "--nonsense; see 'sparkle run --help'.");
  EXPECT_SAYS(refusal(kUpscale), "to run a model write 'sparkle run ");
  EXPECT_SAYS(refusal("run " + kUpscale + " --shape image=1x3x8x"), "'1x3x8x' is not a shape; write sizes with x between");
  EXPECT_SAYS(refusal("run " + kUpscale + " --device gpu"), "There is no device 'gpu'; use auto, cpu, vulkan");
  EXPECT_SAYS(refusal("run " + kUpscale + " '~/cat.png'"), "'~' stands for the home folder in a shell alone");
  EXPECT_SAYS(refusal("run " + kUpscale + " https://example.com/cat.png"), "it is an address, and only files are");
  EXPECT_SAYS(sparkle("help").out, "Usage: ");
  EXPECT_SAYS(sparkle("help run").out, "--preset");
}

TEST_F(FirstSteps, HelpNamesTheDevicesThatThereAre) {
  EXPECT_SAYS(sparkle("--help").out, "Vulkan");
  for (const char* command : {"devices", "run", "bench", "explain", "compile", "verify", "tune", "eval"}) {
    const Said said = sparkle(std::string(command) + " --help");
    EXPECT_EQ(said.status, 0) << command;
    EXPECT_SAYS(said.out, "vulkan");
    EXPECT_SAYS(said.out, "reference");
    const bool describes = std::string(command) == "devices" || std::string(command) == "explain";
    EXPECT_EQ(contains(said.out, "FILE.json"), describes) << command;
  }
}

}  // namespace
}  // namespace sparkle::testing
