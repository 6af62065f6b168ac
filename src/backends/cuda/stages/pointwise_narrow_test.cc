// Elements of fewer than 16 bits on CUDA, over the functional model: every code of each type becomes what the family's plain
// loops make of it, and every type becomes each of them, by all roundings, to the byte.
#include "backends/cuda/compiled_testing.h"
#include "families/pointwise/cast.h"

namespace sparkle::cuda {
namespace {

constexpr DType kNarrowTypes[] = {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::f8e8m0,
                                  DType::f4e2m1,   DType::i4,         DType::u4,     DType::i2,         DType::u2};
constexpr DType kOthers[] = {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i8,
                             DType::u16, DType::i32, DType::i64,  DType::u64, DType::boolean};

// All codes, bits that are none of the element's among them; or numbers of every size, many in the middle between two codes.
CompiledOperand values_of(DType type, uint32_t seed) {
  CompiledOperand operand(dense_desc(type, {600}));
  std::mt19937 random(seed);
  const auto below = [&](uint32_t end) { return static_cast<int>(random() % end); };
  for (int64_t i = 0; i < 600; ++i) {
    if (is_narrow(type)) {
      operand.bytes[static_cast<size_t>(i)] = static_cast<std::byte>(i & 255);
      continue;
    }
    constexpr double kSpecial[] = {0, -0.0, 1, -1, NAN, INFINITY, -INFINITY, 1e-42, 3e38, 448, 464, 57344, 61440};
    double value = i < static_cast<int64_t>(std::size(kSpecial)) ? kSpecial[i] : std::ldexp(below(65) - 32, below(36) - 20);
    if (!is_float(type)) value = i % 2 ? below(200) - 100 : below(20) - 8;
    if (!is_float(type) && type != DType::i8 && type != DType::i32 && type != DType::i64) value = std::abs(value);
    store_element(type, value, operand.bytes.data() + i * size_of(type));
  }
  return operand;
}

void expect_the_references_bytes(CudaBackend& backend, const PointwiseParams& params, DType from, DType to, uint32_t seed) {
  SCOPED_TRACE(std::string(name_of(from)) + " to " + std::string(name_of(to)) + " " + to_text(params));
  std::vector<CompiledOperand> inputs{values_of(from, seed)};
  const Stage stage{params, {inputs[0].desc}, {dense_desc(to, {600})}};
  Reason why = Reason::none;
  for (const Variant& variant : pointwise_info().variants) {
    const bool interpreted = variant.name == "interpreted";
    if (interpreted || variant.name == "compiled") {
      EXPECT_EQ(pointwise_info().schedules(stage, variant, backend.device(), why).empty(), !interpreted);
    }
  }
  const auto got = output_of(backend, stage, pointwise_schedule("interpreted"), inputs);
  ASSERT_TRUE(got.ok()) << got.error().message;
  CompiledOperand wanted(stage.outputs[0]), output(stage.outputs[0]);
  output.bytes = *got;
  const std::vector<TensorView> in{inputs[0].view()};
  const TensorView out = wanted.view();
  pointwise_info().reference(params, in, {&out, 1});
  const auto size = static_cast<size_t>(size_of(to));
  for (int64_t i = 0; i < 600; ++i) {
    const double a = output.at({i}), b = wanted.at({i});
    const auto at = static_cast<size_t>(i) * size;
    const bool same = std::memcmp(&output.bytes[at], &wanted.bytes[at], size) == 0;
    EXPECT_TRUE(same || (is_float(to) && std::isnan(a) && std::isnan(b)))
        << inputs[0].at({i}) << " became " << a << " instead of " << b;
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(CudaNarrow, EveryCodeBecomesItsNumber) {
  const auto backend = test_backend();
  ASSERT_TRUE(backend);
  for (const DType from : kNarrowTypes)
    for (const DType to : kOthers)
      if (to != DType::boolean && !HasFailure())
        expect_the_references_bytes(*backend, cast_program(to, true, PowerRounding::up), from, to, 1);
}

TEST(CudaNarrow, NumbersBecomeCodes) {
  const auto backend = test_backend();
  ASSERT_TRUE(backend);
  uint32_t seed = 1;
  for (const DType to : kNarrowTypes)
    for (const DType from : kOthers)
      for (const bool saturate : {true, false})
        for (const PowerRounding rounding : {PowerRounding::up, PowerRounding::down, PowerRounding::nearest}) {
          if (rounding != PowerRounding::up && to != DType::f8e8m0) continue;
          if (!HasFailure()) expect_the_references_bytes(*backend, cast_program(to, saturate, rounding), from, to, ++seed);
        }
}

TEST(CudaNarrow, CodesBecomeCodes) {
  const auto backend = test_backend();
  ASSERT_TRUE(backend);
  for (const DType from : kNarrowTypes)
    for (const DType to : kNarrowTypes)
      if (from != to && !HasFailure())
        expect_the_references_bytes(*backend, cast_program(to, true, PowerRounding::nearest), from, to, 1);
}

}  // namespace
}  // namespace sparkle::cuda
