#include "families/gemm/stored_weights.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "families/gemm/gemm_family.h"

namespace sparkle {
namespace {

WeightFit fit(const std::vector<float>& weights, bool ranges = true) {
  return weight_fit(weights.data(), static_cast<int64_t>(weights.size()), ranges);
}
// Many ordinary weights around one.
WeightFit fit_with(float one, bool ranges = true) {
  std::vector<float> weights(3000, 0.5f);
  weights[2900] = one;
  return fit(weights, ranges);
}
constexpr WeightFit kBoth{Fit::exact, Fit::exact};

TEST(StoredWeights, ExactWhereEveryValueIs) {
  EXPECT_EQ(fit({}), kBoth);
  EXPECT_EQ(fit({0, -0.0f, 1, -2.5f, 0x1p-14f}), kBoth);
  EXPECT_EQ(fit_with(1 + 0x1p-10f), (WeightFit{Fit::exact, Fit::rounded}));
  EXPECT_EQ(fit_with(1 + 0x1p-11f), (WeightFit{Fit::rounded, Fit::rounded}));
  EXPECT_EQ(fit_with(1 + 0x1p-7f), kBoth);
  EXPECT_EQ(fit_with(65504), (WeightFit{Fit::exact, Fit::rounded}));
  // Below 2^-14 f16 has steps of 2^-24; bf16 has the exponents of f32.
  EXPECT_EQ(fit_with(0x1p-24f), kBoth);
  EXPECT_EQ(fit_with(3 * 0x1p-24f), kBoth);
  EXPECT_EQ(fit_with(0x1p-25f), (WeightFit{Fit::rounded, Fit::exact}));
  EXPECT_EQ(fit_with(0x1.8p-24f), (WeightFit{Fit::rounded, Fit::exact}));
  EXPECT_EQ(fit_with(0x1p-15f + 0x1p-25f), (WeightFit{Fit::rounded, Fit::rounded}));
}

TEST(StoredWeights, RangesAreJudgedWhereAsked) {
  EXPECT_EQ(fit_with(65505), (WeightFit{Fit::never, Fit::rounded}));
  EXPECT_EQ(fit_with(-1e6f), (WeightFit{Fit::never, Fit::rounded}));
  EXPECT_EQ(fit_with(65536), (WeightFit{Fit::never, Fit::exact}));
  EXPECT_EQ(fit_with(65505, false), (WeightFit{Fit::rounded, Fit::rounded}));
  EXPECT_EQ(fit_with(3.4e38f), (WeightFit{Fit::never, Fit::never}));
  EXPECT_EQ(fit_with(std::numeric_limits<float>::infinity()), (WeightFit{Fit::never, Fit::never}));
  EXPECT_EQ(fit_with(std::numeric_limits<float>::quiet_NaN()), (WeightFit{Fit::never, Fit::never}));
  // A small weight among ordinary ones does no harm; where all are small f16 has too few steps for them.
  EXPECT_EQ(fit_with(1.2345e-6f), (WeightFit{Fit::rounded, Fit::rounded}));
  EXPECT_EQ(fit(std::vector<float>(3000, 1.2345e-6f)), (WeightFit{Fit::never, Fit::rounded}));
  EXPECT_EQ(fit(std::vector<float>(3000, 1e-4f)), (WeightFit{Fit::rounded, Fit::rounded}));
}

TEST(StoredWeights, EveryVariantHasAType) {
  int narrow = 0;
  for (const Variant& v : gemm_info().variants) {
    const DType stored = stored_weights(v.name);
    EXPECT_EQ(stored == DType::f16, v.name.starts_with("half")) << v.name;
    EXPECT_EQ(stored == DType::bf16, v.name.starts_with("bfloat")) << v.name;
    narrow += stored != DType::f32;
  }
  EXPECT_EQ(narrow, 5);
}

}  // namespace
}  // namespace sparkle
