// Stages of factors rounded to bf16 by tiles of a matrix unit against the reference: the whole kernel with emulated tile
// registers on any machine, and with its own where it has them.
#include "backends/cpu/gemm/matrix/matrix_gemm.h"

#include <gtest/gtest.h>

#include "backends/cpu/gemm/gemm_problem_testing.h"
#include "backends/cpu/gemm/matrix/matrix_rows.h"
#include "backends/cpu/gemm/matrix/tile_machine_testing.h"
#include "backends/cpu/test_units.h"
#include "device/probe_cpu.h"
#include "families/loops/packed.h"

namespace sparkle::cpu {
namespace {

using namespace gemm_problems;

struct Tiles {
  std::string name, vectors;
  MatrixKernels kernels;
};
std::vector<Tiles> tiles_here() {
  std::vector<Tiles> list;
  for (const std::string& unit : test_units())
    if (unit != "sve") list.push_back({"emulated, " + unit, unit, make_matrix_kernels_bf16<EmulatedTiles>()});
  if (probe_cpu().unit("amx-bf16")) list.push_back({"AMX", "avx512", *matrix_kernels_of("amx-bf16")});
  return list;
}

GemmSchedule random_matrix_schedule(Case& c) {
  GemmSchedule s;
  s.variant = kMatrixBf16, s.unit = "amx-bf16", s.mr = kMatrixRows, s.nr = c.chance(0.8) ? 2 : 1;
  s.order = c.chance(0.5) ? GemmOrder::rows : GemmOrder::columns;
  s.mc = c.chance(0.5) ? 0 : c.pick(1, 100);
  s.grain = c.chance(0.5) ? 0 : c.pick(1, 2000);
  return s;
}

// The reference rounds the factors too, so that only sums differ.
void check_tiles(Problem& p, Case& c, const Tiles& tiles, const std::string& what) {
  for (Operand& o : p.inputs) p.stage.inputs.push_back(o.desc);
  p.stage.outputs = {p.output.desc};
  GemmParams params = get<GemmParams>(p.stage.params);
  params.operands = OperandType::bf16;
  p.stage.params = params;
  const GemmSchedule schedule = random_matrix_schedule(c);
  SCOPED_TRACE(tiles.name + ", " + what + " " + to_text(params) + " " + to_text(schedule) +
               " x=" + p.inputs[0].desc.shape.to_string() + " w=" + p.inputs[1].desc.shape.to_string());
  const bool constant = c.chance(0.6);
  const auto made = make_matrix_gemm(p.stage, schedule, tiles.kernels, tiles.vectors, constant);
  ASSERT_TRUE(made.ok()) << made.error().message;
  if (constant) {
    Device device;
    MathUnit unit;
    unit.name = "amx-bf16", unit.n = 16;
    device.units = {unit};
    EXPECT_EQ((*made)->packed_bytes(1), packed_weight_bytes(p.stage, schedule, device));
  }
  run_and_compare(p, c, **made, constant, 0);
}

TEST(MatrixGemm, like_reference) {
  const int64_t faults = EmulatedTiles::faults();
  for (const Tiles& tiles : tiles_here())
    for (uint32_t seed = 0; seed < static_cast<uint32_t>(cases_on(tiles.vectors, 300)); ++seed) {
      Case c(seed);
      Problem p = c.chance(0.6) ? window_problem(c) : dense_problem(c);
      check_tiles(p, c, tiles, "seed " + std::to_string(seed));
      if (HasFatalFailure()) return;
    }
  EXPECT_EQ(EmulatedTiles::faults(), faults);
  EXPECT_EQ(EmulatedTiles::holders(), 0);  // no worker keeps tiles
}

TEST(MatrixGemm, StagesThatRoundNothingAreRefused) {
  Case c(1);
  Problem p = dense_problem(c);
  for (Operand& o : p.inputs) p.stage.inputs.push_back(o.desc);
  p.stage.outputs = {p.output.desc};
  const MatrixKernels kernels = make_matrix_kernels_bf16<EmulatedTiles>();
  const auto refused = make_matrix_gemm(p.stage, random_matrix_schedule(c), kernels, test_units().front(), true);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().reason, Reason::type_not_served);
  get<GemmParams>(p.stage.params).operands = OperandType::bf16;
  const auto without_vectors = make_matrix_gemm(p.stage, random_matrix_schedule(c), kernels, "amx-bf16", true);
  ASSERT_FALSE(without_vectors.ok());
  EXPECT_EQ(without_vectors.error().reason, Reason::backend_lacks_variant);
}

// Each tile meets each panel of each instance once, and weights that are read once per block of rows are not read more often as
// long as there are columns to share out.
TEST(MatrixCut, TakesEachTileAndPanelOnce) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Case c(seed);
    GemmGeometry g;
    g.instances.resize(static_cast<size_t>(c.pick(1, 4)));
    g.panels.resize(static_cast<size_t>(c.pick(1, 20)));
    g.tiles = c.pick(1, 50), g.outputs = g.tiles * 32;
    const GemmSchedule schedule = random_matrix_schedule(c);
    const MatrixCut cut(g, schedule, c.pick(1, 8));
    EXPECT_LE(cut.tasks, cut.total());
    EXPECT_GE(cut.tasks, 1);
    std::vector<int> seen(g.instances.size() * g.panels.size() * static_cast<size_t>(g.tiles));
    for (int64_t i = 0; i < cut.total(); ++i) {
      const MatrixBlock b = cut.block(i);
      for (int64_t t = b.t0; t < b.t1; ++t)
        for (int64_t p = b.p0; p < b.p1; ++p)
          ++seen[static_cast<size_t>((b.instance * g.tiles + t) * static_cast<int64_t>(g.panels.size()) + p)];
    }
    for (const int times : seen) ASSERT_EQ(times, 1) << seed;
  }
  GemmGeometry g;
  g.instances.resize(1), g.panels.resize(16);
  g.tiles = 25, g.outputs = 800;
  GemmSchedule schedule;
  schedule.mr = kMatrixRows, schedule.nr = 2, schedule.order = GemmOrder::columns, schedule.mc = 7 * 32, schedule.grain = 100;
  const MatrixCut cut(g, schedule, 2);
  EXPECT_EQ(cut.total(), 8);
  for (int64_t i = 0; i < cut.total(); ++i) EXPECT_GE(cut.block(i).t1 - cut.block(i).t0, 6);
}

// Runs that follow each other in the weights share steps; each begins a group of its own, and ends with zeros.
TEST(MatrixRows, GathersRunsIntoWholeSteps) {
  const std::vector<GemmRun> runs{{10, 0, 3}, {40, 4, 3}, {70, 40, 2}};  // groups of two: the first two are joined
  const MatrixRows rows(runs, 32, 2);
  EXPECT_EQ(rows.lines(), 2 * kMatrixRows);
  EXPECT_FALSE(rows.whole_steps());
  std::vector<uint16_t> memory(200);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<uint16_t>(i);
  const uint16_t* a[] = {memory.data(), memory.data() + 100};
  std::vector<MatrixLine> lines(static_cast<size_t>(rows.lines()));
  for (MatrixLine& line : lines) std::memset(line.bytes, 0xff, sizeof line.bytes);
  MatrixOperands operands{};
  rows.gather(a, 2, lines.data(), operands, [](const uint16_t* from, std::byte* to, int64_t count) {
    std::memcpy(to, from, static_cast<size_t>(count) * 2);
  });
  ASSERT_EQ(operands.run_count, 2);
  EXPECT_EQ(operands.runs[0].steps, 1);
  EXPECT_EQ(operands.runs[1].steps, 1);
  EXPECT_EQ(operands.runs[1].k, 80);  // bytes
  for (int r = 0; r < 2; ++r) {
    const auto base = static_cast<uint16_t>(100 * r);
    const auto element = [&](int64_t run, int64_t i) {
      uint16_t value;
      std::memcpy(&value, operands.a[0] + operands.runs[run].a + r * operands.a_stride + 2 * i, 2);
      return value;
    };
    const uint16_t first[] = {10, 11, 12, 0, 40, 41, 42, 0};
    for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(element(0, i), first[i] == 0 ? 0 : base + first[i]) << i;
    for (int64_t i = 8; i < 32; ++i) EXPECT_EQ(element(0, i), 0) << i;
    EXPECT_EQ(element(1, 0), base + 70);
    EXPECT_EQ(element(1, 1), base + 71);
    for (int64_t i = 2; i < 32; ++i) EXPECT_EQ(element(1, i), 0) << i;
  }
}

}  // namespace
}  // namespace sparkle::cpu
