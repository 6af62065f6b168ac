// The best elements of rows on Vulkan against the family's plain loops, to the bit: all types, ties, NaN, both zeros, any
// layout; rows that are sorted several to a workgroup, in one piece, and merged from many, as a whole or to a few.
#include "backends/vulkan/kernels/random_stages_testing.h"
#include "families/loops/row_groups.h"
#include "families/top_k/top_k.h"
#include "families/top_k/top_k_gpu.h"
#include "families/type_set.h"

namespace sparkle::vulkan {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::f64, DType::i8,  DType::u8, DType::i16,
                            DType::u16, DType::i32, DType::u32, DType::i64, DType::u64};

bool supports(VulkanBackend& backend, DType type) {
  const Features& f = backend.context().features();
  return size_of(type) > 2 || (size_of(type) == 1 ? f.i8 : f.f16);
}

// Values of a few kinds, so that many are equal, or of many.
RandomStage ranked_stage(uint64_t seed, DType type, const Dims& shape, int axis, int64_t k, bool values) {
  RandomStage s(seed, type);
  const int64_t kinds = s.random.chance(50) ? 5 : 1000000;
  const bool odd = s.random.chance(30);
  s.input(s.turned(s.any(shape, s.random.chance(20) ? 30 : 0)), [&] {
    if (is_float(type)) {
      if (odd && s.random.chance(5)) {
        constexpr double kOdd[] = {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), -0.0,
                                   0.0};
        return s.random.chance(50) ? std::nan("") : kOdd[s.random.between(0, 3)];
      }
      return static_cast<double>(s.random.between(-kinds, kinds)) / 64;
    }
    const double spread = kinds == 5 ? 5 : std::ldexp(0.9, static_cast<int>(8 * size_of(type) - 1));
    const double share = static_cast<double>(s.random.between(0, INT32_MAX)) / 0x1p31;
    return kSignedIntegers.has(type) ? (share * 2 - 1) * spread : share * 2 * spread;
  });
  Dims result = shape;
  result[axis] = k;
  if (values) s.output(s.turned(s.any(type, result)));
  s.output(s.turned(s.any(DType::i64, result)));
  s.stage.params = TopKParams{axis, k, s.random.chance(50), s.random.chance(50), s.random.chance(50)};
  return s;
}

void expect_ranks_of_reference(VulkanBackend& backend, RandomStage& s, const std::string& what) {
  auto wanted = exact_outputs(s, s.inputs);
  const auto& p = get<TopKParams>(s.stage.params);
  const LoopSchedule schedule{p.k <= 1 ? "best" : "sort", "fma-f32", 0};
  const Status ran = run_stage(backend, s.stage, schedule, s.inputs, s.outputs, 0);
  ASSERT_TRUE(ran.ok()) << ran.error().message;
  for (size_t i = 0; i < wanted.size(); ++i)
    expect_close(s.outputs[i], wanted[i], 0,
                 what + " " + to_text(s.stage.params) + " " + s.stage.inputs[0].shape.to_string() + " of " +
                     std::string(name_of(s.real)));
}

TEST(VulkanTopK, TheBestOfEachRow) {
  SPARKLE_NEEDS_VULKAN(backend);
  int parted = 0;
  for (uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    cpu::TestRandom random(seed);
    const DType type = kTypes[seed % std::size(kTypes)];
    if (!supports(*backend, type)) continue;
    const int rank = static_cast<int>(random.between(1, 5));
    Dims shape = random.shape(rank, rank == 1 ? 3000 : rank == 2 ? 90 : 9);
    if (random.chance(10)) shape = {random.between(1, 3), random.between(3000, 40000)};
    const int axis = static_cast<int>(random.between(0, shape.size() - 1));
    parted += row_groups({type, shape, row_major(shape)}, 1u << axis, true).parts > 1;
    RandomStage s = ranked_stage(seed, type, shape, axis, random.chance(3) ? 0 : 1, random.chance(50));
    expect_ranks_of_reference(*backend, s, "seed " + std::to_string(seed));
  }
  EXPECT_GT(parted, 5);
}

TEST(VulkanTopK, ManyOfShortRows) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (uint64_t seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    cpu::TestRandom random(seed);
    const DType type = kTypes[seed % std::size(kTypes)];
    if (!supports(*backend, type)) continue;
    const int rank = static_cast<int>(random.between(1, 5));
    Dims shape = random.shape(rank, rank == 1 ? 1024 : rank == 2 ? 120 : 9);
    const int axis = static_cast<int>(random.between(0, rank - 1));
    shape[axis] = std::max<int64_t>(2, shape[axis]);
    RandomStage s = ranked_stage(seed, type, shape, axis, random.between(2, shape[axis]), random.chance(80));
    expect_ranks_of_reference(*backend, s, "seed " + std::to_string(seed));
  }
}

TEST(VulkanTopK, RowsOfManyPieces) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (uint64_t seed = 1; seed <= 80 && !HasFailure(); ++seed) {
    cpu::TestRandom random(seed);
    const DType type = kTypes[seed % std::size(kTypes)];
    if (!supports(*backend, type)) continue;
    const int64_t length = random.between(kTopKEntries + 1, 9 * kTopKEntries), others = random.between(1, 3);
    const bool innermost = random.chance(70);
    const Dims shape = innermost ? Dims{others, length} : Dims{length, others};
    const int64_t k = random.chance(30) ? length : random.chance(50) ? random.between(2, 40) : random.between(2, length);
    RandomStage s = ranked_stage(seed, type, shape, innermost, k, true);
    expect_ranks_of_reference(*backend, s, "seed " + std::to_string(seed));
  }
}

}  // namespace
}  // namespace sparkle::vulkan
