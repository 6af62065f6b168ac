// Taps of sampling by hand-computed numbers: alignment, paddings, ties, places that are no numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "families/deform/deform_taps.h"
#include "families/sample/sample_taps.h"
#include "families/stage.h"

namespace sparkle {
namespace {

using Indices = std::vector<int64_t>;

Indices indices(const SampleTaps& taps) { return {taps.index.begin(), taps.index.begin() + taps.count}; }

TEST(SampleFamily, AlignmentOfTheEdges) {
  SampleParams p;
  // Four elements: -1 is the outer edge of the first, half an element before its centre.
  SampleTaps taps = sample_taps(p, -1, 4);
  EXPECT_EQ(indices(taps), (Indices{-1, 0}));
  EXPECT_EQ(taps.weight[1], 0.5f);
  p.align_corners = true;
  taps = sample_taps(p, -1, 4);
  EXPECT_EQ(taps.index[0], 0);
  EXPECT_EQ(taps.weight[0], 1);
}

TEST(SampleFamily, Paddings) {
  SampleParams p;
  p.mode = SampleMode::nearest;
  // -2 lies at -2.5 of four elements, which rounds to even: two before the first.
  EXPECT_EQ(indices(sample_taps(p, -2, 4)), Indices{-1});
  p.padding = SamplePadding::border;
  EXPECT_EQ(indices(sample_taps(p, -2, 4)), Indices{0});
  EXPECT_EQ(indices(sample_taps(p, 9, 4)), Indices{3});
  p.padding = SamplePadding::reflection;
  EXPECT_EQ(indices(sample_taps(p, -2, 4)), Indices{1});  // mirrored at -0.5: -2 -> 1
  p.align_corners = true;
  EXPECT_EQ(indices(sample_taps(p, 5.0f / 3, 4)), Indices{2});  // mirrored at 3: 4 -> 2
  EXPECT_EQ(indices(sample_taps(p, 0.7f, 1)), Indices{0});
}

TEST(SampleFamily, NoPlaceLeadsOutside) {
  for (const float at : {NAN, INFINITY, -INFINITY, 1e30f, -1e30f})
    for (int mode = 0; mode < 3; ++mode)
      for (int padding = 0; padding < 3; ++padding)
        for (const int64_t size : {1, 5}) {
          const SampleParams p{static_cast<SampleMode>(mode), static_cast<SamplePadding>(padding), size == 1};
          for (int64_t index : indices(sample_taps(p, at, size))) {
            EXPECT_LT(index, size);
            EXPECT_GE(index, p.padding == SamplePadding::zeros ? -1 : 0);
          }
        }
}

TEST(SampleFamily, CubicWeightsSumToOne) {
  SampleParams p;
  p.mode = SampleMode::cubic, p.align_corners = true;
  const SampleTaps taps = sample_taps(p, 0.1f, 9);
  EXPECT_EQ(indices(taps), (Indices{3, 4, 5, 6}));
  EXPECT_NEAR(taps.weight[0] + taps.weight[1] + taps.weight[2] + taps.weight[3], 1, 1e-6);
}

// Places in the type of the layer: a third is not the float next to it.
TEST(SampleFamily, DoublesHaveDoublePlaces) {
  SampleParams p;
  p.align_corners = true;
  const double third = 1.0 / 3;
  EXPECT_NEAR(sample_taps_in(p, third, 2).weight[1], (third + 1) / 2, 1e-16);
  EXPECT_NEAR(deform_taps_in(third, 0.0, 4, 4).weight[2], third, 1e-16);
}

TEST(DeformFamily, TapsOutsideAreLeftOut) {
  EXPECT_EQ(deform_taps(0.25f, 0.5f, 4, 4).count, 4);
  const DeformTaps corner = deform_taps(-0.25f, 3.5f, 4, 4);
  ASSERT_EQ(corner.count, 1);
  EXPECT_EQ(corner.h[0], 0);
  EXPECT_EQ(corner.w[0], 3);
  EXPECT_FLOAT_EQ(corner.weight[0], 0.375f);
  EXPECT_EQ(deform_taps(-1, 0, 4, 4).count, 0);
  EXPECT_EQ(deform_taps(NAN, 0, 4, 4).count, 0);
}

}  // namespace
}  // namespace sparkle
