// What AMD's open driver makes of the shaders, with no GPU in the machine: Mesa's drm-shim offers a device that compiles and
// executes nothing. Each test starts its own program anew under the shim, plans networks for that device, compiles what the
// plans need and every tile that a tuner could try, and holds the driver's report against what the schedules promise. A second
// round compiles all shaders for further chips by the driver's null back end.
#include <glob.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "backends/vulkan/kernels/kernel_needs.h"
#include "backends/vulkan/shaders/shaders.h"
#include "backends/vulkan/vulkan_backend.h"
#include "backends/vulkan/shaders/pipelines.h"
#include "base/system/thread_pool.h"
#include "families/fft/fft_tiles.h"
#include "families/gemm/gemm_tiles.h"
#include "families/depthwise/depthwise.h"
#include "families/gemm/gemm.h"
#include "families/pointwise/pointwise.h"
#include "families/registry.h"
#include "graph/graph.h"
#include "networks/zoo.h"
#include "plan/choose/choose.h"
#include "plan/plan.h"

namespace sparkle {
namespace {

using vulkan::PipelineReport;

std::string first_match(const char* pattern) {
  glob_t found{};
  std::string path;
  if (glob(pattern, 0, nullptr, &found) == 0 && found.gl_pathc > 0) path = found.gl_pathv[0];
  globfree(&found);
  return path;
}

// Runs the current test again in a program of its own under these variables; its failures are printed and are this test's.
void again(const std::string& variables) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string command =
      variables + " SPARKLE_CODEGEN_CHILD=1 MESA_SHADER_CACHE_DISABLE=true VK_LOADER_LAYERS_DISABLE='~implicit~' " +
      ::testing::internal::GetArgvs()[0] + " --gtest_filter=" + test->test_suite_name() + "." + test->name() + " 2>&1";
  FILE* child = popen(command.c_str(), "r");
  ASSERT_NE(child, nullptr);
  std::string text;
  for (char line[4096]; fgets(line, sizeof line, child);) text += line;
  const int status = pclose(child);
  EXPECT_EQ(status, 0) << command << "\n" << text;
  if (status == 0)
    for (size_t at = 0; (at = text.find("| ", at)) != std::string::npos;) {
      const size_t end = text.find('\n', at);
      if (at == 0 || text[at - 1] == '\n') std::printf("%s\n", text.substr(at, end - at).c_str());
      at = end == std::string::npos ? text.size() : end;
    }
}

bool in_child() { return std::getenv("SPARKLE_CODEGEN_CHILD") != nullptr; }

struct Chip {
  const char* id;
  // Of a SIMD: registers per lane for subgroups of 32 (0: there are none) and 64, and how they are handed out.
  int file32, file64, granule32, granule64, most;
  int simds;  // that share the shared memory of `shared` bytes
  int64_t shared;
  bool dual_issue, matrices;
};
constexpr Chip kNavi31{"navi31", 1536, 768, 24, 12, 16, 4, 131072, true, true};
constexpr Chip kNavi21{"navi21", 1024, 512, 16, 8, 16, 4, 131072, false, false};
constexpr Chip kVega10{"vega10", 0, 256, 4, 4, 10, 4, 65536, false, false};

int count(const std::string& text, std::string_view what) {
  int n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++n;
  return n;
}

// Subgroups that a SIMD holds of a workgroup's kind.
int predicted_subgroups(const Chip& chip, const TileNeeds& needs, int size) {
  const int file = size == 32 ? chip.file32 : chip.file64, granule = size == 32 ? chip.granule32 : chip.granule64;
  const int by_registers = std::clamp(file / ((needs.registers + granule - 1) / granule * granule), 1, chip.most);
  if (needs.shared_bytes == 0) return by_registers;
  const int64_t groups = chip.shared / needs.shared_bytes, subgroups = (needs.threads + size - 1) / size;
  return static_cast<int>(std::min<int64_t>(by_registers, std::max<int64_t>(1, groups * subgroups / chip.simds)));
}

class Compiled {
 public:
  explicit Compiled(const Chip& chip) : chip_(chip) {
    vulkan::ContextOptions options;
    options.capture = true, options.cache = false;
    options.try_first = false;  // nothing is executed here
    auto instance = vulkan::Instance::open();
    EXPECT_TRUE(instance.ok()) << (instance.ok() ? "" : instance.error().message);
    if (!instance.ok()) return;
    auto backend = vulkan::make_vulkan_backend(*instance, 0, options, std::make_shared<InlineExecutor>());
    EXPECT_TRUE(backend.ok()) << (backend.ok() ? "" : backend.error().message);
    if (backend.ok()) backend_ = *backend;
  }
  vulkan::VulkanBackend* backend() { return backend_.get(); }

  // Compiles a step and checks the pipelines that are new.
  void step(const Stage& stage, const Schedule& schedule, uint32_t constants) {
    const auto kernel = backend_->compile(stage, schedule, constants);
    ASSERT_TRUE(kernel.ok()) << to_text(schedule) << ": " << kernel.error().message;
    for (const vulkan::Pipeline* pipeline : backend_->pipelines().all())
      if (seen_.insert(pipeline).second) check(*pipeline, stage, schedule);
  }
  int dual = 0, all_duals = 0, all_fmacs = 0, dual_post_ops = 0, tiles = 0, transforms = 0, packed = 0, sharing = 0, dots = 0;

 private:
  void check(const vulkan::Pipeline& pipeline, const Stage& stage, const Schedule& schedule) {
    SCOPED_TRACE(pipeline.name + " of " + to_text(schedule));
    const auto report = backend_->pipelines().report(pipeline);
    ASSERT_TRUE(report.ok()) << report.error().message;
    const auto value = [&](const char* name) { return static_cast<int>(report->statistic(name)); };
    const int size = static_cast<int>(report->subgroup_size), vgprs = value("VGPRs"), lds = value("LDS size");
    // Where there are subgroups of 32 the driver counts one of 64 as two of them.
    const int subgroups = value("Subgroups per SIMD") / (chip_.file32 > 0 ? size / 32 : 1);
    const std::string& code = report->assembly;
    const int duals = count(code, "v_dual_fmac"),
              fmacs = count(code, "v_fmac_f32") + count(code, "v_fma_f32") + count(code, "v_mac_f32"),
              wmmas = count(code, "v_wmma"), pairs = count(code, "v_pk_fma_f16") + count(code, "v_pk_mul_f16");
    std::printf("| %s | %s | %d | %d | %d | %d | %d | %d | %d | %d | %d |\n", chip_.id, pipeline.name.c_str(), size, vgprs,
                subgroups, lds, value("Code size"), duals, fmacs, wmmas, pairs);
    EXPECT_EQ(value("Spilled SGPRs"), 0);
    EXPECT_EQ(value("Spilled VGPRs"), 0);
    EXPECT_EQ(value("Scratch size"), 0);
    const TileNeeds needs = vulkan::needs_of(stage, schedule);
    // What is handed out by granules of 1 KB.
    EXPECT_LE(lds, (needs.shared_bytes + 1023) / 1024 * 1024);
    sharing += lds > 0;
    const int predicted = predicted_subgroups(chip_, needs, size);
    EXPECT_LE(vgprs, needs.registers);
    EXPECT_GE(subgroups, predicted);
    // A step's other kernels are given more room than its hungriest.
    const bool hungriest = !pipeline.name.starts_with("winograd_") && !pipeline.name.starts_with("fft_") &&
                           !pipeline.name.starts_with("gemm_reduce") && !pipeline.name.starts_with("top_k_merge");
    if (hungriest) {
      EXPECT_LE(subgroups, 3 * predicted);
    }
    const auto* tile = get_if<TileSchedule>(&schedule);
    if (pipeline.name.starts_with("integer_tile_dot")) {
      EXPECT_GE(count(code, "v_dot4"), tile->thread_m * tile->thread_n);
      ++dots;
    }
    if (const auto* transforms = get_if<FftTileSchedule>(&schedule)) {
      tile = &transforms->product;
      this->transforms += pipeline.name.starts_with("fft_");
    }
    if (!tile || !(pipeline.name.starts_with("gemm_tile") || pipeline.name.starts_with("gemm_cooperative"))) return;
    ++tiles;
    EXPECT_TRUE(tile->subgroup == 0 || size == tile->subgroup) << size;
    if (tile->variant == "cooperative") {
      EXPECT_GE(wmmas, tile->thread_m / 16 * (tile->thread_n / 16) * (tile->k / 16));
      // Operands go through shared memory in wide words.
      EXPECT_EQ(count(code, "ds_store_b16") + count(code, "ds_load_u16"), 0);
    } else if (tile->variant == "half_sums") {
      // Two products an instruction, all of a run's.
      EXPECT_GE(pairs, tile->thread_m * tile->thread_n / 2 * tile->unroll);
      ++packed;
    } else if (chip_.dual_issue && size == 32) {
      // In pairs, most of them (all_fmacs): in one kernel it depends on which banks the compiler's registers happen to be of. A
      // program behind the sums has some of its own, but leaves the loop as it is.
      EXPECT_GT(5 * duals, fmacs);
      ++dual, all_duals += duals, all_fmacs += duals + fmacs;
      dual_post_ops += pipeline.name.find('+') != std::string::npos;
    }
  }

  Chip chip_;
  std::shared_ptr<vulkan::VulkanBackend> backend_;
  std::set<const vulkan::Pipeline*> seen_;
};

uint32_t constants_of(const Plan& plan, const PlanStep& step) {
  uint32_t bits = 0;
  for (size_t i = 0; i < step.inputs.size() && i < 32; ++i)
    if (plan.tensors[static_cast<size_t>(step.inputs[i])].kind == PlaceKind::constant) bits |= 1u << i;
  return bits;
}

void compile_networks(Compiled& compiled) {
  for (const char* name : {"resnet50", "mobilenetv2"}) {
    auto graph = zoo_network(name);
    ASSERT_TRUE(graph.ok());
    ASSERT_TRUE(simplify(*graph).ok());
    std::vector<InputBinding> bindings;
    for (TensorId id : graph->inputs) {
      Dims shape = graph->tensor(id).shape;
      for (int i = 0; i < shape.size(); ++i) shape[i] = std::max<int64_t>(1, shape[i]);
      bindings.push_back({shape, std::nullopt});
    }
    const auto bound = sparkle::bind(*graph, bindings);
    ASSERT_TRUE(bound.ok()) << bound.error().message;
    const auto plan = make_plan(*bound, compiled.backend()->device());
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const uint64_t before = compiled.backend()->counters().pipelines;
    for (const PlanStep& step : plan->steps)
      if (has_kernel(step)) compiled.step(step.stage, step.schedule, constants_of(*plan, step));
    EXPECT_LE(compiled.backend()->counters().pipelines - before, 40u) << name;
  }
}

// Every schedule of every variant, for a layer in the middle of networks and one with few outputs; the former on f16 too.
void compile_variants(Compiled& compiled) {
  const Device& device = compiled.backend()->device();
  for (const auto& [text, type] :
       {std::pair{"ic64ih56oc64oh56kh3ph1", DType::f32}, std::pair{"ic64ih56oc64oh56kh3ph1", DType::f16},
        std::pair{"ic512ih7oc512oh7kh3ph1", DType::f32}}) {
    auto problem = parse_conv(text);
    ASSERT_TRUE(problem.ok());
    ProblemOperands operands = operands_of(*problem);
    problem->dtype = name_of(type);
    operands.output.dtype = type;
    for (TensorDesc& operand : operands.inputs) operand.dtype = type;
    for (const Algorithm& algorithm : algorithms()) {
      const AnchorCall call{*problem, operands.inputs, operands.output};
      if (algorithm.applies(call) != Reason::none) continue;
      for (const StageUse& use : algorithm.stages(call).stages)
        for (const Variant& variant : info(use.stage.family()).variants) {
          if (!variant.for_workgroups()) continue;
          Reason why = Reason::none;
          for (const Schedule& schedule : info(use.stage.family()).schedules(use.stage, variant, device, why))
            compiled.step(use.stage, schedule, 2);
        }
    }
  }
}

// A program behind sums: a slope per channel, a gate, a number each.
void compile_post_ops(Compiled& compiled, bool matrices) {
  using enum PointwiseOp;
  const PointwiseParams post_op{
      3, {{prelu, 0, 1, 0, 0, 0}, {sigmoid, 2, 0, 0, 0, 0}, {mul, 3, 4, 0, 0, 0}, {affine, 5, 0, 0, 0.5, 1}}};
  const uint64_t before = compiled.backend()->counters().pipelines;
  for (const auto& [text, algorithm] : {std::pair{"ic64ih56oc64oh56kh3ph1", "gemm"},
                                        {"ic64ih56oc64oh56kh3ph1", "winograd4"},
                                        {"ic512ih7oc512oh7kh1ph0", "gemm"},
                                        {"g64ic64ih56oc64oh56kh3ph1", "depthwise"},
                                        {"g64ic64ih56oc64oh56kh31ph15", "fft"},
                                        {"ic64ih56oc64oh56kh13ph6", "fft"},
                                        {"ic64ih56oc64oh56kh3ph1", "matrix_f16"}}) {
    if (!matrices && algorithm == std::string("matrix_f16")) continue;
    auto problem = parse_conv(text);
    ASSERT_TRUE(problem.ok()) << problem.error().message;
    problem->epilogue.bias = true;
    problem->epilogue.post_op = post_op;
    ProblemOperands operands = operands_of(*problem);
    for (const int axis : {0, 2, 3}) operands.inputs[3].layout.strides[axis] = 0;
    PlanOptions options;
    options.algorithm = algorithm;
    const auto choice = choose(AnchorCall{*problem, operands.inputs, operands.output}, compiled.backend()->device(), options);
    ASSERT_TRUE(choice.ok()) << choice.error().message;
    ASSERT_EQ(choice->algorithm, algorithm);
    ASSERT_FALSE(choice->without_kernel);
    compiled.step(choice->plan.stages[0].stage, choice->schedules[0], 2);
  }
  EXPECT_GE(compiled.backend()->counters().pipelines - before, 4u);
}

// Transforms of large filters, with constants and without, on f32 and the first of them on f16: the schedules that rank first.
void compile_transforms(Compiled& compiled) {
  const Device& device = compiled.backend()->device();
  constexpr size_t kMost = 4;
  for (const auto& [text, type] :
       {std::pair{"g32ic32ih56oc32oh56kh31ph15", DType::f32}, std::pair{"ic64ih56oc64oh56kh13ph6", DType::f32},
        std::pair{"ic64ih1iw4096oc64oh1ow3841kh1kw256ph0", DType::f32}, std::pair{"g32ic32ih56oc32oh56kh31ph15", DType::f16},
        std::pair{"ic64ih56oc64oh56kh13ph6", DType::f16}}) {
    auto problem = parse_conv(text);
    ASSERT_TRUE(problem.ok());
    ProblemOperands operands = operands_of(*problem);
    problem->dtype = name_of(type);
    operands.output.dtype = type;
    for (TensorDesc& operand : operands.inputs) operand.dtype = type;
    const AnchorCall call{*problem, operands.inputs, operands.output};
    const Algorithm* fft = algorithm_named("fft");
    ASSERT_NE(fft, nullptr);
    ASSERT_EQ(fft->applies(call), Reason::none) << text;
    const Stage stage = fft->stages(call).stages[0].stage;
    for (const Variant& variant : info(Family::fft).variants) {
      if (!variant.for_workgroups()) continue;
      Reason why = Reason::none;
      const auto schedules = info(Family::fft).schedules(stage, variant, device, why);
      for (size_t i = 0; i < std::min(kMost, schedules.size()); ++i) compiled.step(stage, schedules[i], i == 0 ? 0 : 2);
    }
  }
}

// Each variant on the sample stages of its family's row. Tiles of floats and transforms are those of the layers above.
void compile_samples(Compiled& compiled) {
  const Device& device = compiled.backend()->device();
  const auto pipelines = [&] { return compiled.backend()->counters().pipelines; };
  int variants = 0;
  for (int f = 0; f < kFamilies; ++f) {
    const FamilyInfo& family = info(static_cast<Family>(f));
    for (const Variant& variant : family.variants) {
      if (!variant.for_workgroups()) continue;
      const Schedule asked = LoopSchedule{std::string(variant.name), "fma-f32", 0};
      const int sharing = compiled.sharing;
      const uint64_t before = pipelines();
      bool shares = false;
      for (const SampleForm& form : family.sample_forms())
        for (const Stage& stage : family.samples({form.params, asked, form.inputs, form.outputs})) {
          Reason why = Reason::none;
          auto schedules = family.schedules(stage, variant, device, why);
          if (schedules.empty() && why == Reason::costlier) schedules = {asked};
          if (schedules.empty() || get_if<FftTileSchedule>(&schedules[0])) continue;
          if (get_if<TileSchedule>(&schedules[0]) && variant.name != kNativeType) continue;
          shares |= vulkan::needs_of(stage, schedules[0]).shared_bytes > 0;
          compiled.step(stage, schedules[0], 0);
        }
      variants += pipelines() > before;
      EXPECT_TRUE(compiled.sharing > sharing || !shares || pipelines() == before) << family.name << "/" << variant.name;
    }
  }
  EXPECT_GT(variants, 20);
}

// A layer of 8-bit integers, its weights of 8 or 16 bits; tiles for the former alone.
Stage layer_of_bytes(const StageParams& params, const Dims& weights, DType type) {
  const Dims x{1, 128, 28, 28}, list{128}, one{1};
  return {params,
          {{DType::u8, x, channels_last(x)},
           dense_desc(type, weights),
           dense_desc(DType::f32, list),
           dense_desc(DType::i32, list),
           dense_desc(DType::u8, one),
           dense_desc(type, one),
           dense_desc(DType::u8, one)},
          {{DType::u8, x, channels_last(x)}}};
}

void compile_bytes(Compiled& compiled) {
  GemmParams dense;
  dense.epilogue.scale = dense.epilogue.bias = true;
  DepthwiseParams depthwise;
  depthwise.window.filter = {1, 3, 3}, depthwise.window.pad_begin = {0, 1, 1};
  depthwise.epilogue = dense.epilogue;
  for (const Stage& stage :
       {layer_of_bytes(dense, {128, 128, 1, 1}, DType::i8), layer_of_bytes(depthwise, {128, 1, 3, 3}, DType::i16)})
    for (const Variant& variant : info(stage.family()).variants) {
      Reason why = Reason::none;
      if (variant.for_workgroups())
        for (const Schedule& schedule : info(stage.family()).schedules(stage, variant, compiled.backend()->device(), why))
          compiled.step(stage, schedule, 2);
    }
  EXPECT_EQ(compiled.dots > 0, compiled.backend()->device().unit("dot-i8") != nullptr);
}

// Programs of element-wise operations, printed as a session would.
void compile_programs(Compiled& compiled) {
  using enum PointwiseOp;
  const LoopSchedule printed{"printed", "fma-f32", 0};
  const std::vector<PointwiseInstruction> gate{
      {sigmoid, 0, 0, 0, 0, 0}, {mul, 0, 3, 0, 0, 0}, {mul, 4, 1, 0, 0, 0}, {add, 5, 2, 0, 0, 0}},
      divided{{div, 0, 1, 0, 0, 0}, {max, 2, 1, 0, 0, 0}};
  const auto compile = [&](const PointwiseParams& program, DType type, DType result) {
    for (const int64_t width : {64, 63}) {  // four neighbours a thread, and one
      const Dims shape{2, 5, width};
      Stage stage;
      stage.params = program;
      for (int i = 0; i < program.inputs; ++i) stage.inputs.push_back(dense_desc(type, shape));
      stage.outputs.push_back(dense_desc(result, shape));
      compiled.step(stage, printed, 0);
    }
  };
  for (const DType type : {DType::f32, DType::f16, DType::f64}) compile({3, gate}, type, type);
  for (const DType type : {DType::i32, DType::i64}) compile({2, divided}, type, type);
  compile({1, {{}}}, DType::f32, DType::u8);
}

void check_chip(const Chip& chip) {
  if (!in_child()) {
    const std::string shim = first_match("/usr/lib/*/libamdgpu_noop_drm_shim.so"),
                      driver = first_match("/usr/share/vulkan/icd.d/radeon_icd*.json");
    if (shim.empty() || driver.empty())
      GTEST_SKIP() << "SKIP: Mesa's drm-shim or RADV is not installed (Debian: mesa-drm-shim, mesa-vulkan-drivers)";
    return again("LD_PRELOAD=" + shim + " AMDGPU_GPU_ID=" + chip.id + " VK_DRIVER_FILES=" + driver);
  }
  Compiled compiled(chip);
  ASSERT_NE(compiled.backend(), nullptr);
  EXPECT_EQ(compiled.backend()->device().unit("coopmat-f16") != nullptr, chip.matrices);
  std::printf(
      "| chip | pipeline | subgroup | VGPRs | subgroups per SIMD | LDS | code bytes | v_dual_fmac | v_fmac | v_wmma | v_pk_fma "
      "|\n");
  compile_networks(compiled);
  compile_variants(compiled);
  compile_post_ops(compiled, chip.matrices);
  compile_transforms(compiled);
  compile_samples(compiled);
  compile_bytes(compiled);
  compile_programs(compiled);
  EXPECT_GT(compiled.tiles, 10);
  EXPECT_GT(compiled.transforms, 10);
  EXPECT_EQ(compiled.dual > 0, chip.dual_issue);
  EXPECT_EQ(compiled.dual_post_ops > 0, chip.dual_issue);
  EXPECT_GE(4 * compiled.all_duals, 3 * compiled.all_fmacs);
  EXPECT_GT(compiled.packed, 0);
}

TEST(Codegen, Navi31) { check_chip(kNavi31); }
TEST(Codegen, Navi21) { check_chip(kNavi21); }
TEST(Codegen, Vega10) { check_chip(kVega10); }

// Whether the device has what the shader declares (numbers of the SPIR-V specification).
bool supported(std::span<const uint32_t> words, const vulkan::Features& f) {
  for (size_t at = 5; at < words.size() && words[at] >> 16; at += words[at] >> 16) {
    if ((words[at] & 0xffff) == 10 &&
        reinterpret_cast<const char*>(&words[at + 1]) == std::string("SPV_NV_cooperative_matrix2"))
      if (!f.cooperative_groups) return false;
    if ((words[at] & 0xffff) != 17) continue;
    switch (words[at + 1]) {
      case 9:
      case 4433:
        if (!f.f16) return false;
        break;
      case 10:
        if (!f.f64) return false;
        break;
      case 11:
        if (!f.i64) return false;
        break;
      case 22:
        if (!f.i16) return false;
        break;
      case 39:
      case 4448:
        if (!f.i8) return false;
        break;
      case 6018:
      case 6019:
        if (!f.dot) return false;
        break;
      case 6022:
        if (!f.cooperative) return false;
        break;
    }
  }
  return true;
}

class CodegenSweep : public ::testing::TestWithParam<const char*> {};
TEST_P(CodegenSweep, CompilesAllShaders) {
  if (!in_child()) {
    const std::string driver = first_match("/usr/share/vulkan/icd.d/radeon_icd*.json");
    if (driver.empty()) GTEST_SKIP() << "SKIP: RADV is not installed (Debian: mesa-vulkan-drivers)";
    return again(std::string("RADV_FORCE_FAMILY=") + GetParam() + " VK_DRIVER_FILES=" + driver);
  }
  auto instance = vulkan::Instance::open();
  ASSERT_TRUE(instance.ok()) << instance.error().message;
  vulkan::ContextOptions options;
  options.cache = false, options.compile_only = true;
  auto context = vulkan::Context::open(*instance, 0, options);
  ASSERT_TRUE(context.ok()) << context.error().message;
  vulkan::Pipelines pipelines(*context);
  int compiled = 0;
  for (const vulkan::Shader& shader : vulkan::shaders()) {
    if (!supported(shader.words, (*context)->features())) continue;
    vulkan::PipelineRequest request;
    request.shader = shader.name;
    request.constants = {64, 1, 1};
    const auto pipeline = pipelines.get(request);
    EXPECT_TRUE(pipeline.ok()) << shader.name << ": " << pipeline.error().message;
    ++compiled;
  }
  std::printf("| %s | %d shaders |\n", GetParam(), compiled);
  EXPECT_GT(compiled, 3);
}
INSTANTIATE_TEST_SUITE_P(Chips, CodegenSweep,
                         ::testing::Values("polaris10", "vega10", "vega20", "navi10", "navi21", "navi33", "gfx1151", "gfx1201"),
                         [](const auto& chip) { return std::string(chip.param); });

}  // namespace
}  // namespace sparkle
