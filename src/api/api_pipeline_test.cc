// Pipelines over several sessions as a program outside sees them.
#include <gtest/gtest.h>

#include <cstring>
#include <sparkle/pipeline.hpp>

#include "api_testing.h"

namespace {

using sparkle::testing::kModel, sparkle::testing::status_of;

// One queue over several sessions: the results of runs, in order, and who gave them.
TEST(Api, SessionsShareAPipeline) {
  const sparkle::Session first(sparkle::Device("cpu", 1), kModel), second(sparkle::Device("cpu", 1), kModel);
  std::vector<sparkle::Tensor> items;
  for (int i = 0; i < 12; ++i) {
    sparkle::Tensor x(sparkle::Type::f32, {1, 3, 6, 8});
    for (int e = 0; e < 3 * 6 * 8; ++e) static_cast<float*>(x.data())[e] = static_cast<float>((e * (i + 1)) % 17) / 17;
    items.push_back(x);
  }
  sparkle::PipelineOptions options;
  options.always = true, options.items = 13;
  sparkle::Pipeline pipeline(std::vector<sparkle::Session>{first, second}, options);
  EXPECT_EQ(pipeline.why(), "");
  std::vector<std::future<sparkle::Pipeline::Outputs>> futures;
  for (const sparkle::Tensor& x : items) futures.push_back(pipeline.submit({x}));
  auto wrong = pipeline.submit({sparkle::Tensor(sparkle::Type::f32, {1, 4, 6, 8})});
  for (size_t i = 0; i < items.size(); ++i) {
    const auto got = futures[i].get(), wanted = first.run({items[i]});
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(std::memcmp(got[0].data(), wanted[0].data(), wanted[0].bytes()), 0) << i;
  }
  EXPECT_THROW(wrong.get(), sparkle::Exception);
  pipeline.close();
  EXPECT_EQ(status_of([&] { pipeline.submit({items[0]}); }), SPARKLE_BAD_USAGE);
  const auto shares = pipeline.shares();
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].items + shares[1].items, 12u);
  EXPECT_TRUE(shares[0].used && shares[1].used && !shares[0].lost && !shares[1].lost);
  EXPECT_NE(pipeline.why().find("as asked for"), std::string::npos) << pipeline.why();

  sparkle_session* const list[] = {first.c(), nullptr};
  sparkle_pipeline* opened = nullptr;
  EXPECT_EQ(sparkle_pipeline_open_shared(list, 2, nullptr, &opened), SPARKLE_BAD_USAGE);
  EXPECT_EQ(sparkle_pipeline_open_shared(list, 0, nullptr, &opened), SPARKLE_BAD_USAGE);
  sparkle_pipeline_options given{};
  given.size = sizeof given, given.split = "sometimes";
  EXPECT_EQ(sparkle_pipeline_open_shared(list, 1, &given, &opened), SPARKLE_BAD_USAGE);
  given.split = "always";
  EXPECT_EQ(sparkle_pipeline_open(first.c(), &given, &opened), SPARKLE_BAD_USAGE);
  sparkle_pipeline_share share{};
  share.size = sizeof share;
  const sparkle::Pipeline alone(first);
  EXPECT_THROW((void)alone.why(), sparkle::Exception);
  ASSERT_EQ(sparkle_pipeline_open_shared(list, 1, nullptr, &opened), SPARKLE_OK);
  EXPECT_EQ(sparkle_pipeline_get_share(opened, 0, &share), SPARKLE_OK);
  EXPECT_EQ(sparkle_pipeline_get_share(opened, 1, &share), SPARKLE_BAD_USAGE);
  sparkle_pipeline_close(opened);
  EXPECT_EQ(sparkle_pipeline_drain(nullptr), SPARKLE_BAD_USAGE);
}

}  // namespace
