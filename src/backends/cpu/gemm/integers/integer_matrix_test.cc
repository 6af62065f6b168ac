// Stages on 8-bit integers by tiles of a matrix unit against the reference, to the byte: the whole kernel with emulated tile
// registers on any machine, and with its own where it has them.
#include "backends/cpu/gemm/integers/integer_matrix.h"

#include "backends/cpu/gemm/integers/integer_pack.h"
#include "backends/cpu/gemm/matrix/tile_machine_testing.h"
#include "backends/cpu/integer_stage_testing.h"
#include "backends/cpu/simd/dot_units.h"
#include "backends/cpu/simd/dot_units_arm.h"
#include "device/probe_cpu.h"

namespace sparkle::cpu {

#define SPARKLE_MACHINE EmulatedTiles
#if SPARKLE_X86
SPARKLE_X86_BEGIN(SPARKLE_FEATURES_AVX512_VNNI)
namespace emulated_avx512 {
#define SPARKLE_UNIT Avx512Vnni
#include "backends/cpu/gemm/integers/integer_matrix_tile-inl.h"
#undef SPARKLE_UNIT
}  // namespace emulated_avx512
SPARKLE_X86_END

SPARKLE_X86_BEGIN(SPARKLE_FEATURES_AVX2)
namespace emulated_avx2 {
#define SPARKLE_UNIT Avx2
#include "backends/cpu/gemm/integers/integer_matrix_tile-inl.h"
#undef SPARKLE_UNIT
}  // namespace emulated_avx2
SPARKLE_X86_END
#elif defined(__aarch64__)
namespace emulated_neon {
#define SPARKLE_UNIT Neon
#include "backends/cpu/gemm/integers/integer_matrix_tile-inl.h"
#undef SPARKLE_UNIT
}  // namespace emulated_neon
#endif
#undef SPARKLE_MACHINE

namespace {

struct Kernels {
  std::string name;
  IntegerMatrixKernels kernels;
};
// With all vectors of this machine that finish sums.
std::vector<Kernels> kernels_here() {
  std::vector<Kernels> list;
  [[maybe_unused]] const Device device = probe_cpu();
#if SPARKLE_X86
  if (device.unit("avx512-vnni")) list.push_back({"emulated, AVX-512", emulated_avx512::make_matrix_kernels()});
  if (device.unit("avx2-int16")) list.push_back({"emulated, AVX2", emulated_avx2::make_matrix_kernels()});
  if (device.unit("amx-int8")) list.push_back({"AMX", *integer_matrix_kernels_of("amx-int8")});
#elif defined(__aarch64__)
  list.push_back({"emulated, NEON", emulated_neon::make_matrix_kernels()});
#endif
  return list;
}

GemmSchedule schedule_for(uint64_t seed) {
  GemmSchedule s;
  s.variant = "matrix_i8", s.unit = "amx-int8", s.mr = kMatrixRows, s.nr = seed % 5 ? 2 : 1;
  s.order = seed % 2 ? GemmOrder::rows : GemmOrder::columns;
  s.mc = static_cast<int64_t>(seed % 4) * kMatrixRows;
  s.grain = seed % 3 ? 300 : 0;
  return s;
}

TEST(IntegerMatrix, EqualsTheReferenceToTheByte) {
  ThreadPool pool(2);
  const std::vector<Kernels> list = kernels_here();
  if (list.empty()) GTEST_SKIP() << "this machine has no vectors that finish sums of integers";
  const int64_t faults = EmulatedTiles::faults();
  for (const Kernels& kernels : list)
    for (uint64_t seed = 1; seed <= (kSanitized ? 40 : 160); ++seed) {
      TestRandom random(seed);
      IntegerStage stage(random, false, seed % 3 == 0);
      EXPECT_EQ(stage.run(make_integer_matrix(stage.stage(), schedule_for(seed), kernels.kernels, seed % 7 != 0), pool), "")
          << kernels.name << ", seed " << seed;
    }
  EXPECT_EQ(EmulatedTiles::faults(), faults);
  EXPECT_EQ(EmulatedTiles::holders(), 0);  // no worker keeps tiles
}

// Rows of one stage that lie evenly, and others; each class of rows, each panel, both kinds of blocks.
TEST(IntegerMatrix, NoOtherTileIsMade) {
  const std::vector<Kernels> list = kernels_here();
  if (list.empty()) GTEST_SKIP() << "this machine has no vectors that finish sums of integers";
  TestRandom random(1);
  IntegerStage stage(random, false);
  for (const auto& [mr, nr] : {std::pair{6, 2}, {32, 4}, {32, 0}, {0, 1}}) {
    GemmSchedule s = schedule_for(1);
    s.mr = mr, s.nr = nr;
    const auto kernel = make_integer_matrix(stage.stage(), s, list[0].kernels, true);
    ASSERT_FALSE(kernel.ok());
    EXPECT_EQ(kernel.error().reason, Reason::backend_lacks_variant);
  }
}

// i8 on the left is no longer copied to become u8.
TEST(IntegerMatrix, SignedLeftOperandsAreReadAsTheyAre) {
  const Dims x{1, 64, 7, 9}, w{48, 64, 3, 3}, y{1, 48, 7, 9}, one{1};
  Epilogue e;
  e.scale = true;
  Window window{{1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}};
  Stage stage;
  stage.params = GemmParams{Loader::window, 1, window, e};
  for (const DType type : {DType::i8, DType::u8}) {
    stage.inputs = {{type, x, channels_last(x)}, {DType::i8, w, row_major(w)},     {DType::f32, one, row_major(one)},
                    {type, one, row_major(one)}, {DType::i8, one, row_major(one)}, {DType::i8, one, row_major(one)}};
    stage.outputs = {{DType::i8, y, channels_last(y)}};
    const auto geometry = integer_geometry(stage, schedule_for(1), kMatrixLanes, true);
    ASSERT_TRUE(geometry.ok());
    EXPECT_FALSE(geometry->copies);
    EXPECT_FALSE(geometry->move_left);
  }
}

}  // namespace
}  // namespace sparkle::cpu
