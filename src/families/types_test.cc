// The table of element types: what it says of single stages, in which type programs are computed, and that the page of the
// documentation is printed from it.
#include "families/pointwise/arithmetic.h"
#include "families/types.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "families/copy/copy.h"
#include "families/gemm/gemm.h"
#include "families/pool/pool.h"
#include "families/reduce/reduce.h"

namespace sparkle {
namespace {

TEST(Types, RowsFollowTheForm) {
  EXPECT_TRUE(type_row(PointwiseOp::add).types.has(DType::u64));
  EXPECT_FALSE(type_row(PointwiseOp::add).types.has(DType::boolean));
  EXPECT_FALSE(type_row(PointwiseOp::exp).types.has(DType::i32));
  EXPECT_TRUE(type_row(PointwiseOp::select).types.has(DType::boolean));
  EXPECT_TRUE(type_row(StageParams(GemmParams{Loader::dense, 1, {}, {}})).types.has(DType::i64));
  EXPECT_FALSE(type_row(StageParams(GemmParams{Loader::window, 1, {}, {}})).types.has(DType::i64));
  EXPECT_TRUE(type_row(StageParams(PoolParams{PoolKind::max, {}, false, 2})).types.has(DType::u8));
  EXPECT_FALSE(type_row(StageParams(PoolParams{PoolKind::average, {}, false, 2})).types.has(DType::u8));
  EXPECT_TRUE(type_row(StageParams(ReduceParams{ReduceKind::max, {}})).types.has(DType::boolean));
  EXPECT_FALSE(type_row(StageParams(ReduceParams{ReduceKind::sum, {}})).types.has(DType::boolean));
  EXPECT_EQ(to_text(kFloats), "f32, f16, bf16, f64");
  for (int t = static_cast<int>(DType::f8e4m3fn); t < kDTypes; ++t) {
    const DType type = static_cast<DType>(t);
    EXPECT_TRUE(is_narrow(type) && kNarrow.has(type) && !kComputed.has(type));
    EXPECT_TRUE(type_row(PointwiseOp::identity).types.has(type) && !type_row(PointwiseOp::select).types.has(type));
    EXPECT_TRUE(type_row(StageParams(CopyParams{})).types.has(type));
    EXPECT_EQ(dtype_from(name_of(type)), type);
  }
}

TEST(Types, EveryFamilyHasARow) {
  for (int i = 0; i < kFamilies; ++i) {
    const FamilyInfo& family = info(static_cast<Family>(i));
    EXPECT_FALSE(family.types.empty()) << family.name << " says nothing of element types";
    EXPECT_TRUE(family.types.size() == 1 || family.type_form) << family.name << " does not tell its forms apart";
  }
}

TEST(Types, ArithmeticOfPrograms) {
  using T = std::vector<DType>;
  const auto type = [](const T& operands, DType result) {
    return pointwise_arithmetic(std::span<const DType>(operands), result);
  };
  EXPECT_EQ(type({DType::f16, DType::bf16}, DType::f16), DType::f32);
  EXPECT_EQ(type({DType::boolean, DType::i64, DType::i64}, DType::i64), DType::i64);
  EXPECT_EQ(type({DType::boolean, DType::boolean}, DType::boolean), DType::f32);
  EXPECT_EQ(type({DType::u8, DType::f32}, DType::f32), DType::f32);
  EXPECT_EQ(type({DType::f32, DType::i64}, DType::f32), DType::f64);  // a power: 2^24 is no bound for the exponent
  EXPECT_EQ(type({DType::i32}, DType::f32), DType::f32);              // a cast
  EXPECT_EQ(type({DType::i64}, DType::f64), DType::f64);
  EXPECT_EQ(type({DType::u16}, DType::i8), DType::u16);
  EXPECT_EQ(type({DType::boolean}, DType::i32), DType::i32);
  EXPECT_EQ(type({}, DType::f32), DType::f32);
  EXPECT_EQ(type({DType::f8e5m2}, DType::f8e8m0), DType::f32);  // casts of the narrow types
  EXPECT_EQ(type({DType::f8e4m3fn}, DType::i64), DType::f32);
  EXPECT_EQ(type({DType::i64}, DType::f8e4m3fn), DType::f64);
  EXPECT_EQ(type({DType::i4}, DType::i64), DType::i8);
  EXPECT_EQ(type({DType::boolean}, DType::u2), DType::u8);
  EXPECT_EQ(type({DType::u4}, DType::f16), DType::f32);
}

TEST(Types, TheDocumentedTableIsThisOne) {
  const std::string path = SPARKLE_SOURCE_DIR "/docs/element_types.md";
  if (std::getenv("SPARKLE_UPDATE_DOCS")) std::ofstream(path) << type_table();
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), type_table()) << path
                                      << " is older than the rows of the families; run this test with SPARKLE_UPDATE_DOCS=1.";
}

}  // namespace
}  // namespace sparkle
