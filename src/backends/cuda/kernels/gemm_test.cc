// Every variant of the gemm family's kernels on random odd shapes, in the functional model against double precision.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/cuda/kernels/activation.cuh"
#include "backends/cuda/kernels/gemm_testing.h"
#include "backends/cuda/kernels/gemm_tma_record.h"

namespace sparkle::cuda {
namespace {

class GemmKernels : public testing::TestWithParam<GemmVariant> {};

Convolution drawn_for(const GemmVariant& variant, std::mt19937& random) {
  const bool elements = variant.loader == GemmLoader::elements;
  Convolution v = random_convolution(random, elements ? 1 : 16 / operand_bytes(variant.operand));
  v.planes = elements && random() % 2 == 0;
  const bool halo = variant.loader == GemmLoader::halo, engine = halo || variant.loader == GemmLoader::tma;
  if (halo) {
    v.stride = {1, 1, 1}, v.splits = 1;
    for (size_t axis = 1; axis < 3; ++axis)
      v.out[axis] = v.size[axis] + 2 * std::max(0, v.pad[axis]) - (v.filter[axis] - 1) * v.dilation[axis];
    for (size_t axis = 1; axis < 3; ++axis) v.pad[axis] = std::max(0, v.pad[axis]);
  }
  if (variant.stages == 1) v.splits = 1;  // the plain one adds no parts
  if (engine) {                           // images, and groups of whole steps of channels
    v.size[0] = v.filter[0] = v.out[0] = v.stride[0] = v.dilation[0] = 1, v.pad[0] = 0;
    if (v.groups > 1) v.c = variant.k * (1 + static_cast<int>(random() % 2));
  }
  if (is_integer(variant.operand)) {
    v.alpha = 1, v.activation = v.before = v.after = 0;
    v.x_unsigned = engine ? variant.operand == Operand::u8 : random() % 2 == 1;
    v.x_zero = static_cast<int>(random() % 100) - (v.x_unsigned ? 0 : 50);
    v.w_unsigned = random() % 2, v.w_zero = random() % 2 ? 1 + static_cast<int>(random() % 90) : 0;
    v.y_zero = static_cast<int>(random() % 20) - 5;
    v.y_type = !v.scale ? Element::i32 : random() % 2 ? Element::i8 : Element::u8;
    if (v.y_type == Element::u8) v.y_zero = std::abs(v.y_zero);
  } else if (is_float8(variant.operand)) {
    constexpr Element kTypes[] = {Element::f32, Element::f16, Element::bf16};
    v.y_type = kTypes[random() % 3];
  } else if (variant.operand == Operand::f16 || variant.operand == Operand::bf16) {
    v.y_type = random() % 2 ? Element::f32 : variant.operand == Operand::f16 ? Element::f16 : Element::bf16;
  }
  return v;
}

TEST_P(GemmKernels, AreRightOnRandomShapes) {
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    std::mt19937 random(seed * 977 + static_cast<uint32_t>(GetParam().m));
    const Convolution v = drawn_for(GetParam(), random);
    EXPECT_EQ(run_in_model(GetParam(), v, seed), "") << "seed " << seed << ": " << v.text();
  }
}

// Outputs whose rows lie one behind the other go by the engine, and a residual comes by it.
class GemmKernelsByTheEngine : public testing::TestWithParam<GemmVariant> {};
TEST_P(GemmKernelsByTheEngine, AreRight) {
  const GemmVariant& variant = GetParam();
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    std::mt19937 random(seed * 31 + static_cast<uint32_t>(variant.n));
    Convolution v = drawn_for(variant, random);
    const bool integers = is_integer(variant.operand), floats = variant.operand == Operand::tf32;
    const int bytes = integers ? 1 : floats ? 4 : 2, chunk = 16 / bytes;
    if (v.groups > 1) v.k = 128 / bytes * (1 + static_cast<int>(seed % 3));
    else v.k = chunk * (1 + static_cast<int>(random() % (480u / static_cast<unsigned>(chunk))));
    v.gap_y = seed % 3 == 0 ? chunk : 0;
    if (integers) {  // padding that zero points see, which is given back pixel by pixel, in two of eight
      v.scale = true, v.y_type = random() % 2 ? Element::i8 : Element::u8, v.y_zero = std::abs(v.y_zero);
      if (seed % 4 != 0) v.x_zero = 0;
    }
    const int residual = integers ? 0 : static_cast<int>(seed % 4);
    v.before = residual == 1, v.after = residual == 2, v.splits = v.before + v.after > 0 ? 1 : 1 + static_cast<int>(seed % 3);
    const bool half = variant.operand == Operand::f16 || (is_float8(variant.operand) && seed % 2 == 1);
    if (!integers) v.y_type = floats ? Element::f32 : half ? Element::f16 : Element::bf16;
    EXPECT_EQ(run_in_model(variant, v, seed), "") << "seed " << seed << ": " << v.text();
  }
}

// Several tiles along every axis, so that persistent blocks go from one to the next with stages in flight, in clusters too.
TEST(GemmKernelsOnManyTiles, AreRight) {
  Convolution v;
  v.n = 3, v.c = 128, v.k = 264, v.size = v.out = {1, 15, 14}, v.filter = {1, 2, 1}, v.pad = {0, 1, 0};
  v.bias = true, v.activation = 9, v.before = 1, v.y_type = Element::f16, v.swath = 2;
  for (const GemmVariant& variant : kGemmVariants) {
    if (variant.operand != Operand::f16) continue;
    const bool whole = variant.loader == GemmLoader::halo || variant.stages == 1;
    if (whole) v.splits = 1;
    EXPECT_EQ(run_in_model(variant, v, 1), "") << variant.kernel;
    v.splits = v.splits == 1 && !whole ? 2 : 1;
  }
}

// What softplus and mish take of small numbers, relative to them: fast logarithms of 1 + x would lose it.
TEST(CudaActivations, LogarithmsOfSmallNumbersKeepTheirDigits) {
  for (float x = 1; x > 1e-30f; x *= 0.97f) {
    const double right = std::log1p(static_cast<double>(x));
    EXPECT_NEAR(static_cast<double>(log_of_one_plus(x)), right, 4e-7 * right) << x;
  }
}

// Sums that grow over forty steps of k lose nothing that f32 holds.
TEST(GemmKernelsOnLongSums, OfFloat8AreKept) {
  Convolution v;
  v.c = 5120, v.k = 24, v.size = v.out = {1, 3, 7}, v.positive = true;
  for (const GemmVariant& variant : kGemmVariants) {
    if (is_float8(variant.operand)) {
      EXPECT_EQ(run_in_model(variant, v, 1), "") << variant.kernel;
    }
  }
}

// Tiles of some rows of an image, a last one with fewer, two steps of channels and two tiles of filters.
TEST(GemmKernelsOnManyTiles, HaloIsRight) {
  Convolution v;
  v.n = 2, v.c = 72, v.k = 72, v.size = v.out = {1, 30, 30}, v.filter = {1, 3, 3}, v.pad = {0, 1, 1};
  v.bias = true, v.activation = 1, v.before = 1, v.y_type = Element::f16;
  for (const GemmVariant& variant : kGemmVariants) {
    if (variant.loader != GemmLoader::halo || variant.operand != Operand::f16) continue;
    EXPECT_EQ(run_in_model(variant, v, 2), "");
  }
}

std::string name_of_variant(const testing::TestParamInfo<GemmVariant>& info) { return info.param.kernel; }
INSTANTIATE_TEST_SUITE_P(Variants, GemmKernels, testing::ValuesIn(kGemmVariants), name_of_variant);

std::vector<GemmVariant> that_store_by_the_engine() {
  std::vector<GemmVariant> found;
  for (const GemmVariant& v : kGemmVariants)
    if (v.loader == GemmLoader::tma && v.m == kWgmmaM) found.push_back(v);
  return found;
}
INSTANTIATE_TEST_SUITE_P(Variants, GemmKernelsByTheEngine, testing::ValuesIn(that_store_by_the_engine()), name_of_variant);

}  // namespace
}  // namespace sparkle::cuda
