// The public interface on model files that it looks at or rewrites: what keeps them off a device's fast path, and fixed ones.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sparkle/sparkle.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api_testing.h"

namespace {

using sparkle::testing::kModel, sparkle::testing::picture, sparkle::testing::status_of;

TEST(Api, ModelsAreFixed) {
  const sparkle::Device device;
  std::string folder = ::testing::TempDir() + "/sparkle_api_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string file = folder + "/upscale.onnx";
  const auto x = picture(12, 16);
  sparkle::FixOptions options;
  options.precision = "fp16";
  options.target = "h200";
  const std::string report = sparkle::fix(device, kModel, file, options, {x});
  EXPECT_NE(report.find("pad_channels"), std::string::npos) << report;
  EXPECT_NE(report.find("\"cosine\""), std::string::npos) << report;
  const auto wanted = sparkle::Session(device, kModel).run({x}), found = sparkle::Session(device, file).run({x});
  ASSERT_EQ(found[0].shape(), wanted[0].shape());
  EXPECT_NEAR(found[0].data<float>()[5], wanted[0].data<float>()[5], 0.02);
  std::remove(file.c_str());
  for (const char* wrong : {"fp12", "tf32"}) {
    options.precision = wrong;
    EXPECT_EQ(status_of([&] { sparkle::fix(device, kModel, file, options, {x}); }), SPARKLE_BAD_USAGE);
  }
  options.precision = "fp16";
  options.max_extra = -1;  // none: what is no multiple stays so
  options.keep_wide = {"nobody"};
  EXPECT_EQ(status_of([&] { sparkle::fix(device, kModel, file, options, {x}); }), SPARKLE_BAD_USAGE);
  options.keep_wide = {"/head/Conv"};
  const std::string kept = sparkle::fix(device, kModel, file, options, {x});
  EXPECT_NE(kept.find("asked for"), std::string::npos) << kept;
  options.keep_wide.clear();
  options.min_cosine = 1;  // which rounding cannot reach
  EXPECT_EQ(status_of([&] { sparkle::fix(device, kModel, file, options, {x}); }), SPARKLE_NOT_SERVED);
  options = {};
  options.shapes = {{"image", {1, 3, 8, 8}}};  // two random samples
  EXPECT_NE(sparkle::fix(device, kModel, file, options).find("\"random_samples\": true"), std::string::npos);
  std::remove(file.c_str());
  options.percentile = 20;
  EXPECT_EQ(status_of([&] { sparkle::fix(device, kModel, file, options); }), SPARKLE_BAD_USAGE);
  options = {};
  options.only = "polish";
  EXPECT_EQ(status_of([&] { sparkle::fix(device, kModel, file, options, {x}); }), SPARKLE_BAD_USAGE);
  EXPECT_EQ(status_of([&] { sparkle::fix(device, kModel, file); }), SPARKLE_BAD_USAGE);  // its sizes are open
  EXPECT_FALSE(std::ifstream(file).good());
}

TEST(Api, ChecksForDevicesThatAreNotHere) {
  sparkle::CheckOptions options;
  options.shapes = {{"image", {1, 3, 96, 128}}};
  std::string page;
  const std::string json = sparkle::check(kModel, "h200,avx512", options, &page);
  for (const char* part : {"NVIDIA H200", "wide_type", "\"avx512\""}) EXPECT_NE(json.find(part), std::string::npos) << part;
  EXPECT_EQ(page.rfind("<!doctype html>", 0), 0u);
  EXPECT_EQ(status_of([&] { sparkle::check(kModel, "h200"); }), SPARKLE_BAD_USAGE);
  EXPECT_EQ(status_of([&] { sparkle::check(kModel, "z80", options); }), SPARKLE_BAD_USAGE);
  EXPECT_EQ(status_of([&] { sparkle::check("missing.onnx", "h200"); }), SPARKLE_FILE_UNREADABLE);
  char* text = nullptr;
  EXPECT_EQ(sparkle_check(nullptr, "h200", nullptr, &text, nullptr), SPARKLE_BAD_USAGE);
  options.measure = true;
  options.threads = 1;
  EXPECT_NE(sparkle::check(kModel, "cpu", options).find("measured_ms"), std::string::npos);
  EXPECT_EQ(status_of([&] { sparkle::check(kModel, "h200", options); }), SPARKLE_BAD_USAGE);  // it is not here
  options.threads = -1;
  EXPECT_EQ(status_of([&] { sparkle::check(kModel, "cpu", options); }), SPARKLE_BAD_USAGE);
}

TEST(Api, ADeviceIsChosenForAModel) {
  sparkle::ChoiceOptions options;
  options.shapes = {{"image", {1, 3, 12, 16}}};
  options.threads = 1;
  const std::string json = sparkle::choose_device(kModel, options);
  EXPECT_NE(json.find("\"device\": \""), std::string::npos) << json;
  EXPECT_NE(json.find("\"why\": \""), std::string::npos) << json;
  options.threads = -1;
  EXPECT_EQ(status_of([&] { sparkle::choose_device(kModel, options); }), SPARKLE_BAD_USAGE);
  options.threads = 1, options.rows = -1;
  EXPECT_EQ(status_of([&] { sparkle::choose_device(kModel, options); }), SPARKLE_BAD_USAGE);
  char* text = nullptr;
  sparkle_choice_options given{};
  EXPECT_EQ(sparkle_device_choose(kModel.c_str(), &given, &text), SPARKLE_BAD_USAGE);  // no size
  EXPECT_EQ(sparkle_device_choose(nullptr, nullptr, &text), SPARKLE_BAD_USAGE);
  EXPECT_EQ(sparkle_device_choose(kModel.c_str(), nullptr, nullptr), SPARKLE_BAD_USAGE);
}

TEST(Api, EventsTellWhatFellBack) {
  ::setenv("SPARKLE_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  sparkle::DeviceOptions missing;
  missing.name = "cuda";
  EXPECT_EQ(status_of([&] { sparkle::Device device(missing); }), SPARKLE_DEVICE_UNUSABLE);
  missing.fallback = "often";
  EXPECT_EQ(status_of([&] { sparkle::Device device(missing); }), SPARKLE_BAD_USAGE);
  missing.fallback = "allow";
  missing.name = "cuda:x";
  EXPECT_EQ(status_of([&] { sparkle::Device device(missing); }), SPARKLE_BAD_USAGE);
  missing.name = "cuda:99";
  const sparkle::Device device(missing);
  ::unsetenv("SPARKLE_CUDA_DRIVER");
  sparkle::SessionOptions options;
  options.variant = "plain";
  const sparkle::Session session(device, kModel, options);
  ASSERT_EQ(session.events().size(), 1u);
  EXPECT_EQ(session.events()[0].what, "device");
  EXPECT_EQ(session.events()[0].reason, "device_unusable");
  const sparkle::Tensor image = picture(8, 8);
  session.run({image});
  const auto events = session.events();
  ASSERT_GT(events.size(), 1u);
  EXPECT_EQ(events[1].what, "operator");
  EXPECT_FALSE(events[1].layer.empty());
  sparkle_event event{};
  EXPECT_EQ(sparkle_session_event(session.c(), events.size(), &event), SPARKLE_BAD_USAGE);
  options.fallback = "forbid";
  const sparkle::Session strict(device, kModel, options);
  EXPECT_EQ(status_of([&] { strict.run({image}); }), SPARKLE_NOT_SERVED);
  options.fallback = "never";
  EXPECT_EQ(status_of([&] { sparkle::Session(device, kModel, options); }), SPARKLE_BAD_USAGE);
}

}  // namespace
