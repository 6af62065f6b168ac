#include "families/gemm/cuda/cuda_few.h"

#include <algorithm>

#include "base/round_up.h"
#include "families/common.h"
#include "families/gemm/gemm.h"
#include "families/gemm/gemm_shape.h"
#include "families/loops/tile_schedule.h"

namespace sparkle {
namespace {

// Of shared memory for a band with what comes next: four blocks of a core of sm_90 have room, of sm_86 one.
constexpr int64_t kBandBytes = 56 << 10, kMostBandBytes = 98 << 10;
constexpr int64_t kReserved = 1024;  // what each block takes of shared memory besides
constexpr int64_t kBehind = 32;      // bytes behind the last row, of which the last columns read

// Whether planes come by copies: rows without padding behind one another, 16 bytes at a time from each band's first on.
bool lies_for_copies(const FewTile& t, const FeatureMap& x, const FeatureMap& y, const Window& w, int64_t size,
                     int64_t offset) {
  const int64_t run = 16 / size;
  const auto whole = [&](int64_t elements) { return elements % run == 0; };
  return w.pad_begin[1] == 0 && w.pad_begin[2] == 0 && y.h + w.filter[1] - 1 <= x.h && t.words * 2 == x.w &&
         (x.h == 1 || x.row_stride == x.w) && whole(x.h * x.w) && whole(offset) && (x.n == 1 || whole(x.image_stride)) &&
         (x.c == 1 || whole(x.channel_stride)) && (t.bands == 1 || whole(t.rows * x.w));
}

void set_sizes(FewTile& t, const FeatureMap& x, const FeatureMap& y, const Window& w, int64_t rows, int64_t size,
               int64_t offset) {
  t.rows = rows, t.bands = divided(y.h, rows);
  t.in_rows = rows + w.filter[1] - 1;
  t.words = divided(y.w + w.filter[2] - 1, 2);
  t.plane_bytes = rounded_up(t.in_rows * t.words * 4, 16);
  t.image_bytes = rounded_up(x.c * t.plane_bytes + kBehind, 16);
  t.by_copies = lies_for_copies(t, x, y, w, size, offset);
  t.staged_bytes = t.by_copies ? x.c * t.plane_bytes * size / 2 : 0;
}

// As few bands as have room, all of about the same size; of rows that copies can begin at, where that is possible.
bool set_bands(FewTile& t, const FeatureMap& x, const FeatureMap& y, const Window& w, int64_t size, int64_t offset,
               int64_t room) {
  for (int64_t bands = 1;; ++bands) {
    const int64_t rows = divided(y.h, bands);
    for (const int64_t multiple : {4, 1}) {
      set_sizes(t, x, y, w, bands == 1 ? rows : std::min(y.h, rounded_up(rows, multiple)), size, offset);
      if (t.by_copies) break;
    }
    if (t.shared_bytes() <= room) return true;
    if (rows == 1) return false;
  }
}

const FewRowsKernel* rows_kernel(int64_t rows, int tiles) {
  for (const FewRowsKernel& k : kFewRowsKernels)
    if (k.rows == rows && k.tiles == tiles) return &k;
  return nullptr;
}

// Planes of one channel that are a band: stretches of an even number of rows, in twos, by so many that four warps have as much.
void set_walks(FewTile& t, const FeatureMap& y, int64_t filter_rows) {
  const FewRowsKernel* kernel = rows_kernel(filter_rows, t.kernel.tiles);
  if (t.bands > 1 || y.h < 2 || !kernel) return;
  const int64_t across = divided(divided(y.w, 2), 8), warps = kFewThreads / 32;
  int64_t least = 0;
  for (int64_t walks = 1; walks <= 8; ++walks) {
    const int64_t rows = std::min(rounded_up(divided(y.h, 2 * walks), 2), y.h / 2 * 2);
    const int64_t longest = divided(across * walks, warps) * (rows + filter_rows / 2);
    if (2 * walks * rows < y.h || (least > 0 && longest >= least)) continue;
    least = longest, t.walks = walks, t.walk_rows = rows;
  }
  if (t.walks == 0) return;
  t.kernel.steps = static_cast<int>(divided(filter_rows, 2)), t.kernel.blocks = kernel->blocks;
  t.filter_bytes = int64_t{2} * t.kernel.steps * t.kernel.tiles * 256;
}

}  // namespace

int64_t FewTile::blocks_a_core(int64_t shared_of_core) const {
  return std::clamp<int64_t>(shared_of_core / (shared_bytes() + kReserved), 1, kernel.blocks);
}

bool multiplies_fp16(const Stage& stage) {
  const OperandType rounded = get<GemmParams>(stage.params).operands;
  const DType type = stage.inputs[0].dtype;
  if (stage.outputs[0].dtype != type) return false;
  for (const TensorDesc& d : stage.inputs)
    if (d.dtype != type) return false;
  return type == DType::f16 ? rounded == OperandType::f16 || rounded == OperandType::own
                            : type == DType::f32 && rounded == OperandType::f16;
}

std::optional<FewTile> few_tile(const Stage& stage, Reason& why_not) {
  const auto refuse = [&](Reason reason) {
    why_not = reason;
    return std::nullopt;
  };
  const auto& p = get<GemmParams>(stage.params);
  const Window& w = p.window;
  if (p.loader != Loader::window) return refuse(Reason::not_this_family);
  // Columns beyond the filter's are multiplied by zero: right for finite numbers, which is what asking for fp16 promises.
  if (!multiplies_fp16(stage) || p.operands != OperandType::f16) return refuse(Reason::type_not_served);
  if (p.epilogue.has_post_op() || p.epilogue.residuals() > 0) return refuse(Reason::tail_not_served);
  if (p.groups > 1) return refuse(Reason::groups_not_served);
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  for (size_t axis = 0; axis < 3; ++axis)
    if (w.stride[axis] != 1 || (w.dilation[axis] != 1 && w.filter[axis] > 1) || w.pad_begin[axis] < 0)
      return refuse(Reason::filter_not_served);
  if (w.filter[0] != 1 || x.d != 1 || y.d != 1 || w.filter[2] > kFewColumns || x.c * w.filter[1] > kFewRows || y.c > kFewMaps)
    return refuse(Reason::filter_not_served);
  if (y.n * y.c * y.h * y.w == 0 || x.c * x.h * x.w == 0) return refuse(Reason::layout_not_served);
  if ((x.w > 1 && x.pixel_stride != 1) || (y.w > 1 && y.pixel_stride != 1)) return refuse(Reason::layout_not_served);

  FewTile t;
  const int64_t steps = divided(x.c * w.filter[1], 2), tiles = divided(y.c, 4);
  for (const FewKernel& k : kFewKernels) {
    // Of those that are deep enough the shallowest, with as many maps as there are or else the most.
    if (k.steps < steps) continue;
    const bool better = t.kernel.steps == 0 || k.steps < t.kernel.steps ||
                        (k.steps == t.kernel.steps && t.kernel.tiles < tiles && k.tiles > t.kernel.tiles);
    if (better) t.kernel = k;
  }
  t.groups = divided(tiles, t.kernel.tiles);
  t.filter_bytes = int64_t{t.kernel.steps} * t.kernel.tiles * 256;
  const int64_t size = size_of(stage.inputs[0].dtype), offset = stage.inputs[0].layout.offset;
  // Bands that are lower than the filter read most of their rows again: then fewer blocks of a core are better.
  const bool fits = set_bands(t, x, y, w, size, offset, kBandBytes) && t.rows >= std::min(y.h, w.filter[1]);
  if (!fits && !set_bands(t, x, y, w, size, offset, kMostBandBytes)) return refuse(Reason::too_few_registers);
  if (x.c == 1) set_walks(t, y, w.filter[1]);
  return t;
}

std::vector<Schedule> few_schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const WhyNot refuse{why_not};
  if (!variant.runs_on(device)) return refuse(Reason::backend_lacks_variant);
  const MathUnit* unit = device.unit("mma-f16");
  if (!unit) return refuse(Reason::unit_missing);
  TileSchedule s;
  s.variant = variant.name, s.unit = unit->name, s.subgroup = 32;
  if (variant.name == kCudaWmma) {
    if (get<GemmParams>(stage.params).epilogue.has_post_op()) return refuse(Reason::tail_not_served);
    if (!multiplies_fp16(stage)) return refuse(Reason::type_not_served);
    s.m = 64, s.n = s.k = s.thread_m = s.thread_n = 16;
    return {s};
  }
  const auto tile = few_tile(stage, why_not);
  if (!tile) return {};
  if (tile->shared_bytes() > device.limits.shared_bytes_per_group) return refuse(Reason::too_few_registers);
  // A warp's part, of outputs: sixteen pairs of columns by the kernel's maps.
  s.thread_m = 32, s.thread_n = 4 * tile->kernel.tiles;
  s.m = kFewThreads / 32 * s.thread_m, s.n = s.thread_n, s.k = 16 * tile->kernel.steps;
  s.depth = tile->by_copies ? 2 : 1, s.unroll = tile->walks > 0 ? 2 : 1;  // rows of outputs at once
  return {s};
}

Footprint few_footprint(const Stage& stage, const Device& device) {
  Reason unused = Reason::none;
  const auto& params = get<GemmParams>(stage.params);
  const GemmSizes sizes = gemm_sizes(params, stage.inputs, stage.outputs[0]);
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  Footprint f = streaming_footprint(stage, device, 2 * number(sizes.m) * number(sizes.n) * number(sizes.k));
  const auto found = few_tile(stage, unused);
  if (!found) return f;
  const FewTile& t = *found;
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  // Of sixteen pairs of columns: the last of a band may lack some.
  const int64_t pairs = divided(y.w, 2);
  const int64_t of_band = t.walks > 0 ? divided(pairs, 8) * t.walks * t.walk_rows : divided(t.rows * pairs, 16);
  const double tiles = number(y.n * t.bands * of_band) * number(t.groups);
  f.executed_flops = tiles * t.kernel.steps * t.kernel.tiles * 4096;
  // Rows come again for each band, and planes for each group of maps.
  const double read = number(y.n * x.c * t.in_rows * t.bands * x.w * size_of(stage.inputs[0].dtype));
  const double again = std::max(0.0, read * number(t.groups) - number(stage.inputs[0].bytes()));
  for (size_t i = 0; i < f.bytes.size(); ++i) {
    const MemoryLevel& level = device.memory[i];
    // Of shared memory four words a lane and step, where rows stay in registers two, and a band's way from fp32 to fp16.
    if (level.filled_by_hand) f.bytes[i] = tiles * (t.walks > 0 ? 256 : t.kernel.steps * 512) + 2.5 * read * number(t.groups);
    else if (f.bytes[i] > 0 && !(i > 0 && !device.memory[i - 1].filled_by_hand && device.memory[i - 1].shared_by > 1))
      f.bytes[i] += again;
  }
  f.parallel_items = number(y.n * t.bands * t.groups);
  return f;
}

}  // namespace sparkle
