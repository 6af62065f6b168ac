// Integer stages on the CPU against the 64-bit reference, byte for byte: gemm tiles and depthwise rows of every unit, on random
// shapes with the extreme values of their types among the operands.
#include "families/depthwise/depthwise.h"
#include "families/gemm/gemm.h"
#include "families/integers/integers.h"
#include "families/registry.h"

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/integer_stage_testing.h"
#include "backends/cpu/test_tensor.h"
#include "device/probe_cpu.h"

namespace sparkle::cpu {
namespace {

struct Unit {
  const char* name;
  const char* variant;
  int rows, vectors;
};

std::vector<Unit> units(const Device& device) {
  std::vector<Unit> list;
  for (const Unit& unit :
       {Unit{"avx512-vnni", "dot6x4", 6, 4}, Unit{"avx-vnni", "dot6x2", 6, 2}, Unit{"avx2-int16", "bytes4x2", 4, 2},
        Unit{"neon-dot", "dot6x4", 6, 4}, Unit{"neon", "bytes4x2", 4, 2}})
    if (device.unit(unit.name)) list.push_back(unit);
  return list;
}

TEST(IntegerGemm, EqualsTheReferenceToTheByte) {
  const Device device = probe_cpu();
  ThreadPool pool(2);
  for (const Unit& unit : units(device))
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      TestRandom random(seed);
      IntegerStage stage(random, false);
      GemmSchedule s;
      s.variant = unit.variant, s.unit = unit.name, s.mr = unit.rows, s.nr = unit.vectors;
      s.order = seed % 2 ? GemmOrder::rows : GemmOrder::columns;
      EXPECT_EQ(stage.run(make_gemm(stage.stage(), s, device, seed % 3 ? 2 : 0), pool), "") << unit.name << ", seed " << seed;
    }
}

TEST(IntegerDepthwise, EqualsTheReferenceToTheByte) {
  const Device device = probe_cpu();
  ThreadPool pool(2);
  for (const char* unit : {"avx512-vnni", "avx-vnni", "avx2-int16"}) {
    if (!device.unit(unit)) continue;
    for (uint64_t seed = 1; seed <= 120; ++seed) {
      TestRandom random(seed);
      IntegerStage stage(random, true);
      DepthwiseSchedule s;
      s.variant = "bytes", s.unit = unit;
      EXPECT_EQ(stage.run(make_depthwise(stage.stage(), s, device, seed % 3 ? 2 : 0), pool), "") << unit << ", seed " << seed;
    }
  }
}

// What a kernel hands out, run by the caller: no clock is asked.
class TaskCounter final : public Executor {
 public:
  explicit TaskCounter(int width) : width_(width) {}
  int width() const override { return width_; }
  void run(int tasks, Work work, void* context) override {
    most_ = std::max(most_, tasks);
    for (int task = 0; task < tasks; ++task) work(context, task, task % width_);
  }
  int most() const { return most_; }

 private:
  int width_, most_ = 1;
};

// The grain that the family plans for two cores of the unit.
int64_t planned_grain(const Stage& stage, const Unit& unit, Device device) {
  device.cores = 2;
  std::erase_if(device.units, [&](const MathUnit& u) { return u.name != unit.name; });
  for (const Variant& variant : gemm_info().variants) {
    Reason why_not = Reason::none;
    if (variant.name != unit.variant) continue;
    const std::vector<Schedule> found = gemm_info().schedules(stage, variant, device, why_not);
    if (!found.empty()) return get<GemmSchedule>(found[0]).grain;
  }
  return 0;
}

// 1x1 layers as MobileNet has them: two threads get the same number of tasks, four at most, and what takes a unit some 20 us
// and more is cut at all.
TEST(IntegerGemm, LayersOfTensOfMicrosecondsAreCutForTwoThreads) {
  const Device device = probe_cpu();
  for (const Unit& unit : units(device))
    for (const auto& [in, out, size] : {std::tuple{32, 192, 28}, {24, 144, 56}, {384, 96, 14}, {320, 1280, 7}}) {
      const int64_t pixels = int64_t{size} * size;
      Epilogue e;
      e.scale = true;
      const Dims x{1, in, size, size}, w{out, in, 1, 1}, y{1, out, size, size}, one{1};
      Stage stage;
      stage.params = GemmParams{Loader::window, 1, {}, e};
      stage.inputs = {{DType::u8, x, channels_last(x)}, {DType::i8, w, row_major(w)},     {DType::f32, one, row_major(one)},
                      {DType::u8, one, row_major(one)}, {DType::i8, one, row_major(one)}, {DType::u8, one, row_major(one)}};
      stage.outputs = {{DType::u8, y, channels_last(y)}};
      for (const GemmOrder order : {GemmOrder::rows, GemmOrder::columns}) {
        GemmSchedule s;
        s.variant = unit.variant, s.unit = unit.name, s.mr = unit.rows, s.nr = unit.vectors, s.order = order;
        s.grain = planned_grain(stage, unit, device);
        ASSERT_GT(s.grain, 0);
        auto kernel = make_gemm(stage, s, device, 2);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        std::vector<TestTensor> tensors;
        for (const TensorDesc& d : stage.inputs) tensors.emplace_back(d);
        for (TestTensor& t : tensors) t.fill([] { return 1; });
        TestTensor got(stage.outputs[0]);
        std::vector<std::byte*> inputs;
        for (TestTensor& t : tensors) inputs.push_back(t.origin());
        std::byte* output = got.origin();
        InlineExecutor alone;
        std::vector<std::byte> packed(static_cast<size_t>((*kernel)->packed_bytes(1)) + 64);
        std::byte* weights = packed.data() + (64 - reinterpret_cast<uintptr_t>(packed.data()) % 64) % 64;
        (*kernel)->pack(1, inputs[1], weights, alone);
        inputs[1] = weights;
        std::vector<std::byte> scratch(static_cast<size_t>((*kernel)->workspace_bytes()) + 64);
        CpuLaunch launch;
        TaskCounter counter(2);
        launch.inputs = inputs, launch.outputs = {&output, 1}, launch.executor = &counter;
        launch.workspace = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
        (*kernel)->run(launch);
        const auto products = static_cast<double>(pixels * in * out);
        const std::string what = std::string(unit.name) + " " + std::to_string(in) + " -> " + std::to_string(out);
        EXPECT_EQ(counter.most() % 2, 0) << what;
        EXPECT_LE(counter.most(), 12) << what;  // blocks of rows by blocks of columns
        if (std::string_view(unit.name) == "avx2-int16" && products > 4e6) {
          EXPECT_GE(counter.most(), 8) << what;
        }
      }
    }
}

}  // namespace
}  // namespace sparkle::cpu
