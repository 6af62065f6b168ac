// NVRTC as a library: what is said where it is not usable; and where the real one is at hand (scripts/setup cuda brings it),
// that it compiles what is printed.
#include "backends/cuda/nvrtc/nvrtc.h"

#include <filesystem>

#include "backends/cuda/compiled_testing.h"
#include "device/device_json.h"
#include "families/type_set.h"

namespace sparkle::cuda {
namespace {

namespace fs = std::filesystem;

void expect_refused(const std::string& part) {
  const auto driver = Driver::open(12000);
  ASSERT_FALSE(driver.ok()) << part;
  EXPECT_EQ(driver.error().reason, Reason::device_unusable);
  EXPECT_NE(driver.error().message.find(part), std::string::npos) << driver.error().message;
  EXPECT_NE(driver.error().message.find("SPARKLE_NVRTC names it: unset it"), std::string::npos) << driver.error().message;
}

TEST(Nvrtc, SaysWhyItCannotBeUsed) {
  {
    const With nowhere("SPARKLE_NVRTC", "/nowhere/libnvrtc.so.13");
    expect_refused("the library '/nowhere/libnvrtc.so.13' cannot be opened");
  }
  {
    const With other("SPARKLE_NVRTC", "libm.so.6");
    expect_refused("the library 'libm.so.6' has no nvrtcVersion");
  }
  const With model("SPARKLE_NVRTC", SPARKLE_NVRTC_MODEL), newer("SPARKLE_NVRTC_MODEL_VERSION", "13050");
  expect_refused("NVRTC 13.5 makes PTX that a driver of CUDA 13.0 does not read");
}

TEST(Nvrtc, IsKnownToTheDescription) {
  const auto described = [] {
    const auto driver = Driver::open(12000);
    EXPECT_TRUE(driver.ok()) << (driver.ok() ? "" : driver.error().message);
    return (*driver)->devices()[0];
  };
  const DeviceInfo without = described();  // a stand-in for a driver has none unless one is named
  EXPECT_FALSE(without.description.compiles);
  const With model("SPARKLE_NVRTC", SPARKLE_NVRTC_MODEL);
  const DeviceInfo with = described();
  EXPECT_TRUE(with.description.compiles);
  EXPECT_NE(with.id, without.id);
  const auto read = device_from_json(device_to_json(with.description, "", {}));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, with.description);
  const With none("SPARKLE_NVRTC", "");
  EXPECT_FALSE(described().description.compiles);
}

TEST(Nvrtc, TakesTheNewestArchitectureThatTheDeviceRuns) {
  const auto nvrtc = Nvrtc::open(SPARKLE_NVRTC_MODEL);
  ASSERT_TRUE(nvrtc.ok()) << nvrtc.error().message;
  EXPECT_EQ((*nvrtc)->architecture(86), 86);
  EXPECT_EQ((*nvrtc)->architecture(87), 86);
  EXPECT_EQ((*nvrtc)->architecture(121), 120);
  EXPECT_EQ((*nvrtc)->architecture(70), 0);
}

// The real library: what scripts/setup has brought, else the system's.
std::shared_ptr<Nvrtc> real_nvrtc() {
  std::error_code error;
  for (fs::recursive_directory_iterator at(SPARKLE_SOURCE_DIR "/build/venv-cuda/lib", error), end; !error && at != end;
       at.increment(error))
    if (at->path().filename().string().starts_with("libnvrtc.so."))
      if (auto nvrtc = Nvrtc::open(at->path().string()); nvrtc.ok()) return *nvrtc;
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12"})
    if (auto nvrtc = Nvrtc::open(name); nvrtc.ok()) return *nvrtc;
  return nullptr;
}

Stage stage_of(PointwiseParams params, std::vector<DType> inputs, DType output, const Dims& shape) {
  Stage stage;
  stage.params = std::move(params);
  for (const DType type : inputs) stage.inputs.push_back(dense_desc(type, shape));
  stage.outputs.push_back(dense_desc(output, shape));
  return stage;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(Nvrtc, TheRealOneCompilesEveryOperationAndType) {
  const auto nvrtc = real_nvrtc();
  if (!nvrtc) GTEST_SKIP() << "SKIP: no libnvrtc.so.13 or .12 is at hand; scripts/setup cuda brings one";
  const auto ptx_of = [&](const Stage& stage, int architecture) {
    const auto printed = pointwise_text(stage);
    EXPECT_TRUE(printed.ok()) << (printed.ok() ? "" : printed.error().message);
    if (!printed.ok()) return std::string();
    auto ptx = nvrtc->compile(printed->text, architecture);
    EXPECT_TRUE(ptx.ok()) << (ptx.ok() ? "" : ptx.error().message) << "\n" << printed->text;
    if (!ptx.ok()) return std::string();
    EXPECT_TRUE(has(*ptx, ".entry " + printed->name)) << *ptx;
    EXPECT_TRUE(has(*ptx, ".target sm_" + std::to_string(architecture)));
    return *ptx;
  };
  // Every operation, all in one program a type.
  for (const DType type : {DType::f32, DType::f64, DType::i64, DType::i8}) {
    PointwiseParams p{3, {}};
    for (int k = 0; k <= static_cast<int>(PointwiseOp::mish); ++k) {
      const auto op = static_cast<PointwiseOp>(k);
      if (op == PointwiseOp::power_of_two || (!is_float(type) && !serves_integers(op))) continue;
      p.program.push_back({op, k % 3, (k + 1) % 3, 2, 0.25, std::numeric_limits<double>::infinity()});
      if (p.program.size() < 2) continue;
      const int last = p.inputs + static_cast<int>(p.program.size()) - 1;
      p.program.push_back({PointwiseOp::add, last, last - 1, 0, 0, 0});
    }
    ptx_of(stage_of(p, {type, type, type}, type, {4, 40}), type == DType::f64 ? 90 : 80);
  }
  // Nothing of f32 is computed in double precision, products and sums are rounded each.
  const PointwiseParams plain{1, {{PointwiseOp::affine, 0, 0, 0, 0.5, 1}, {PointwiseOp::sqrt, 1, 0, 0, 0, 0}}};
  const std::string rounded = ptx_of(stage_of(plain, {DType::f32}, DType::f32, {1024}), 80);
  EXPECT_FALSE(has(rounded, ".f64")) << rounded;
  EXPECT_FALSE(has(rounded, "fma.rn")) << rounded;
  // Every type from and to memory, in pieces of 16 bytes.
  constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i8,  DType::u8,     DType::i16,
                              DType::u16, DType::i32, DType::u32,  DType::i64, DType::u64, DType::boolean};
  for (const DType type : kTypes) {
    const PointwiseParams identity{1, {{PointwiseOp::identity, 0, 0, 0, 0, 0}}};
    const std::string to = ptx_of(stage_of(identity, {DType::f32}, type, {64}), 80);
    const std::string from = ptx_of(stage_of(identity, {type}, DType::f32, {64}), 80);
    if (type == DType::f16 || type == DType::bf16) {
      EXPECT_TRUE(has(from, "ld.global.nc.v4")) << from;
      EXPECT_TRUE(has(to, "st.global.v4")) << to;
    }
  }
  // What is wrong is said.
  const auto wrong = nvrtc->compile("__global__ void f() { nothing(); }", 80);
  ASSERT_FALSE(wrong.ok());
  EXPECT_TRUE(has(wrong.error().message, "error: identifier \"nothing\" is undefined")) << wrong.error().message;
}

}  // namespace
}  // namespace sparkle::cuda
