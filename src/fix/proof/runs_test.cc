// Random samples of a proof: of every type that an input may have they are values, not zeros, and the same for a seed.
#include "fix/proof/runs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "families/values/element.h"
#include "graph/test_graphs.h"

namespace sparkle::fix {
namespace {

TEST(RandomInputs, AreValuesInEveryType) {
  const Dims shape{4, 16};
  for (int i = 0; i < kDTypes; ++i) {
    const DType type = static_cast<DType>(i);
    testing::GraphBuilder b;
    b.input(shape, type);
    const auto one = random_inputs(b.graph, {{shape, std::nullopt}}, 3),
               again = random_inputs(b.graph, {{shape, std::nullopt}}, 3),
               other = random_inputs(b.graph, {{shape, std::nullopt}}, 4);
    ASSERT_EQ(one.size(), 1u);
    std::set<double> values;
    for (int64_t e = 0; e < one[0].elements(); ++e) {
      const double value = load_element(type, one[0].bytes.get() + e * size_of(type));
      EXPECT_TRUE(std::isfinite(value)) << name_of(type);
      values.insert(value);
    }
    EXPECT_GE(values.size(), type == DType::boolean ? 2u : type == DType::i2 || type == DType::u2 ? 4u : 5u) << name_of(type);
    const auto bytes = static_cast<size_t>(one[0].size_bytes());
    EXPECT_EQ(std::memcmp(one[0].bytes.get(), again[0].bytes.get(), bytes), 0) << name_of(type);
    EXPECT_NE(std::memcmp(one[0].bytes.get(), other[0].bytes.get(), bytes), 0) << name_of(type);
  }
}

}  // namespace
}  // namespace sparkle::fix
