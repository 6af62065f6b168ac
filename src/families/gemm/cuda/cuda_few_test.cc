// How the variant "few" cuts layers: what it refuses and why, and that bands and walks make each row of outputs.
#include "families/gemm/cuda/cuda_few.h"

#include <gtest/gtest.h>

#include <random>

#include "families/gemm/gemm.h"

namespace sparkle {
namespace {

struct Layer {
  int64_t n, c, h, w, k, r, s, pad = 0;
};

Stage stage_of(const Layer& v, DType type = DType::f32) {
  GemmParams p;
  p.operands = OperandType::f16;
  p.window.filter = {1, v.r, v.s}, p.window.pad_begin = p.window.pad_end = {0, v.pad, v.pad};
  const auto planes = [&](const Dims& shape) { return TensorDesc{type, shape, row_major(shape)}; };
  const Dims y{v.n, v.k, v.h + 2 * v.pad - v.r + 1, v.w + 2 * v.pad - v.s + 1};
  return {p, {planes({v.n, v.c, v.h, v.w}), planes({v.k, v.c, v.r, v.s})}, {planes(y)}};
}
Reason refusal(const Stage& stage) {
  Reason why = Reason::none;
  EXPECT_FALSE(few_tile(stage, why).has_value());
  return why;
}
FewTile tile_of(const Stage& stage) {
  Reason why = Reason::none;
  const auto tile = few_tile(stage, why);
  EXPECT_TRUE(tile.has_value()) << sentence_of(why);
  return tile.value_or(FewTile{});
}

constexpr Layer kFirst{10000, 1, 86, 86, 4, 7, 7}, kSecond{10000, 4, 40, 40, 16, 7, 7};

TEST(CudaFew, TakesWholeImagesByCopies) {
  const FewTile first = tile_of(stage_of(kFirst)), second = tile_of(stage_of(kSecond));
  for (const FewTile& t : {first, second}) {
    EXPECT_EQ(t.bands, 1);
    EXPECT_TRUE(t.by_copies);
  }
  EXPECT_EQ(first.walks * first.walk_rows * 2, 80);
  EXPECT_EQ(second.walks, 0);
  EXPECT_EQ(second.kernel.steps, 14);
  EXPECT_EQ(second.kernel.tiles, 4);
  constexpr int64_t kShared = 228 << 10;
  EXPECT_EQ(first.blocks_a_core(kShared), 4);
  EXPECT_EQ(second.blocks_a_core(kShared), 3);
}

TEST(CudaFew, SaysWhatItDoesNotRun) {
  const Stage good = stage_of(kSecond);
  const auto changed = [&](auto change) {
    Stage stage = good;
    change(stage, get<GemmParams>(stage.params));
    return refusal(stage);
  };
  EXPECT_EQ(changed([](Stage&, GemmParams& p) { p.window.stride[2] = 2; }), Reason::filter_not_served);
  EXPECT_EQ(changed([](Stage&, GemmParams& p) { p.window.dilation[1] = 2; }), Reason::filter_not_served);
  EXPECT_EQ(changed([](Stage&, GemmParams& p) { p.groups = 2; }), Reason::groups_not_served);
  EXPECT_EQ(changed([](Stage&, GemmParams& p) { p.epilogue.residuals_after = 1; }), Reason::tail_not_served);
  // In fp32, and where infinities must stay where they are.
  EXPECT_EQ(changed([](Stage&, GemmParams& p) { p.operands = OperandType::own; }), Reason::type_not_served);
  EXPECT_EQ(changed([](Stage& s, GemmParams&) { s.inputs[0].layout = channels_last(s.inputs[0].shape); }),
            Reason::layout_not_served);
  EXPECT_EQ(changed([](Stage& s, GemmParams&) { s.outputs[0].layout = channels_last(s.outputs[0].shape); }),
            Reason::layout_not_served);
  EXPECT_EQ(refusal(stage_of({1, 5, 40, 40, 16, 7, 7})), Reason::filter_not_served);
  EXPECT_EQ(refusal(stage_of({1, 1, 40, 40, 16, 3, 8})), Reason::filter_not_served);
  EXPECT_EQ(refusal(stage_of({1, 4, 8, 100000, 16, 7, 7})), Reason::too_few_registers);
}

TEST(CudaFew, MakesEveryRow) {
  std::mt19937 random(1);
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  for (int i = 0; i < 2000; ++i) {
    Layer v{pick(1, 3), pick(1, 4), 0, 0, pick(1, 32), pick(1, 7), pick(1, 7), pick(0, 3)};
    v.h = v.r + pick(0, 300), v.w = v.s + pick(0, 300);
    const FewTile t = tile_of(stage_of(v, i % 2 ? DType::f16 : DType::f32));
    const int64_t rows = v.h + 2 * v.pad - v.r + 1;
    ASSERT_GE(t.bands * t.rows, rows);
    ASSERT_LT((t.bands - 1) * t.rows, rows);  // none is empty
    ASSERT_GE(t.kernel.steps * 2, t.walks > 0 ? v.r : v.c * v.r);
    ASSERT_GE(t.groups * t.kernel.tiles * 4, v.k);
    ASSERT_LE(t.shared_bytes(), 98 << 10);
    if (t.walks == 0) continue;
    ASSERT_EQ(t.walk_rows % 2, 0);
    ASSERT_LE(t.walk_rows, rows);
    ASSERT_GE(2 * t.walks * t.walk_rows, rows);
  }
}

}  // namespace
}  // namespace sparkle
