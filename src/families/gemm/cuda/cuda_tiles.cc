#include "families/gemm/cuda/cuda_tiles.h"

#include <algorithm>
#include <cmath>

#include "families/common.h"
#include "families/gemm/cuda/cuda_few.h"
#include "families/gemm/cuda/cuda_halo.h"
#include "families/gemm/gemm_family.h"
#include "families/gemm/gemm_shape.h"
#include "families/gemm/gemm_tiles.h"
#include "families/integers/integers.h"

namespace sparkle {
namespace {

constexpr CudaTile kTiles[] = {
    {"fma", 128, 128, 64, 8, 8, 3, 256, 168},
    {"fma", 64, 64, 64, 4, 8, 4, 128, 128},
    {"fma", 128, 32, 64, 4, 8, 4, 128, 168},
    {"fma_elements", 128, 128, 64, 8, 8, 2, 256, 254},
    {"fma_elements", 64, 64, 64, 4, 8, 2, 128, 128},
    {"fma_elements", 128, 32, 64, 4, 8, 2, 128, 168},
    {"fma_in_turn", 128, 128, 64, 8, 8, 1, 256, 186},
    {kCudaWidened, 128, 128, 64, 8, 8, 3, 256, 184},
    {kCudaWidened, 64, 64, 64, 4, 8, 4, 128, 116},
    {"mma", 128, 128, 64, 64, 64, 4, 128, 218},
    {"mma", 128, 64, 64, 64, 32, 4, 128, 152},
    {"mma", 64, 64, 128, 32, 32, 3, 128, 116},
    {"mma", 256, 128, 64, 64, 64, 3, 256, 218},
    {"mma_elements", 128, 64, 64, 64, 32, 2, 128, 162},
    {"mma_in_turn", 128, 128, 64, 64, 64, 1, 128, 212},
    {"wgmma", 128, 256, 128, 64, 256, 4, 384, 168},
    {"wgmma", 128, 128, 128, 64, 128, 6, 384, 168},
    {"wgmma", 128, 192, 128, 64, 192, 5, 384, 168},
    {"wgmma", 512, 64, 128, 64, 256, 3, 384, 168},
    {"wgmma_pairs", 128, 256, 128, 64, 256, 4, 384, 168, 2},
    {"wgmma_pairs", 128, 128, 128, 64, 128, 6, 384, 168, 2},
    {"wgmma_pairs", 128, 192, 128, 64, 192, 5, 384, 168, 2},
    {kCudaWmma, 64, 16, 32, 16, 16, 1, 128, 72},
    {kCudaHalo, kCudaHaloColumns, kCudaHaloFilters, 128, 64, kCudaHaloColumns / 2, kCudaHaloTaps, 384, 168},
};
bool by_engine(std::string_view variant) { return variant.starts_with("wgmma"); }
// Of 8-bit floats each step's sums have registers of their own: tiles of 128 x 128 and 128 x 192, and pairs of these for
// nothing else.
bool has_kernel(const CudaTile& t, bool float8) {
  if (t.variant == kCudaHalo) return !float8;
  return float8 ? t.m == 128 && t.n <= 192 : t.n != 192 && (t.cluster == 1 || t.n == 256);
}
constexpr int kLeastSteps = 8;  // of k that are worth a block of their own
constexpr int kSplitGroups[] = {1, 2, 4};

// What a stage multiplies and the unit that does it.
const MathUnit* unit_for(const Variant& variant, std::string_view operand, const Device& device) {
  const bool matrix = variant.unit == UnitKind::matrix;
  const bool in_fp32 = variant.name == kCudaWidened ? operand == "f16" || operand == "bf16" : operand == "f32";
  if (operand.empty() || matrix == in_fp32) return nullptr;
  const std::string unit = by_engine(variant.name) ? "wgmma-" : "mma-";
  return device.unit(matrix ? unit + std::string(operand) : "fma-f32");
}

}  // namespace

const CudaTile* cuda_tile(std::string_view variant, int m, int n) {
  for (const CudaTile& t : kTiles)
    if (t.variant == variant && t.m == m && t.n == n) return &t;
  return nullptr;
}

int64_t shared_bytes(const CudaTile& t) {
  if (t.variant == kCudaWmma) return int64_t{t.threads} / 32 * 2048;  // of each warp both operands and its sums
  if (t.variant == kCudaHalo)
    return int64_t{kCudaHaloSlots} * kCudaHaloPixels * t.k_bytes + int64_t{t.stages} * t.n * t.k_bytes +
           8 * 16 * (16 * 4 + 16) + 16 * (kCudaHaloSlots + t.stages);
  // Beside its stages the kernel for wgmma keeps strips of 16 x 32 sums for each of eight warps (of 16 x 16 where filters are
  // the rows of its products), else two numbers of each column for each of two warpgroups, and barriers.
  const bool swapped = t.m == 512;
  const int64_t strip = swapped ? 16 * (16 * 4 + 16) : 16 * (32 * 4 + 32), terms = swapped ? 0 : t.n * 8;
  const int64_t beside = by_engine(t.variant) ? 8 * strip + 2 * terms + 16 * t.stages + 16 : 0;
  // Sums on their way out take the place of two stages.
  return int64_t{std::max(2, t.stages)} * (t.m + t.n) * t.k_bytes + beside;
}

bool is_cuda_product(std::string_view variant) {
  return std::any_of(std::begin(kTiles), std::end(kTiles), [&](const CudaTile& t) { return t.variant == variant; });
}

bool in_chunks(const Stage& stage) {
  const auto& p = get<GemmParams>(stage.params);
  const TensorDesc& x = stage.inputs[0];
  const bool window = p.loader == Loader::window;
  const int channel = window ? 1 : x.shape.size() - 1;
  const int64_t run = 16 / size_of(x.dtype), channels = x.shape[channel] / (window ? std::max<int64_t>(1, p.groups) : 1);
  const Window& w = p.window;
  // The kernel keeps a bit for each tap along each axis.
  if (window && w.filter[0] + w.filter[1] + w.filter[2] > 31) return false;
  if (x.shape[channel] > 1 && x.layout.strides[channel] != 1) return false;
  if (channels % run != 0 || x.layout.offset % run != 0) return false;
  for (int i = 0; i < x.shape.size(); ++i)
    if (i != channel && x.shape[i] > 1 && x.layout.strides[i] % run != 0) return false;
  return true;
}

bool in_columns(const Stage& stage) {
  const auto& p = get<GemmParams>(stage.params);
  const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
  if (!in_chunks(stage)) return false;
  if (p.loader == Loader::dense) {
    // One matrix: rows are pixels of a row. Maps count upwards: views that repeat or turn rows around have none.
    for (int i = 0; i + 1 < x.shape.size(); ++i)
      if (x.shape[i] > 1 && x.layout.strides[i] <= 0) return false;
    for (int i = 0; i + 2 < y.shape.size(); ++i)
      if (y.shape[i] != 1) return false;
    return true;
  }
  const FeatureMap in = feature_map(x), out = feature_map(y);
  const Window& w = p.window;
  if (in.d != 1 || out.d != 1 || w.filter[0] != 1) return false;
  // Maps count outwards, from channels to columns, rows and images, each axis beyond all of the one before.
  int64_t within = in.c;
  for (int axis = x.shape.size() - 1; axis >= 0; --axis) {
    if (axis == 1 || x.shape[axis] <= 1) continue;
    if (x.layout.strides[axis] < within) return false;
    within = x.layout.strides[axis] * x.shape[axis];
  }
  // Corners of maps are bytes, offsets of taps too; what a map says of strides ends at eight.
  constexpr int64_t kCorner = 127, kOffset = 255, kStride = 8;
  const int64_t outputs[2] = {out.h, out.w}, inputs[2] = {in.h, in.w};
  for (size_t i = 0; i < 2; ++i) {
    const size_t axis = i + 1;
    const int64_t upper = (outputs[i] - 1) * w.stride[axis] + 1 - inputs[i] - w.pad_begin[axis];
    if (w.stride[axis] > kStride || std::abs(w.pad_begin[axis]) > kCorner || std::abs(upper) > kCorner) return false;
    if ((w.filter[axis] - 1) * w.dilation[axis] > kOffset) return false;
  }
  const int64_t line = 128 / size_of(x.dtype);
  return p.groups <= 1 || in.c / p.groups % line == 0;
}

// As scripts/sass counts them in the main loops: of products on matrix units the integer lanes' clocks, else those of issue.
double clocks_by_elements(const CudaTile& t, const Stage& stage) {
  const std::string_view operand = cuda_operand(stage);
  if (t.variant == "mma_elements") return operand == "i8" ? 1700 : operand == "tf32" ? 535 : 740;
  if (t.variant == "fma_elements") return t.n == 32 ? 950 : t.m == 64 ? 820 : 2700;
  return 0;
}

bool stores_by_elements(const Stage& stage) {
  const TensorDesc& y = stage.outputs[0];
  const auto& p = get<GemmParams>(stage.params);
  const int channel = p.loader == Loader::window ? 1 : y.shape.size() - 1;
  if (y.layout.strides[channel] != 1) return false;
  constexpr int64_t kRun = 8;
  bool whole = y.layout.offset % kRun == 0 && y.shape[channel] / std::max<int64_t>(1, p.groups) % kRun == 0;
  for (int i = 0; i < y.shape.size(); ++i) whole &= i == channel || y.shape[i] == 1 || y.layout.strides[i] % kRun == 0;
  return !whole;
}

std::string_view cuda_operand(const Stage& stage) {
  const OperandType rounded = get<GemmParams>(stage.params).operands;
  const DType type = stage.inputs[0].dtype;
  if (multiplies_float8(stage)) return type == DType::f8e4m3fn ? "e4m3" : "e5m2";
  if (is_integer(stage.inputs)) return size_of(stage.inputs[1].dtype) == 1 ? "i8" : "";
  for (size_t i = 0; i < stage.inputs.size(); ++i)
    if (stage.inputs[i].dtype != type) return {};
  if (stage.outputs[0].dtype != type) return {};
  if (type == DType::f32) return rounded == OperandType::own ? "f32" : rounded == OperandType::tf32 ? "tf32" : "";
  // What is stored in 16 bits loses nothing on units that multiply such, whether it was to be rounded to them or not.
  const auto fits = [&](OperandType own) { return rounded == own || rounded == OperandType::own; };
  if (type == DType::f16) return fits(OperandType::f16) ? "f16" : "";
  if (type == DType::bf16) return fits(OperandType::bf16) ? "bf16" : "";
  return {};
}

std::vector<Schedule> gemm_cuda_schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const WhyNot refuse{why_not};
  if (!variant.runs_on(device)) return refuse(Reason::backend_lacks_variant);
  const auto& params = get<GemmParams>(stage.params);
  if (params.epilogue.has_post_op()) return refuse(Reason::type_not_served);
  const std::string_view operand = cuda_operand(stage);
  if (operand == "i8" && variant.name.ends_with("_in_turn")) return refuse(Reason::type_not_served);
  const MathUnit* unit = unit_for(variant, operand, device);
  if (!unit) return refuse(operand.empty() ? Reason::type_not_served : Reason::unit_missing);
  const bool elements = variant.name.ends_with("_elements");
  if (by_engine(variant.name) ? !in_columns(stage) : elements == in_chunks(stage)) return refuse(Reason::layout_not_served);
  const bool halo = variant.name == kCudaHalo;
  if (halo && !halo_tile(stage)) return refuse(Reason::filter_not_served);
  const bool float8 = multiplies_float8(stage);
  const auto serves = [&](const CudaTile& t) {
    return t.variant == variant.name && (!by_engine(t.variant) || has_kernel(t, float8));
  };
  const GemmSizes sizes = gemm_sizes(params, stage.inputs, stage.outputs[0]);
  std::vector<TileSchedule> found;
  double least = 0;
  const auto tiles_of = [&](const CudaTile& t) {
    return std::ceil(static_cast<double>(sizes.m) / t.m) * std::ceil(static_cast<double>(sizes.n) / t.n) *
           static_cast<double>(sizes.instances);
  };
  for (const CudaTile& t : kTiles)
    if (serves(t)) least = least == 0 ? tiles_of(t) * t.m * t.n : std::min(least, tiles_of(t) * t.m * t.n);
  for (const CudaTile& t : kTiles) {
    if (!serves(t) || shared_bytes(t) > device.limits.shared_bytes_per_group) continue;
    // Tiles that waste much more than the best of them on rows and columns that there are not are left out.
    if (tiles_of(t) * t.m * t.n > 1.5 * least) continue;
    TileSchedule s;
    s.variant = variant.name;
    s.unit = unit->name;
    s.m = t.m, s.n = t.n, s.k = t.k_bytes / static_cast<int>(size_of(stage.inputs[0].dtype));
    s.thread_m = t.part_m, s.thread_n = t.part_n;
    s.subgroup = 32, s.depth = t.stages;
    found.push_back(s);
    // Sums are split where whole ones would leave cores idle.
    if (halo) continue;
    const double taps = params.loader == Loader::window ? static_cast<double>(params.window.taps()) : 1;
    const double steps = by_engine(variant.name) ? taps * std::ceil(static_cast<double>(sizes.k) / taps / s.k)
                                                 : std::ceil(static_cast<double>(sizes.k) / s.k);
    int last = 1;
    for (const int groups : kSplitGroups) {
      const int split = static_cast<int>(
          std::min(std::floor(groups * device.cores / std::max(1.0, tiles_of(t))), std::floor(steps / kLeastSteps)));
      if (split <= last) continue;
      last = s.split = split;
      found.push_back(s);
    }
  }
  if (found.empty()) return refuse(Reason::too_few_registers);
  return {found.begin(), found.end()};
}

}  // namespace sparkle
