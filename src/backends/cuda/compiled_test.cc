// Pointwise programs that are printed and compiled at run time, over the functional model: the interpreter's bytes, the
// family's reference, planted mistakes, and what is kept of compiled texts.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "backends/cuda/compiled_testing.h"
#include "backends/self_tests/sample_run.h"
#include "backends/self_tests/sample_testing.h"
#include "backends/self_tests/variant_self_tests.h"

namespace sparkle::cuda {
namespace {

using cpu::TestRandom;
namespace fs = std::filesystem;

const Schedule kOfCompiler = pointwise_schedule("compiled"), kOfInterpreter = pointwise_schedule("interpreted");

// A stage of random types, shape, layouts and broadcasts.
Stage drawn(TestRandom& random) {
  using enum PointwiseOp;
  static const PointwiseParams programs[] = {
      {3, {{fma, 0, 1, 2, 0, 0}, {silu, 3, 0, 0, 0, 0}}},
      {2, {{less, 0, 1, 0, 0, 0}, {affine, 1, 0, 0, 0.5, -1}, {select, 2, 0, 3, 0, 0}}},
      {4, {{max, 0, 1, 0, 0, 0}, {min, 4, 2, 0, 0, 0}, {clip, 5, 0, 0, -1.5, 1.25}, {mul, 6, 3, 0, 0, 0}}},
      {1, {{identity, 0, 0, 0, 0, 0}}},
      {5, {{add, 0, 1, 0, 0, 0}, {mul, 5, 2, 0, 0, 0}, {sub, 6, 3, 0, 0, 0}, {prelu, 7, 4, 0, 0, 0}}},
  };
  static constexpr DType kReals[] = {DType::f32, DType::f16, DType::bf16, DType::f32, DType::u8, DType::boolean, DType::i8};
  static constexpr DType kWhole[] = {DType::i8,  DType::u8,  DType::i16, DType::u16,
                                     DType::i32, DType::u32, DType::i64, DType::u64};
  static constexpr DType kDoubles[] = {DType::f64, DType::f32, DType::i64, DType::i32};
  const auto pick = [&](std::span<const DType> list) {
    return list[static_cast<size_t>(random.between(0, static_cast<int64_t>(list.size()) - 1))];
  };
  const int64_t kind = random.between(0, 9);
  const std::span<const DType> types = kind < 6   ? std::span<const DType>(kReals)
                                       : kind < 9 ? std::span<const DType>(kWhole)
                                                  : std::span<const DType>(kDoubles);
  PointwiseParams params = programs[static_cast<size_t>(random.between(0, 4))];
  const DType first = pick(types);
  const bool one_type = random.chance(60) || kind >= 6;
  Stage stage;
  const int rank = static_cast<int>(random.between(0, 5));
  Dims shape = random.chance(30) ? Dims{random.between(1, 3), random.between(1, 3) * 8, random.between(30, 150)}
                                 : random.shape(rank, rank <= 2   ? 60
                                                      : rank == 3 ? 16
                                                                  : 6);
  const bool dense = random.chance(50);
  const auto described = [&](DType type, int broadcast) {
    return dense && broadcast == 0 ? dense_desc(type, shape) : TensorDesc{type, shape, random.layout(shape, broadcast)};
  };
  for (int i = 0; i < params.inputs; ++i)
    stage.inputs.push_back(described(one_type ? first : pick(types), random.chance(30) ? 50 : 0));
  const DType result = kind < 6 ? (random.chance(70) ? first : DType::f32) : first;
  stage.outputs.push_back(described(result, 0));
  if (!is_float(pointwise_arithmetic(stage.inputs, stage.outputs[0])))
    for (PointwiseInstruction& step : params.program) {
      if (step.op == silu) step.op = neg;
      if (step.op == affine) step.a = -2, step.b = 3.5;
    }
  stage.params = std::move(params);
  return stage;
}

std::string text_of(const Stage& stage) {
  std::string text = to_text(stage.params);
  for (const TensorDesc& d : stage.inputs) text += " " + std::string(name_of(d.dtype)) + ":" + d.layout.strides.to_string();
  return text + " -> " + std::string(name_of(stage.outputs[0].dtype)) + " " + stage.outputs[0].shape.to_string() + ":" +
         stage.outputs[0].layout.strides.to_string();
}

std::vector<CompiledOperand> operands_of(const Stage& stage, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<CompiledOperand> operands;
  for (size_t i = 0; i < stage.inputs.size(); ++i) {
    CompiledOperand& operand = operands.emplace_back(stage.inputs[i]);
    for_each_index(operand.desc.shape, [&](const Dims& at) {
      store_element(operand.desc.dtype, pointwise_info().sample_value(stage, i, random), element_at(operand.view(), at));
    });
  }
  return operands;
}

TEST_F(CompiledPrograms, RandomStagesGiveTheInterpretersBytesAndTheReferences) {
  const auto backend = test_backend();
  ASSERT_TRUE(backend);
  EXPECT_TRUE(backend->device().compiles);
  const testing::Sample sample = testing::sample();
  int run = 0, in_pieces = 0, with_tail = 0;
  for (unsigned seed = 1; seed <= 48 && !HasFailure(); ++seed) {
    if (!sample.takes(seed)) continue;
    TestRandom random(seed);
    const Stage stage = drawn(random);
    const std::string note = "seed " + std::to_string(seed) + " " + text_of(stage);
    auto inputs = operands_of(stage, seed);
    const auto compiled = output_of(*backend, stage, kOfCompiler, inputs);
    const auto interpreted = output_of(*backend, stage, kOfInterpreter, inputs);
    ASSERT_TRUE(compiled.ok()) << note << ": " << compiled.error().message;
    ASSERT_TRUE(interpreted.ok()) << note << ": " << interpreted.error().message;
    EXPECT_TRUE(*compiled == *interpreted) << note;
    const Status ran = run_sample(*backend, stage, kOfCompiler, 0, {});
    EXPECT_TRUE(ran.ok()) << note << ": " << (ran.ok() ? "" : ran.error().message);
    const auto printed = pointwise_text(stage);
    ASSERT_TRUE(printed.ok());
    in_pieces += printed->text.find("load_cells") != std::string::npos;
    with_tail += printed->text.find("what is left of the axis") != std::string::npos;
    ++run;
  }
  if (sample.share == 1) {
    EXPECT_GT(in_pieces, 8);
    EXPECT_GT(with_tail, 3);
  }
  std::printf("%d stages, %d with loads of pieces, %d with a tail\n", run, in_pieces, with_tail);
}

// What is tried before first use: conversions between all kinds of types, and operations in each.
TEST_F(CompiledPrograms, TheirSelfTestsAreRight) {
  const auto backend = test_backend();
  ASSERT_TRUE(backend);
  const testing::Sample sample = testing::sample();
  unsigned number = 0;
  int run = 0;
  for (const VariantSelfTests& variant : self_tests_of_variants(backend->device())) {
    if (variant.name != "pointwise/compiled") continue;
    EXPECT_GT(variant.self_tests.size(), 25u);
    for (const SelfTest& t : variant.self_tests) {
      if (number++ % 2 || !sample.takes(number / 2)) continue;  // each takes the compiler twice
      const Status ran = run_self_test(*backend, t, std::chrono::minutes(1));
      EXPECT_TRUE(ran.ok()) << t.to_text() << ": " << (ran.ok() ? "" : ran.error().message);
      ++run;
    }
  }
  EXPECT_GT(run, 0);
}

// Every operation in one text: the second operand says which of them gives the result.
PointwiseParams every_operation(bool real) {
  using enum PointwiseOp;
  PointwiseParams p{2, {}};
  const auto append = [&](PointwiseOp op, int x, int y, int z, double a, double b) {
    p.program.push_back({op, x, y, z, a, b});
    return p.inputs + static_cast<int>(p.program.size()) - 1;
  };
  int result = append(sub, 0, 0, 0, 0, 0);
  const int zero = append(sub, 1, 1, 0, 0, 0);
  for (int k = 0; k <= static_cast<int>(mish); ++k) {
    const auto op = static_cast<PointwiseOp>(k);
    if (op == power_of_two || (!real && !serves_integers(op))) continue;
    // A number among integers too: no constants there, but bounds.
    const int number = real ? append(constant, 0, 0, 0, k, 0) : append(clip, zero, 0, 0, k, k);
    const int wanted = append(equal, 1, number, 0, 0, 0), value = append(op, 0, 0, 1, 0.25, 0.75);
    result = append(select, wanted, value, result, 0, 0);
  }
  append(identity, result, 0, 0, 0, 0);
  return p;
}

TEST_F(CompiledPrograms, EveryOperationIsItsDefinition) {
  const auto backend = test_backend();
  ASSERT_TRUE(backend);
  for (const DType type : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u64}) {
    const bool real = is_float(type);
    Stage stage;
    stage.params = every_operation(real);
    const Dims shape{static_cast<int>(PointwiseOp::mish) + 1, 9};
    stage.inputs = {dense_desc(type, shape), {type, shape, row_major(shape)}};
    stage.inputs[1].layout.strides[1] = 0;
    stage.inputs[1].layout.strides[0] = 1;
    stage.outputs = {dense_desc(type, shape)};
    std::vector<CompiledOperand> inputs{CompiledOperand(stage.inputs[0]), CompiledOperand(stage.inputs[1])};
    constexpr double kPoints[] = {0, 0.25, -0.75, 1, -1, 2.5, -3.5, 7, 30};
    for_each_index(shape, [&](const Dims& at) {
      store_element(type, kPoints[at[1]], element_at(inputs[0].view(), at));
      store_element(type, static_cast<double>(at[0]), element_at(inputs[1].view(), at));
    });
    const auto got = output_of(*backend, stage, kOfCompiler, inputs);
    ASSERT_TRUE(got.ok()) << got.error().message;
    CompiledOperand output(stage.outputs[0]), wanted(stage.outputs[0]);
    output.bytes = *got;
    const std::vector<TensorView> in{inputs[0].view(), inputs[1].view()};
    const TensorView out = wanted.view();
    pointwise_info().reference(stage.params, in, {&out, 1});
    for_each_index(shape, [&](const Dims& at) {
      const double a = output.at(at), b = wanted.at(at);
      const double bound = !real ? 0 : (type == DType::f32 ? 2e-6 : 4e-15) * std::max(1.0, std::abs(b));
      EXPECT_TRUE(cpu::close(a, b, bound)) << name_of(static_cast<PointwiseOp>(at[0])) << " of " << inputs[0].at(at) << " as "
                                           << name_of(type) << ": " << a << " instead of " << b;
    });
  }
}

// The text with a mistake in it, in the place of the one that is printed.
std::shared_ptr<CudaBackend> backend_with(const std::string& right, const std::string& wrong) {
  return test_backend([=](const Stage& stage, const Schedule&, const Workshop& shop, uint32_t) -> Result<CudaKernelPtr> {
    SPARKLE_TRY(program, pointwise_text(stage));
    const size_t at = program.text.find(right);
    EXPECT_NE(at, std::string::npos) << "'" << right << "' is not in\n" << program.text;
    program.text.replace(std::min(at, program.text.size()), at == std::string::npos ? 0 : right.size(), wrong);
    SPARKLE_TRY(launch, launch_of_program(stage, shop, std::move(program)));
    auto kernel = std::make_unique<CudaKernel>(stage);
    kernel->launches.push_back(std::move(launch));
    return kernel;
  });
}

TEST_F(CompiledPrograms, PlantedMistakesAreFound) {
  Stage stage;
  stage.params = PointwiseParams{2, {{PointwiseOp::add, 0, 1, 0, 0, 0}}};
  const Dims shape{3, 7, 10};
  Layout wide = row_major(shape);  // rows with a gap: the axes stay apart
  wide.strides[1] = 12, wide.strides[0] = 84;
  stage.inputs = {{DType::f32, shape, wide}, dense_desc(DType::f32, shape)};
  stage.outputs = {{DType::f32, shape, wide}};
  struct Mistake {
    const char *right, *wrong;
  };
  for (const Mistake& m : {Mistake{"", ""},                               // none: it is right
                           Mistake{"p0 * 12", "p0 * 10"},                 // a wrong stride
                           Mistake{"i < 10 - first; ++i", "i < 0; ++i"},  // no tail
                           Mistake{"if (first + 4 > 10)", "if (false)"},  // a tail that is written in whole pieces
                           Mistake{"(p0 * 10 + first)", "(p0 * 10 + first - first % 8)"},       // some neighbours twice
                           Mistake{"evaluate<Op::add>(v0, v1", "evaluate<Op::add>(v0, v0"}}) {  // another operand
    const auto backend = backend_with(m.right, m.wrong);
    ASSERT_TRUE(backend);
    const Status ran = run_sample(*backend, stage, kOfCompiler, 0, {});
    EXPECT_EQ(ran.ok(), *m.right == 0) << m.wrong << ": " << (ran.ok() ? "nothing was found" : ran.error().message);
  }
}

TEST_F(CompiledPrograms, WhatDoesNotCompileIsASentenceAndGivesWay) {
  const auto backend = backend_with("using namespace sparkle::cuda;", "no such thing;");
  ASSERT_TRUE(backend);
  TestRandom random(3);
  const Stage stage = drawn(random);
  const auto kernel = backend->compile(stage, kOfCompiler, 0);
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.error().reason, Reason::internal);
  EXPECT_NE(kernel.error().message.find("NVRTC 13.0 does not compile a program"), std::string::npos) << kernel.error().message;
  EXPECT_NE(kernel.error().message.find("program.cu:"), std::string::npos) << kernel.error().message;
  EXPECT_NE(kernel.error().message.find("error: "), std::string::npos) << kernel.error().message;
  EXPECT_EQ(kernel.error().message.find('\n'), std::string::npos);
  // Tried first, the device denies it, and the planner's next schedule is the interpreter's.
  const ScheduledStage tried{&stage, &kOfCompiler};
  const Status said = backend->try_out({&tried, 1});
  ASSERT_FALSE(said.ok());
  EXPECT_EQ(said.error().reason, Reason::failed_probe);
  EXPECT_TRUE(backend->device().denies("pointwise", "compiled"));
  EXPECT_FALSE(backend->device().denies("pointwise", "interpreted"));
}

// Which variants a device has schedules of.
TEST_F(CompiledPrograms, AreThereWhereTheDeviceCompiles) {
  const auto backend = test_backend();
  ASSERT_TRUE(backend);
  TestRandom random(3);
  const Stage stage = drawn(random);
  Device device = backend->device();
  for (const bool compiles : {true, false}) {
    device.compiles = compiles;
    for (const Variant& v : pointwise_info().variants) {
      if (!v.runs_on(device)) continue;
      Reason why = Reason::none;
      const bool there = !pointwise_info().schedules(stage, v, device, why).empty();
      EXPECT_EQ(there, compiles || v.name == "interpreted") << v.name;
      if (!there) {
        EXPECT_EQ(why, Reason::compiler_missing);
      }
    }
  }
}

// A folder of its own for what is kept.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("sparkle_compiled_" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> list;
    std::error_code error;
    for (fs::directory_iterator at(path / "cuda_programs", error), end; !error && at != end; at.increment(error))
      list.push_back(at->path());
    return list;
  }
};
std::shared_ptr<CudaBackend> backend_keeping(const fs::path& folder) {
  CudaOptions options;
  options.cache_folder = folder.string();
  const auto driver = Driver::open(12000);
  EXPECT_TRUE(driver.ok()) << (driver.ok() ? "" : driver.error().message);
  const auto backend = make_cuda_backend(*driver, 0, options, std::make_shared<InlineExecutor>());
  EXPECT_TRUE(backend.ok()) << (backend.ok() ? "" : backend.error().message);
  return *backend;
}

TEST_F(CompiledPrograms, AreKeptInMemoryAndOnDisk) {
  const Folder folder;
  TestRandom random(5);
  const Stage stage = drawn(random);
  const auto counts = [&](const fs::path& where, int times, uint64_t compiled, uint64_t read) {
    const auto backend = backend_keeping(where);
    auto inputs = operands_of(stage, 1);
    for (int i = 0; i < times; ++i) {
      const auto output = output_of(*backend, stage, kOfCompiler, inputs);
      EXPECT_TRUE(output.ok()) << output.error().message;
    }
    EXPECT_EQ(backend->counters().compiled, compiled);
    EXPECT_EQ(backend->counters().read, read);
  };
  counts(folder.path, 2, 1, 0);
  ASSERT_EQ(folder.files().size(), 1u);
  counts(folder.path, 1, 0, 1);
  // Damaged in the middle, cut, emptied: compiled again, and written anew.
  const fs::path file = folder.files()[0];
  std::stringstream whole;
  whole << std::ifstream(file, std::ios::binary).rdbuf();
  const std::string text = whole.str();
  std::string changed = text;
  changed[text.size() / 2] ^= 1;
  for (const std::string& damaged : {changed, text.substr(0, text.size() / 2), std::string()}) {
    std::ofstream(file, std::ios::binary) << damaged;
    counts(folder.path, 1, 1, 0);
  }
  counts(folder.path, 1, 0, 1);
  // Another NVRTC has texts of its own.
  const With newer("SPARKLE_NVRTC_MODEL_VERSION", "13010"), its_driver("SPARKLE_CUDA_MODEL_VERSION", "13010");
  counts(folder.path, 1, 1, 0);
  EXPECT_EQ(folder.files().size(), 2u);
  // Where nothing can be written it is compiled each time.
  std::ofstream(folder.path / "file") << "no folder";
  for (int i = 0; i < 2; ++i) counts(folder.path / "file", 1, 1, 0);
}

}  // namespace
}  // namespace sparkle::cuda
