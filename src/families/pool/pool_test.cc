// The pool reference by hand-computed numbers: padding, rounding up, positions, windows without elements.
#include <gtest/gtest.h>

#include <cmath>

#include "families/family.h"
#include "families/pool/pool.h"
#include "families/stage.h"
#include "families/windows/taps.h"

namespace sparkle {
namespace {

std::vector<float> pooled(const PoolParams& p, const std::vector<float>& values, int64_t outputs,
                          std::vector<int64_t>* positions = nullptr) {
  const HostTensor x = HostTensor::of<float>(DType::f32, {1, 1, static_cast<int64_t>(values.size())}, values);
  const HostTensor y = HostTensor::zeros(DType::f32, {1, 1, outputs}), i = HostTensor::zeros(DType::i64, {1, 1, outputs});
  const TensorView input = x.view(), out[] = {y.view(), i.view()};
  pool_info().reference(p, {&input, 1}, {out, positions ? 2u : 1u});
  if (positions) positions->assign(i.data<int64_t>(), i.data<int64_t>() + outputs);
  return {y.data<float>(), y.data<float>() + outputs};
}

TEST(Pool, MaximumIgnoresPaddingAndGivesPositions) {
  PoolParams p;
  p.window = {{1, 1, 3}, {1, 1, 1}, {1, 1, 1}, {0, 0, 1}, {0, 0, 1}};
  std::vector<int64_t> positions;
  EXPECT_EQ(pooled(p, {-5, -2, -9, -1}, 4, &positions), (std::vector<float>{-2, -2, -1, -1}));
  EXPECT_EQ(positions, (std::vector<int64_t>{1, 1, 3, 3}));
}

TEST(Pool, AverageCountsPaddingOnlyWhenAsked) {
  PoolParams p;
  p.kind = PoolKind::average;
  p.window = {{1, 1, 2}, {1, 1, 2}, {1, 1, 1}, {0, 0, 1}, {0, 0, 0}};
  // Four elements behind one of padding; rounding up adds a third window that reaches one element beyond the end.
  EXPECT_EQ(pooled(p, {2, 4, 6, 8}, 3), (std::vector<float>{2, 5, 8}));
  p.count_pad = true;
  EXPECT_EQ(pooled(p, {2, 4, 6, 8}, 3), (std::vector<float>{1, 5, 8}));
}

TEST(Pool, WindowsWithoutElements) {
  PoolParams p;
  p.window = {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 1}, {0, 0, 0}};
  EXPECT_EQ(pooled(p, {3}, 2), (std::vector<float>{-INFINITY, 3}));
  p.kind = PoolKind::average;
  EXPECT_TRUE(std::isnan(pooled(p, {3}, 2)[0]));
}

TEST(Pool, PowerMeans) {
  PoolParams p;
  p.kind = PoolKind::lp;
  p.window.filter = {1, 1, 2};
  EXPECT_FLOAT_EQ(pooled(p, {-3, 4}, 1)[0], 5);
  p.p = 1;
  EXPECT_FLOAT_EQ(pooled(p, {-3, 4}, 1)[0], 7);
}

TEST(Pool, NamesSurviveARoundTrip) {
  for (PoolKind kind : {PoolKind::max, PoolKind::average, PoolKind::lp}) {
    PoolKind parsed{};
    ASSERT_TRUE(parse_name(name_of(kind), parsed));
    EXPECT_EQ(parsed, kind);
  }
}

TEST(Taps, MatchCountingOneByOne) {
  for (int64_t pad = -2; pad <= 4; ++pad)
    for (int64_t dilation = 1; dilation <= 4; ++dilation)
      for (int64_t stride = 1; stride <= 3; ++stride) {
        const Axis axis{7, 6, 4, stride, dilation, pad};
        int64_t total = 0;
        for (int64_t o = 0; o < axis.out; ++o) {
          const Taps taps = taps_at(axis, o);
          for (int64_t s = 0; s < axis.filter; ++s) {
            const int64_t at = o * stride + s * dilation - pad;
            const bool inside = at >= 0 && at < axis.in;
            total += inside;
            EXPECT_EQ(inside, s >= taps.begin && s < taps.end)
                << pad << " " << dilation << " " << stride << " " << o << " " << s;
          }
        }
        EXPECT_EQ(static_cast<double>(total), taps_inside(axis));
        int64_t covered = 0;
        for (const TapRange& range : tap_ranges(axis)) covered += range.end - range.begin;
        EXPECT_EQ(covered, axis.out);
      }
}

// In closed form, so that the length of the axis does not matter; a filter as long as the input makes one falling row.
TEST(Taps, EndlessAxesAreCountedAtOnce) {
  constexpr int64_t kLong = int64_t{1} << 40;
  EXPECT_EQ(taps_inside({kLong, kLong, 3, 1, 1, 1}), 3.0 * kLong - 2);
  EXPECT_EQ(taps_inside({kLong, kLong / 2, 2, 2, 1, 0}), static_cast<double>(kLong));
  const int64_t n = int64_t{1} << 20;
  EXPECT_EQ(taps_inside({n, n, n, 1, 1, 0}), static_cast<double>(n) * (n + 1) / 2);
}

}  // namespace
}  // namespace sparkle
