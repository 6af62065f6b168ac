// Devices by their names and runs by threads of their own, as a program outside writes them.
#include <gtest/gtest.h>

#include <cstring>
#include <sparkle/pipeline.hpp>

#include "api_testing.h"

namespace {

using sparkle::testing::kModel, sparkle::testing::picture, sparkle::testing::status_of;

TEST(Api, DevicesByName) {
  const sparkle::Device device("cpu"), one("cpu", 1);
  EXPECT_NE(device.describe().find("\"kind\": \"cpu\""), std::string::npos) << device.describe();
  EXPECT_NE(one.describe().find("\"cores\": 1,"), std::string::npos) << one.describe();
  const sparkle::Tensor x = picture(7, 9);
  const auto expected = sparkle::Session(one, kModel).run({x});
  const auto outputs = sparkle::Session(sparkle::Device("cpu"), kModel).run({x});
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].shape(), sparkle::Shape({1, 3, 14, 18}));
  EXPECT_EQ(outputs[0].bytes(), expected[0].bytes());
  const std::string name = "cpu";
  EXPECT_EQ(status_of([&] { sparkle::Device(name.c_str(), 2); }), SPARKLE_OK);
  EXPECT_EQ(status_of([] { sparkle::Device(nullptr); }), SPARKLE_OK);  // "auto"
  EXPECT_EQ(status_of([] { sparkle::Device("abacus"); }), SPARKLE_BAD_USAGE);
  EXPECT_EQ(status_of([] { sparkle::Device("cpu", -1); }), SPARKLE_BAD_USAGE);
}

// The session and the inputs may go before the future is asked.
TEST(Api, RunsAreFutures) {
  std::vector<std::future<std::vector<sparkle::Tensor>>> futures;
  std::vector<sparkle::Tensor> expected;
  {
    const sparkle::Session session(sparkle::Device("cpu", 1), kModel);
    for (unsigned seed = 1; seed <= 4; ++seed) {
      const sparkle::Tensor x = picture(5, 6, seed);
      expected.push_back(session.run({x})[0]);
      futures.push_back(sparkle::run_async(session, {x}));
    }
  }
  for (size_t i = 0; i < futures.size(); ++i) {
    const std::vector<sparkle::Tensor> outputs = futures[i].get();
    ASSERT_EQ(outputs.size(), 1u);
    ASSERT_EQ(outputs[0].shape(), expected[i].shape());
    EXPECT_EQ(std::memcmp(outputs[0].data(), expected[i].data(), expected[i].bytes()), 0) << i;
  }
}

TEST(Api, FuturesThrowWhatWasWrong) {
  const sparkle::Session session(sparkle::Device("cpu", 1), kModel);
  auto wrong = sparkle::run_async(session, {sparkle::Tensor(sparkle::Type::f32, {1, 4, 5, 6})});
  EXPECT_EQ(status_of([&] { wrong.get(); }), SPARKLE_BAD_INPUT);
  auto none = sparkle::run_async(session, {});
  EXPECT_EQ(status_of([&] { none.get(); }), SPARKLE_BAD_INPUT);
}

}  // namespace
