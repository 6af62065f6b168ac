#include "families/types.h"

#include <algorithm>

#include "device/device.h"
#include "families/gemm/gemm.h"
#include "families/pointwise/arithmetic.h"
#include "families/pool/pool.h"
#include "families/reduce/reduce.h"
#include "families/resize/resize.h"

namespace sparkle {
namespace {

constexpr TypeSet kMatrices = kFloats | TypeSet{DType::i32, DType::u32, DType::i64, DType::u64};
constexpr std::string_view kInF32 = "f16 and bf16 converted to f32 before it, f64 by the variant plain";

constexpr TypeRow kRows[] = {
    {Family::gemm, "window", "Conv, ConvTranspose", kFloats, kInF32},
    {Family::gemm, "dense", "MatMul, Gemm", kMatrices,
     "f16 and bf16 converted to f32 before it, f64 and integers by the variant plain"},
    {Family::winograd, "", "Conv 3x3 of stride 1", kFloats, kInF32},
    {Family::grouped, "", "Conv with groups of a few channels", kFloats, kInF32},
    {Family::direct, "", "Conv with a few input channels", kFloats, kInF32},
    {Family::inverted, "", "Conv 1x1, depthwise and 1x1 in one step", TypeSet{DType::f32},
     "f16 and bf16 converted to f32 before it"},
    {Family::fft, "", "Conv with a large filter", kFloats, kInF32},
    {Family::depthwise, "", "Conv with a group per channel", kFloats, kInF32},
    {Family::pool, "max", "MaxPool", kNumbers,
     "f16 and bf16 converted to f32 before it, 8-bit integers by the variant bytes, f64 and other integers by the variant "
     "plain"},
    {Family::pool, "average, lp", "AveragePool, LpPool, LRN", kFloats, kInF32},
    {Family::pointwise, "functions", "Exp, Log, Sigmoid, Gelu and every other not below", kFloats,
     "f16 and bf16 read and written by the kernel, f64 by the variant typed"},
    {Family::pointwise, "arithmetic",
     "Add, Sub, Mul, Div, Mod, Pow, Max, Min, Sum, Clip, Neg, Abs, Sign, Relu, PRelu, Less, LessOrEqual, Greater, "
     "GreaterOrEqual",
     kNumbers, "f16 and bf16 read and written by the kernel, f64 and integers by the variant typed"},
    {Family::pointwise, "any", "Where, Equal, And, Or, Xor, Not", kComputed,
     "f16, bf16 and bool read and written by the kernel, f64 and integers by the variant typed"},
    {Family::pointwise, "identity", "Identity, Cast, CastLike", kAllTypes,
     "f16, bf16, bool and the narrow types read and written by the kernel, between f64 and integers by the variant typed"},
    {Family::reduce, "", "ReduceSum and its like, GlobalAveragePool, GlobalMaxPool, GlobalLpPool", kNumbers,
     "f16 and bf16 converted to f32 before it, f64 and integers by the variant plain"},
    {Family::reduce, "max, min", "ReduceMax, ReduceMin", kComputed,
     "f16 and bf16 converted to f32 before it, f64, integers and bool by the variant plain"},
    {Family::softmax, "", "Softmax, LogSoftmax", kFloats, kInF32},
    {Family::normalize, "",
     "InstanceNormalization, LayerNormalization, RMSNormalization, GroupNormalization, MeanVarianceNormalization, "
     "LpNormalization",
     kFloats, kInF32},
    {Family::copy, "", "Reshape, Transpose, Concat, Slice, Split, Expand, Tile, DepthToSpace, SpaceToDepth", kAllTypes,
     "elements move as they are"},
    {Family::pad, "", "Pad", kAllTypes, "elements move as they are"},
    {Family::resize, "nearest", "Resize, Upsample", kComputed, "elements move as they are"},
    {Family::resize, "linear, cubic", "Resize, Upsample", kNumbers,
     "f16 and bf16 converted to f32 before it, f64 and integers (rounded, saturating) by the variant plain"},
    {Family::gather, "", "Gather, GatherElements, GatherND", kAllTypes, "elements move as they are"},
    {Family::scatter, "", "ScatterElements, ScatterND, OneHot", kComputed,
     "elements move as they are; sums and products of numbers, largest and smallest of all"},
    {Family::top_k, "", "TopK, ArgMax, ArgMin", kNumbers, "compared in their own type"},
    {Family::scan, "", "CumSum", kNumbers, "added in their own type, f16 and bf16 in f32"},
    {Family::triangle, "", "Trilu", kAllTypes, "elements move as they are"},
    {Family::non_max, "", "NonMaxSuppression", TypeSet{DType::f32}, ""},
    {Family::attention, "", "Attention", kFloats, kInF32},
    {Family::rotary, "", "RotaryEmbedding", kFloats, kInF32},
    {Family::sample, "", "GridSample", kFloats, kInF32},
    {Family::deform, "", "DeformConv", kFloats, kInF32},
    {Family::quantize, "", "QuantizeLinear, DequantizeLinear, QLinearConv and other quantised operators",
     TypeSet{DType::f32, DType::f16, DType::bf16, DType::i8, DType::u8, DType::i16, DType::u16, DType::i32} | kNarrow,
     "8-bit integers by the kernels, the others by the variant plain; f8e8m0 as a scale alone"},
};

// Families with kernels for GPUs that read and write f16 as it is, sums in f32.
constexpr Family kHalvesOnGpus[] = {
    Family::gemm,     Family::pointwise, Family::copy,     Family::pad,       Family::gather, Family::depthwise,
    Family::pool,     Family::reduce,    Family::softmax,  Family::normalize, Family::resize, Family::attention,
    Family::winograd, Family::fft,       Family::triangle, Family::rotary,    Family::scan,   Family::top_k,
    Family::scatter,  Family::sample,    Family::deform,
};
bool keeps_halves(Family family) {
  return std::find(std::begin(kHalvesOnGpus), std::end(kHalvesOnGpus), family) != std::end(kHalvesOnGpus);
}

const TypeRow& row(Family family, std::string_view form) {
  return *std::find_if(std::begin(kRows), std::end(kRows),
                       [&](const TypeRow& r) { return r.family == family && (form.empty() || r.form == form); });
}

}  // namespace

std::span<const TypeRow> type_rows() { return kRows; }

bool keeps_halves(Family family, const Device& device) {
  return device.kind == DeviceKind::vulkan && device.unit("fma-f16") && keeps_halves(family);
}

const TypeRow& type_row(PointwiseOp op) {
  switch (op) {
    case PointwiseOp::identity: return row(Family::pointwise, "identity");
    case PointwiseOp::select:
    case PointwiseOp::equal:
    case PointwiseOp::logical_and:
    case PointwiseOp::logical_or:
    case PointwiseOp::logical_xor:
    case PointwiseOp::logical_not: return row(Family::pointwise, "any");
    default: return row(Family::pointwise, serves_integers(op) ? "arithmetic" : "functions");
  }
}

const TypeRow& type_row(const StageParams& params) {
  if (const auto* p = get_if<GemmParams>(&params)) return row(Family::gemm, name_of(p->loader));
  if (const auto* p = get_if<PoolParams>(&params)) return row(Family::pool, p->kind == PoolKind::max ? "max" : "average, lp");
  if (const auto* p = get_if<PointwiseParams>(&params); p && !p->program.empty()) return type_row(p->program.back().op);
  if (const auto* p = get_if<ReduceParams>(&params))
    if (p->kind == ReduceKind::max || p->kind == ReduceKind::min) return row(Family::reduce, "max, min");
  if (const auto* p = get_if<ResizeParams>(&params))
    return row(Family::resize, p->mode == ResizeMode::nearest ? "nearest" : "linear, cubic");
  return row(params.family(), "");
}

std::string type_table() {
  std::string text =
      "# Element types\n\n"
      "Printed from `src/families/types.cc` (`SPARKLE_UPDATE_DOCS=1` and the test `Types.TheDocumentedTableIsThisOne`).\n\n"
      "Arithmetic on f16 and bf16 is done in f32 and rounded to nearest even where a tensor is stored in 16 bits; between two "
      "steps\n"
      "that both compute in f32 it stays f32. GPUs that store f16 exchange it as it is between the "
      "families\n"
      "so marked. f64 is computed in double. Integers are computed in their own type, exactly, and wrap\n"
      "around; a quotient is truncated, a division by zero gives 0. Cast truncates floats towards zero and saturates where "
      "the\n"
      "integer ends (NaN gives 0), integers wrap.\n\n"
      "The types below 16 bits from f8e4m3fn on (ONNX: FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ, FLOAT8E8M0,\n"
      "FLOAT4E2M1, INT4, UINT4, INT2, UINT2) are moved and converted; nothing is computed in them. In memory and in the "
      "interfaces\n"
      "each element is a byte, 4- and 2-bit elements in its low bits; ONNX files pack them. Cast to an 8-bit float rounds to\n"
      "nearest even and obeys `saturate`, to f8e8m0 `round_mode` too (negative numbers give NaN); to f4e2m1 it saturates and "
      "NaN\n"
      "gives 0; to integers of 4 and 2 bits it truncates floats and keeps the low bits.\n\n"
      "Vulkan devices compute f64 in element-wise programs (but not trigonometric, inverse and error functions), reductions,\n"
      "running sums, scatters, softmax, products (but with the exact GELU behind them) and pools (but power means beyond the "
      "second) where their "
      "driver does;\n"
      "integers and bool in element-wise programs, reductions (no roots and logarithms of integers), running sums, scatters "
      "and "
      "ranks\n(which f64 has too, by its bits), products of 32- and 64-bit\n"
      "integers (with a factor where they compute f64), maxima of 8-bit integers; they convert all types, and quantise to all "
      "but f8e8m0.\n\n"
      "| family | form | operators | element types | other than f32 | f16 stays on GPUs |\n|---|---|---|---|---|---|\n";
  for (const TypeRow& r : kRows) {
    text += "| " + std::string(name_of(r.family)) + " | " + std::string(r.form) + " | " + std::string(r.operators) + " | " +
            to_text(r.types) + " | " + std::string(r.how) + " | " + (keeps_halves(r.family) ? "yes" : "") + " |\n";
  }
  return text;
}

}  // namespace sparkle
