// The attention reference by hand-computed numbers: who sees whom, rows that see nothing, what the scores hold.
#include <gtest/gtest.h>

#include <cmath>

#include "families/attention/attention.h"
#include "families/registry.h"
#include "families/stage.h"

namespace sparkle {
namespace {

using Floats = std::vector<float>;

HostTensor floats(const Dims& shape, const Floats& values) { return HostTensor::of<float>(DType::f32, shape, values); }

// Two queries of depth 1 over three keys whose values are 1, 2 and 4; all scores are 0 unless q says otherwise.
struct Outcome {
  Floats y, scores;
};
Outcome attend(const AttentionParams& p, const Floats& q = {0, 0}, const HostTensor* mask = nullptr,
               const HostTensor* lengths = nullptr) {
  const HostTensor queries = floats({1, 2, 1}, q), keys = floats({1, 3, 1}, {1, 2, 3}), values = floats({1, 3, 1}, {1, 2, 4});
  const HostTensor y = HostTensor::zeros(DType::f32, {1, 2, 1}), scores = HostTensor::zeros(DType::f32, {1, 2, 3});
  std::vector<TensorView> inputs{queries.view(), keys.view(), values.view()};
  if (mask) inputs.push_back(mask->view());
  if (lengths) inputs.push_back(lengths->view());
  const TensorView out[] = {y.view(), scores.view()};
  attention_info().reference(p, inputs, {out, p.scores == ScoreOutput::none ? 1u : 2u});
  return {{y.data<float>(), y.data<float>() + 2}, {scores.data<float>(), scores.data<float>() + 6}};
}

TEST(AttentionFamily, RangesOfKeys) {
  AttentionParams p;
  const auto range = [&](int64_t query, int64_t length = 8) {
    const KeyRange r = key_range(p, query, 4, 8, length);
    return std::to_string(r.begin) + ".." + std::to_string(r.end);
  };
  EXPECT_EQ(range(1), "0..8");
  EXPECT_EQ(range(1, 5), "0..5");
  p.right = 0;
  EXPECT_EQ(range(1), "0..2");
  p.offset = 3;
  EXPECT_EQ(range(1), "0..5");
  p.left = 1;
  EXPECT_EQ(range(1), "3..5");
  p.offset_from_length = true;  // the last query sees the last key that is valid
  EXPECT_EQ(range(3, 6), "4..6");
  EXPECT_EQ(range(0, 2), "0..0");
}

TEST(AttentionFamily, MeansOfWhatIsSeen) {
  AttentionParams p;
  EXPECT_FLOAT_EQ(attend(p).y[0], 7.0f / 3);
  p.right = 0;
  EXPECT_EQ(attend(p).y, (Floats{1, 1.5f}));
  p = {};
  p.mask = true;
  const HostTensor seen = HostTensor::zeros(DType::boolean, {1, 2, 3});
  seen.bytes[2] = std::byte{1};
  EXPECT_EQ(attend(p, {0, 0}, &seen).y, (Floats{4, 0}));  // a query that sees nothing gives zero
  const HostTensor shorter = floats({1, 2, 2}, {0, 0, 0, -INFINITY});
  EXPECT_EQ(attend(p, {0, 0}, &shorter).y, (Floats{1.5f, 1}));
  p = {};
  p.lengths = true;
  const HostTensor two = HostTensor::of<int64_t>(DType::i64, {1}, {2});
  EXPECT_EQ(attend(p, {0, 0}, nullptr, &two).y, (Floats{1.5f, 1.5f}));
}

TEST(AttentionFamily, ScoresAtEachPoint) {
  AttentionParams p;
  p.scale = 2, p.softcap = 4, p.right = 1;
  const Floats q{1, 0};
  const auto capped = [](double s) { return static_cast<float>(4 * std::tanh(s / 4)); };
  p.scores = ScoreOutput::raw;
  EXPECT_EQ(attend(p, q).scores, (Floats{2, 4, 6, 0, 0, 0}));
  p.scores = ScoreOutput::capped;
  EXPECT_EQ(attend(p, q).scores, (Floats{capped(2), capped(4), capped(6), 0, 0, 0}));
  p.scores = ScoreOutput::masked;
  EXPECT_EQ(attend(p, q).scores, (Floats{capped(2), capped(4), -INFINITY, 0, 0, 0}));
  p.scores = ScoreOutput::softmax;
  const auto first = static_cast<float>(1 / (1 + std::exp(static_cast<double>(capped(4)) - static_cast<double>(capped(2)))));
  const Floats weights = attend(p, q).scores;
  EXPECT_NEAR(weights[0], first, 1e-6);
  EXPECT_EQ(weights[2], 0);
  EXPECT_FLOAT_EQ(weights[3], 1.0f / 3);
}

TEST(AttentionFamily, TextRoundTrip) {
  AttentionParams p;
  p.scale = 0.125, p.mask = true, p.right = 0, p.scores = ScoreOutput::masked;
  const auto parsed = params_from_text(Family::attention, to_text(p));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(get<AttentionParams>(*parsed), p);
}

}  // namespace
}  // namespace sparkle
