// Integer stages on the CPU against the 64-bit reference, byte for byte: gemm tiles and depthwise rows of every unit, on random
// shapes with the extreme values of their types among the operands.
#include "families/depthwise/depthwise.h"
#include "families/gemm/gemm.h"
#include "families/integers/integers.h"
#include "families/registry.h"

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/test_tensor.h"
#include "device/probe_cpu.h"

namespace sparkle::cpu {
namespace {

class IntegerStage {
 public:
  IntegerStage(TestRandom& random, bool depthwise) : random_(random) {
    const bool requantize = random.chance(80), window = depthwise || random.chance(60);
    Epilogue e;
    e.scale = requantize, e.bias = random.chance(60);
    // Constant depthwise filters come less their zero point, in nine bits.
    const DType a = byte(), b = depthwise && random.chance(50) ? DType::i16 : byte(), y = requantize ? byte() : DType::i32;
    if (requantize && random.chance(30)) {
      e.activation = Activation::clip;
      e.a = static_cast<double>(range_of(y).low + random.between(0, 60));
      e.b = static_cast<double>(range_of(y).high - random.between(0, 60));
    }
    int64_t channels = 0, depth = 0;
    if (window) {
      Window w;
      Dims x{random.between(1, 2)}, out{x[0]};
      const int64_t groups = depthwise ? random.between(2, 150) : random.chance(20) ? random.between(2, 3) : 1;
      const int64_t c = depthwise ? 1 : random.chance(50) ? 4 * random.between(1, 20) : random.between(1, 40);
      channels = groups * (depthwise ? 1 : random.between(1, 150));
      x.push_back(groups * c), out.push_back(channels);
      for (size_t i = 1; i < 3; ++i) {
        w.filter[i] = random.between(1, 4), w.stride[i] = random.between(1, 2), w.dilation[i] = random.between(1, 2);
        w.pad_begin[i] = random.between(0, 2);
        const int64_t reach = (w.filter[i] - 1) * w.dilation[i] + 1, size = random.between(1, 9) + reach;
        x.push_back(size), out.push_back((size + w.pad_begin[i] + random.between(0, 2) - reach) / w.stride[i] + 1);
      }
      depth = c * w.taps();
      const Dims filters{channels, c, w.filter[1], w.filter[2]};
      if (depthwise) {
        stage_.params = DepthwiseParams{w, e};
      } else {
        stage_.params = GemmParams{Loader::window, groups, w, e};
      }
      stage_.inputs = {{a, x, channels_last(x)}, {b, filters, row_major(filters)}};
      stage_.outputs = {{y, out, channels_last(out)}};
    } else {
      const int64_t batch = random.between(1, 3), m = random.between(1, 20), k = random.between(1, 300);
      channels = random.between(1, 200), depth = k;
      const Dims left{batch, m, k}, right{batch, k, channels}, out{batch, m, channels};
      stage_.params = GemmParams{Loader::dense, 1, {}, e};
      stage_.inputs = {{a, left, random.chance(30) ? dense(left, {0, 2, 1}) : row_major(left)},
                       {b, right, random.chance(30) ? dense(right, {0, 2, 1}) : row_major(right)}};
      stage_.outputs = {{y, out, row_major(out)}};
    }
    const auto list = [&](DType type, bool per_channel) {
      const Dims shape{per_channel ? channels : 1};
      stage_.inputs.push_back({type, shape, row_major(shape)});
    };
    if (e.scale) list(DType::f32, random.chance(50));
    if (e.bias) list(DType::i32, true);
    list(a, false), list(b, random.chance(30));
    if (e.scale) list(y, false);
    const IntegerOperands at = integer_operands(e);
    for (const TensorDesc& desc : stage_.inputs) tensors_.emplace_back(desc);
    fill_bytes(0), fill_bytes(1), fill_bytes(at.a_zero), fill_bytes(at.b_zero);
    if (at.y_zero >= 0) fill_bytes(at.y_zero);
    if (at.bias >= 0)
      tensor(at.bias).fill([&] { return static_cast<double>(random.between(-9, 9) * (random.chance(5) ? 200000000 : 3000)); });
    // Most results lie within the type, some far outside.
    const double step = 1.0 / (60.0 * std::sqrt(static_cast<double>(depth)));
    if (at.scale >= 0) tensor(at.scale).fill([&] { return step * static_cast<double>(random.between(1, 200)) / 100; });
  }

  const Stage& stage() const { return stage_; }

  // Empty where the kernel's result is the reference's.
  std::string run(const Schedule& schedule, uint32_t constants, Executor& executor, const Device& device) {
    auto kernel = stage_.family() == Family::gemm ? make_gemm(stage_, schedule, device, constants)
                                                  : make_depthwise(stage_, schedule, device, constants);
    if (!kernel.ok()) return kernel.error().message;
    TestTensor expected(stage_.outputs[0]), got(stage_.outputs[0]);
    std::vector<TensorView> views;
    std::vector<std::byte*> inputs;
    for (TestTensor& t : tensors_) views.push_back(t.view()), inputs.push_back(t.origin());
    const TensorView want = expected.view();
    info(stage_.family()).reference(stage_.params, views, {&want, 1});
    std::vector<std::byte> packed(static_cast<size_t>((*kernel)->packed_bytes(1)) + 64);
    std::byte* aligned = packed.data() + (64 - reinterpret_cast<uintptr_t>(packed.data()) % 64) % 64;
    if ((*kernel)->packed_bytes(1) > 0) {
      (*kernel)->pack(1, row_major_copy(tensors_[1]).data(), aligned, executor);
      inputs[1] = aligned;
    }
    std::vector<std::byte> scratch(static_cast<size_t>((*kernel)->workspace_bytes()) + 64, std::byte{0x5A});
    CpuLaunch launch;
    std::byte* out = got.origin();
    launch.inputs = inputs, launch.outputs = {&out, 1}, launch.executor = &executor;
    launch.workspace = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
    (*kernel)->run(launch);
    std::string problem = got.sentinels_hold() ? "" : "wrote outside of its output";
    for_each_index(stage_.outputs[0].shape, [&](const Dims& i) {
      if (problem.empty() && got.at(i) != expected.at(i))
        problem = "at " + i.to_string() + ": " + std::to_string(got.at(i)) + " instead of " + std::to_string(expected.at(i));
    });
    return problem;
  }

 private:
  DType byte() { return random_.chance(50) ? DType::u8 : DType::i8; }
  TestTensor& tensor(int i) { return tensors_[static_cast<size_t>(i)]; }
  // All values, the extreme ones often: 255 * -128 four times in a row overflows 16 bits.
  void fill_bytes(int i) {
    IntegerRange range = range_of(tensor(i).desc().dtype);
    if (tensor(i).desc().dtype == DType::i16) range = i == 1 ? IntegerRange{-255, 255} : IntegerRange{};
    const bool extreme = random_.chance(40);
    tensor(i).fill([&] {
      if (extreme) return static_cast<double>(random_.chance(50) ? range.low : range.high);
      return static_cast<double>(random_.between(range.low, range.high));
    });
  }
  // Constants come with their layout's strides: the bytes from the buffer's start.
  static std::vector<std::byte> row_major_copy(TestTensor& t) {
    const TensorDesc& d = t.desc();
    const std::byte* from = t.view().data;
    return {from, from + extent(d.shape, d.layout) * size_of(d.dtype)};
  }

  TestRandom& random_;
  Stage stage_;
  std::vector<TestTensor> tensors_;
};

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
      EXPECT_EQ(stage.run(s, seed % 3 ? 2 : 0, pool, device), "") << unit.name << ", seed " << seed;
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
      EXPECT_EQ(stage.run(s, seed % 3 ? 2 : 0, pool, device), "") << unit << ", seed " << seed;
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
