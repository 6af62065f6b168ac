// What the gemm family offers: its variants table and functions.
#include "families/common.h"
#include "families/gemm/cuda/cuda_few.h"
#include "families/gemm/gemm_family.h"
#include "families/gemm/gemm_tiles.h"
#include "families/windows/window_samples.h"

namespace sparkle {
namespace {

constexpr TypeSet kMatrices = kFloats | TypeSet{DType::i32, DType::u32, DType::i64, DType::u64};

constexpr TypeRow kTypeRows[] = {
    {"window", "Conv, ConvTranspose", kFloats, kInF32, "f64 (but with the exact GELU behind it)"},
    {"dense", "MatMul, Gemm", kMatrices, "f16 and bf16 converted to f32 before it, f64 and integers by the variant plain",
     "f64 (but with the exact GELU behind it), integers (with a factor where they compute f64)"},
};

size_t type_form(const StageParams& params) { return get<GemmParams>(params).loader == Loader::dense; }

Stage dense_sample(const GemmParams& p, int64_t m, int64_t n, int64_t k, int64_t gap) {
  Stage stage;
  stage.params = p;
  stage.inputs = {described(DType::f32, {2, m, k}, false, gap), described(DType::f32, {2, k, n}, false, gap)};
  stage.outputs = {described(DType::f32, {2, m, n}, false, gap)};
  add_epilogue_operands(stage, p.epilogue, n, 2);
  return stage;
}

std::vector<SampleForm> sample_forms() {
  constexpr DType kF = DType::f32;
  GemmParams p, fp16, integers, dense, scaled, groups;
  p.window = fp16.window = integers.window = small_window();
  fp16.operands = OperandType::f16;
  integers.epilogue.scale = true;
  dense.loader = Loader::dense, dense.epilogue.bias = true;
  scaled = dense;
  scaled.epilogue.alpha = 0.375;
  GemmParams bf16 = fp16, tf32 = fp16;
  bf16.operands = OperandType::bf16, tf32.operands = OperandType::tf32;
  groups.window.filter = {1, 3, 3}, groups.window.pad_begin = {0, 1, 1}, groups.groups = 2;
  std::vector<SampleForm> list{{p, {kF, kF}, {kF}}, {fp16, {kF, kF}, {kF}}, {integers, kScaledBytes, {DType::i8}}};
  constexpr DType kHalf = DType::f16, kBfloat = DType::bf16;
  list.insert(list.end(), {{fp16, {kHalf, kHalf}, {kHalf}}, {bf16, {kBfloat, kBfloat}, {kBfloat}}, {tf32, {kF, kF}, {kF}}});
  for (const DType type : {kF, DType::f64, DType::i32, DType::u32, DType::i64, DType::u64})
    list.push_back({dense, {type, type, type}, {type}});
  for (const DType type : {DType::u32, DType::i64}) list.push_back({scaled, {type, type, type}, {type}});
  list.push_back({groups, {DType::f64, DType::f64}, {DType::f64}});
  GemmParams beside = groups;  // stride 1
  beside.groups = 1;
  list.push_back({beside, {kF, kF}, {kF}});
  beside.operands = OperandType::tf32;
  list.push_back({beside, {kF, kF}, {kF}});
  p.epilogue.scale = p.epilogue.bias = true;
  for (const DType type : {DType::f8e4m3fn, DType::f8e5m2}) list.push_back({p, {type, type, kF, kF}, {kF}});
  return list;
}

// Planes with padding and gaps, and planes that come by whole 16 bytes.
std::vector<Stage> few_samples(const SampleRequest& t) {
  auto p = get<GemmParams>(t.params);
  if (p.loader == Loader::dense || p.groups > 1) return {};
  p.epilogue.bias = t.inputs.empty() || t.inputs[0] == DType::f32;
  const auto planes = [](TensorDesc& d, int64_t gap) { d = described(d.dtype, d.shape, false, gap); };
  p.window = small_window();
  Stage padded = window_sample(p, p.window, &p.epilogue, {3, 5, 3, 11}, 0);
  planes(padded.inputs[0], 3), planes(padded.outputs[0], 1);
  p.window = {};
  p.window.filter = {1, 7, 7};
  Stage whole = window_sample(p, p.window, &p.epilogue, {4, 16, 4, 18}, 0);
  whole.inputs[0].shape = {2, 4, 1, 11, 24};
  planes(whole.inputs[0], 0), planes(whole.outputs[0], 0);
  return {with_types(padded, t), with_types(whole, t)};
}

// Channels in whole vectors and not.
std::vector<Stage> samples(const SampleRequest& t) {
  const auto& p = get<GemmParams>(t.params);
  const bool float8 = !t.inputs.empty() && size_of(t.inputs[0]) == 1 && is_narrow_float(t.inputs[0]);
  if (!of_one_real(t) && !sums_bytes(t) && !float8 && variant_of(t.schedule) != kNativeType) return {};
  // Plain loops read no operands of 16 bits: on CPUs these are f32.
  if (variant_of(t.schedule) == "plain" && !t.outputs.empty() && size_of(t.outputs[0]) == 2) return {};
  if (variant_of(t.schedule) == kRowDots) {
    if (p.loader == Loader::dense) return {with_types(dense_sample(p, 13, 3, 133, 3), t)};
    return {with_types(window_sample(p, p.window, &p.epilogue, {133 * p.groups, 3 * p.groups, 133}, 1), t)};
  }
  if (variant_of(t.schedule) == kCudaFew) return few_samples(t);
  if (p.loader == Loader::dense)
    return {with_types(dense_sample(p, 7, 5, 9, 3), t), with_types(dense_sample(p, 9, 12, 8, 0), t)};
  if (float8) return {with_types(window_sample(p, p.window, &p.epilogue, p.groups, false, 48, 0), t)};
  return {with_types(window_sample(p, p.window, &p.epilogue, p.groups, false, 3, 1), t),
          with_types(window_sample(p, p.window, &p.epilogue, p.groups, false, 8, 0), t)};
}

// Sums of wide integers wrap around. Where operands are rounded, drivers may round either way: they get numbers that rounding
// leaves as they are.
double sample_value(const Stage& stage, size_t operand, std::mt19937& random) {
  const DType type = stage.inputs[operand].dtype;
  if (is_float(type) || size_of(type) < 4 || stage.inputs[0].dtype != type)
    return rounded_to(get<GemmParams>(stage.params).operands, any_value(type, random));
  std::normal_distribution<double> normal;
  return std::round(std::ldexp(normal(random), static_cast<int>(drawn_between(0, 8 * size_of(type) - 5, random))));
}

SampleRules comparison(const Stage& stage) {
  const auto& p = get<GemmParams>(stage.params);
  const Dims& w = stage.inputs[1].shape;
  const int64_t products = p.loader == Loader::window ? products_of(stage) : w[w.size() - 2];
  Reason unused = Reason::none;
  return {.spreads_nan = few_tile(stage, unused).has_value(), .products = static_cast<double>(products)};
}

}  // namespace

const FamilyInfo& gemm_info() {
  static constexpr Variant kVariants[] = {
#include "families/gemm/variants.inc"
  };
  static const FamilyInfo info = {
      .params = ParamsType::of<GemmParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .type_form = type_form,
      .gpu_16_bits = true,
      .reference = gemm_reference,
      .footprint = gemm_footprint,
      .blocking = gemm_blocking,
      .schedules = gemm_schedules,
      .sample_forms = sample_forms,
      .samples = samples,
      .sample_value = sample_value,
      .comparison = comparison,
      .cpu_schedule = &ScheduleType::of<GemmSchedule>,
      .gpu_schedule = &ScheduleType::of<TileSchedule>,
  };
  return info;
}

}  // namespace sparkle
