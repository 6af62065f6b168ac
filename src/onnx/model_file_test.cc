// Models come back as they were written: all of ../shared/data, byte for byte of every field, with weights inside and beside.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/folder_testing.h"
#include "onnx/model_file.h"
#include "onnx/test_model.h"

namespace sparkle {
namespace {
namespace fs = std::filesystem;
using testing::TestModel;

using ModelFile = testing::FolderTest;

std::vector<fs::path> models() {
  std::vector<fs::path> found;
  const fs::path data = fs::path(SPARKLE_SOURCE_DIR) / "../shared/data";
  for (const char* part : {"models", "onnx-conformance/light"})
    if (fs::exists(data / part))
      for (const auto& entry : fs::recursive_directory_iterator(data / part))
        if (entry.path().extension() == ".onnx") found.push_back(entry.path());
  return found;
}

std::string text_of(const ::onnx::ModelProto& model) { return model.SerializeAsString(); }

TEST_F(ModelFile, ComesBackAsItWas) {
  const auto all = models();
  if (all.empty()) GTEST_SKIP() << "../shared/data is not here";
  for (const fs::path& source : all) {
    auto model = read_model_proto(source.string());
    ASSERT_TRUE(model.ok()) << model.error().message;
    const std::string copy = path("copy.onnx");
    ASSERT_TRUE(write_model_proto(*model, copy).ok());
    auto again = read_model_proto(copy);
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(text_of(*again), text_of(*model)) << source;
    EXPECT_FALSE(fs::exists(copy + ".data"));
  }
}

TEST_F(ModelFile, LargeModelsKeepTheirWeightsBeside) {
  TestModel m(13);
  std::vector<float> values(3000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  m.input("x", {1, 3000}).output("y").constant("w", HostTensor::of(DType::f32, {3000}, values));
  m.constant("v", HostTensor::of(DType::f32, {2000}, std::vector<float>(2000, 3.f)))
      .constant("s", HostTensor::of(DType::f32, {1}, std::vector<float>{2}));
  m.node("Mul", {"x", "w"}, {"xw"}).node("Mul", {"xw", "s"}, {"y"});
  const std::string file = path("model.onnx");
  ASSERT_TRUE(write_model_proto(m.model, file, 1000).ok());
  EXPECT_EQ(fs::file_size(file + ".data"), 12288u + 8000u);
  EXPECT_LT(fs::file_size(file), 1000u);
  auto graph = read_onnx(file);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  auto again = read_model_proto(file);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(text_of(*again), text_of(m.model));
}

TEST_F(ModelFile, SaysWhatIsNoModel) {
  EXPECT_EQ(read_model_proto(path("none.onnx")).error().reason, Reason::file_unreadable);
  ASSERT_TRUE(write_model_proto({}, path("empty.onnx")).ok());
  EXPECT_EQ(read_model_proto(path("empty.onnx")).error().reason, Reason::bad_format);
}

}  // namespace
}  // namespace sparkle
