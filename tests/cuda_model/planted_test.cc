// Kernels with one mistake each (plant.py): the model catches every one, and says what is wrong. Without a mistake they pass.
#include <gtest/gtest.h>

#include "backends/cuda/kernels/attention/flash_testing.h"
#include "backends/cuda/kernels/gemm_testing.h"
#include "cuda_model/few_testing.h"
#include "cuda_model/model.h"

namespace sparkle::cuda {
namespace {

struct Mistake {
  const char* name;
  const char* said;  // by one of a few seeds; empty: a difference in the result will do
};

constexpr GemmVariant kMma{"", Operand::f16, GemmLoader::chunks, 80, 64, 64, 32, 32, 32, 4, 128, 1, 1, 4 * 128 * 64};
constexpr GemmVariant kTf32{"", Operand::tf32, GemmLoader::chunks, 80, 64, 64, 16, 32, 32, 4, 128, 1, 1, 4 * 128 * 64};
constexpr GemmVariant kElements{"", Operand::f16, GemmLoader::elements, 80, 64, 64, 32, 32, 32, 2, 128, 1, 1, 4 * 128 * 64};
constexpr GemmVariant kWgmma{
    "", Operand::f16, GemmLoader::tma, 90, kWgmmaM, 64, 64, 16, 64, 3, 384, 1, 1, gemm_wgmma_shared_bytes(kWgmmaM, 64, 3)};
constexpr GemmVariant kBytes{
    "", Operand::u8, GemmLoader::tma, 90, kWgmmaM, 128, 128, 16, 128, 3, 384, 1, 1, gemm_wgmma_shared_bytes(kWgmmaM, 128, 3)};
constexpr GemmVariant kFloat8{
    "", Operand::e4m3, GemmLoader::tma, 90, kWgmmaM, 64, 128, 16, 64, 3, 384, 1, 1, gemm_wgmma_shared_bytes(kWgmmaM, 64, 3)};
constexpr GemmVariant kCluster{
    "", Operand::f16, GemmLoader::tma, 90, kWgmmaM, 64, 64, 16, 64, 3, 384, 2, 1, gemm_wgmma_shared_bytes(kWgmmaM, 64, 3)};
constexpr GemmVariant kBoxes{
    "", Operand::f16, GemmLoader::tma, 90, kWgmmaM, 128, 64, 16, 128, 3, 384, 1, 1, gemm_wgmma_shared_bytes(kWgmmaM, 128, 3)};

constexpr GemmVariant kHalo{"", Operand::f16, GemmLoader::halo, 90,  kHaloM, kHaloN, 64,
                            16, kHaloM / 2,   kHaloTaps,        384, 1,      1,      halo_shared_bytes()};

constexpr GemmVariant kWmma{"", Operand::f16, GemmLoader::elements, 80, 64, 16, 16, 16, 16, 1, 128, 1, 4, 4 * 2048};

bool is_few(std::string_view name) { return name.find("few") != std::string_view::npos; }
// Several images a block, rows that are no multiples of anything; of one channel where rows of outputs share registers.
FewLayer planted_few_layer(bool rows) {
  FewLayer v;
  v.n = 3, v.c = rows ? 1 : 2, v.k = rows ? 4 : 7, v.r = v.s = rows ? 5 : 3, v.h = 12, v.w = 22;
  v.p = v.h - v.r + 1, v.q = v.w - v.s + 1;
  if (rows) v.h = 14, v.w = 22, v.p = 10, v.q = 18;
  v.bias = true, v.activation = 1;
  return v;
}

Convolution planted_convolution() {
  Convolution v;
  v.n = 2, v.c = 72, v.k = 72;
  v.size = {1, 9, 11}, v.filter = {1, 3, 3}, v.pad = {0, 1, 1}, v.out = {1, 9, 11};
  v.bias = true, v.activation = 1;
  return v;
}

// A window of keys whose scores grow, and every other time a mask.
AttentionCase planted_attention(uint32_t seed) {
  AttentionCase c;
  c.queries = 150, c.keys = 210, c.mask_keys = 207, c.growth = 0.05;
  c.params.scale = 0.125, c.params.left = 70, c.params.right = 20, c.params.offset = 40;
  c.params.mask = seed % 2 == 0;
  return c;
}

class Planted : public testing::TestWithParam<Mistake> {};

std::string run_planted(GemmVariant variant, const std::string& name, uint32_t seed) {
  const std::string kernel = "sparkle_planted_" + name;
  if (name.find("flash_fma") != name.npos)
    return run_in_model({kernel, DType::f32, 64, 64, 256, false}, planted_attention(seed), seed);
  if (name.find("flash") != name.npos)
    return run_in_model({kernel, DType::f16, 128, 64, 128, true}, planted_attention(seed), seed);
  if (is_few(name)) return run_few_in_model(planted_few_layer(name.find("few_rows") != std::string::npos), seed, 1, kernel);
  variant.kernel = kernel.c_str();
  Convolution v = planted_convolution();
  v.splits = name.starts_with("splits") ? 3 : 1;
  if (name.find("boxes") != name.npos)  // several tiles for a block, of a few steps
    v.n = 5, v.c = 64, v.k = 200, v.filter = {1, 1, 1}, v.pad = {}, v.y_type = Element::f16, v.before = 1;
  if (is_float8(variant.operand)) v.c = 5120, v.size = v.out = {1, 3, 7}, v.filter = {1, 1, 1}, v.pad = {}, v.positive = true;
  if (is_integer(variant.operand)) {
    v.c = 80, v.activation = v.before = 0, v.x_unsigned = true, v.x_zero = 90, v.w_zero = 7, v.y_type = Element::i32;
    if (name.find("boxes") != name.npos) {  // by the engine, where no zero point is outside
      v.k = 208, v.scale = true, v.y_type = Element::u8, v.y_zero = 9;
      if (name.find("outside") != name.npos) v.filter = {1, 3, 3}, v.pad = {0, 1, 1};
      else v.x_zero = 0;
    }
  }
  return run_in_model(variant, v, seed);
}
GemmVariant variant_of(std::string_view name) {
  if (name == "put_unsynchronised" || name == "nothing_elements") return kElements;
  if (name == "tf32_unrounded" || name == "nothing_tf32") return kTf32;
  if (name.starts_with("wmma") || name == "nothing_wmma") return kWmma;
  if (name.starts_with("halo") || name == "nothing_halo") return kHalo;
  if (name.find("bytes_") == 0 || name == "nothing_bytes") return kBytes;
  if (name.find("float8") != name.npos) return kFloat8;
  if (name.find("boxes") != name.npos) return kBoxes;
  if (name.starts_with("cluster") || name == "nothing_cluster") return kCluster;
  for (const char* wgmma :
       {"wrong_phase", "wrong_phase_of_copies", "copies_without_waiting", "wrong_descriptor", "wrong_stride", "let_go_too_soon",
        "sums_read_early", "wgmma_begins_too_soon", "wgmma_half_waits", "wgmma_lets_none_begin", "missing_wgmma_fence",
        "wrong_bytes", "barriers_unsynchronised", "nothing_wgmma"}) {
    if (name == wgmma) return kWgmma;
  }
  return kMma;
}

TEST_P(Planted, IsCaught) {
  const Mistake& mistake = GetParam();
  std::string all;
  bool is_caught = false;
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    const std::string error = run_planted(variant_of(mistake.name), mistake.name, seed);
    is_caught = is_caught || (!error.empty() && error.find(mistake.said) != std::string::npos);
    all += error + "\n";
  }
  EXPECT_TRUE(is_caught) << "expected '" << mistake.said << "' in:\n" << all;
}

constexpr Mistake kMistakes[] = {
    {"early_read", "race: "},
    {"missing_barrier", "race: "},
    {"stage_too_soon", "race: "},
    {"wrong_swizzle", "instead of"},
    {"sums_over_stages", "race: "},
    {"missing_warp_barrier", "instead of"},
    {"splits_left_counted", "a counter is not zero again"},
    {"taps_beyond_the_edge", ""},
    {"put_unsynchronised", "race: "},
    {"tf32_unrounded", "not rounded to tf32"},
    {"wrong_phase", ""},
    {"wrong_phase_of_copies", "the launch hangs"},
    {"copies_without_waiting", ""},
    {"wrong_descriptor", ""},
    {"wrong_stride", ""},
    {"let_go_too_soon", "race: "},
    {"sums_read_early", ""},
    {"missing_wgmma_fence", "no wgmma.fence"},
    {"wrong_bytes", ""},
    {"barriers_unsynchronised", ""},
    {"cluster_counts_its_own", ""},
    {"cluster_lets_go_of_its_own", ""},
    {"cluster_share_to_itself", ""},
    {"cluster_ends_early", "has ended"},
    {"float8_sums_kept_in_tensor_cores", "instead of"},
    {"boxes_overwritten", "instead of"},
    {"boxes_unfenced", "no fence.proxy.async"},
    {"boxes_wrong_swizzle", "instead of"},
    {"boxes_left_behind", ""},
    {"boxes_terms_unsynchronised", "race: "},
    {"boxes_terms_too_soon", "race: "},
    {"boxes_residual_unawaited", "race: "},
    {"bytes_of_pixels_over_boxes", ""},
    {"bytes_outside_by_boxes", "instead of"},
    {"boxes_residual_unfenced", "no fence.proxy.async"},
    {"bytes_of_pixels_unfenced", "no fence.proxy.async"},
    {"boxes_residual_kept", "the launch hangs"},
    {"begins_too_soon", "before griddepcontrol.wait"},
    {"wgmma_begins_too_soon", "griddepcontrol.wait"},
    {"cluster_copies_too_soon", "a tensor copy before griddepcontrol.wait"},
    {"wgmma_half_waits", "ends without griddepcontrol.wait"},
    {"wgmma_lets_none_begin", "never let the kernels behind them begin"},
    {"halo_begins_too_soon", "griddepcontrol.wait"},
    {"bytes_of_pixels_unsynchronised", "race: "},
    {"bytes_outside_forgotten", "instead of"},
    {"few_unshifted", "instead of"},
    {"few_copies_unawaited", ""},
    {"few_image_overwritten", "race: "},
    {"few_image_unsynchronised", "race: "},
    {"few_filters_unsynchronised", "race: "},
    {"few_pairs_beyond", ""},
    {"few_image_not_zero", "instead of"},
    {"few_rows_beyond", ""},
    {"few_rows_unturned", "instead of"},
    {"few_rows_not_a_row_apart", "instead of"},
    {"wmma_half_of_k", "instead of"},
    {"wmma_columns_as_rows", ""},
    {"halo_never_lets_go", "the launch hangs"},
    {"halo_pixels_unawaited", ""},
    {"halo_of_another_tap", "instead of"},
    {"flash_early_read", "race: "},
    {"flash_missing_barrier", "race: "},
    {"flash_stage_too_soon", "race: "},
    {"flash_wrong_rescale", "instead of"},
    {"flash_sum_not_rescaled", "instead of"},
    {"flash_largest_of_a_lane", "instead of"},
    {"flash_wrong_swizzle", "instead of"},
    {"flash_wrong_step", ""},
    {"flash_chunks_crossed", "instead of"},
    {"flash_values_not_transposed", "instead of"},
    {"flash_mask_off_by_one", "instead of"},
    {"flash_window_off_by_one", "instead of"},
    {"flash_keys_beyond_the_last", "instead of"},
    {"flash_mask_of_another_row", ""},
    {"flash_hidden_is_a_number", "instead of"},
    {"flash_result_unsynchronised", "instead of"},
    {"flash_fma_keys_unsynchronised", "race: "},
    {"flash_fma_values_unsynchronised", "race: "},
    {"flash_fma_values_unawaited", "race: "},
    {"flash_fma_sum_not_rescaled", "instead of"},
};
std::string name_of_mistake(const testing::TestParamInfo<Mistake>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Mistakes, Planted, testing::ValuesIn(kMistakes), name_of_mistake);

TEST(Planted, EveryMistakeIsLookedFor) {
  for (const cuda_model::Kernel* kernel : cuda_model::all_kernels()) {
    const std::string name = kernel->name, prefix = "sparkle_planted_";
    if (!name.starts_with(prefix) || name.starts_with(prefix + "nothing")) continue;
    bool is_listed = false;
    for (const Mistake& mistake : kMistakes) is_listed = is_listed || name == prefix + mistake.name;
    EXPECT_TRUE(is_listed) << name;
  }
}

TEST(Planted, WithoutAMistakeNothingIsCaught) {
  for (const char* name : {"nothing_mma", "nothing_elements", "nothing_tf32", "nothing_wgmma", "nothing_cluster",
                           "nothing_bytes", "nothing_float8", "nothing_boxes", "nothing_halo", "nothing_flash",
                           "nothing_flash_fma", "nothing_few", "nothing_few_rows", "nothing_wmma"}) {
    for (uint32_t seed = 1; seed <= 3; ++seed) EXPECT_EQ(run_planted(variant_of(name), name, seed), "") << name;
  }
}

}  // namespace
}  // namespace sparkle::cuda
