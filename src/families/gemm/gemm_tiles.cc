// Products on GPUs: tiles of workgroups derived from the sizes of the stage and of the device, and what they move.
#include "families/gemm/gemm_tiles.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "families/common.h"
#include "families/gemm/cuda/cuda_few.h"
#include "families/gemm/cuda/cuda_halo.h"
#include "families/gemm/cuda/cuda_tiles.h"
#include "families/gemm/gemm_family.h"
#include "families/gemm/gemm_shape.h"
#include "families/gemm/tile_reuse.h"

namespace sparkle {
namespace {

constexpr int kNaiveThreads = 64, kGroupsThreads = 256;
// A core hides its latencies by about so many threads; what they share must fit it together.
constexpr int kThreadsInFlight = 384;
// What a device leaves unsaid: registers of a thread that all GPUs of today have, shared memory that Vulkan promises.
constexpr int kUnknownRegisters = 256;
constexpr int64_t kUnknownShared = 16384;
// So many products are written out: then the loop's own instructions are few, and the code stays in the instruction cache.
constexpr int kProductsInARow = 128;
// Words that a thread has on their way for the next step: with more of them compilers run out of registers for addresses.
constexpr int kMostFetched = 24;
constexpr int kAddresses = 96;
constexpr int kLeastSteps = 8;  // of k that are worth a workgroup of their own
// Sums are split until so many workgroups a core are busy.
constexpr int kSplitGroups[] = {1, 2, 4};
// The plain kernel of fragments gathers 16 elements of each operand a lane and step, some 150 instructions, while the unit
// multiplies for 13 clocks of its scheduler.
constexpr double kGathered = 12;
// Stores by lanes 16 bytes apart: each takes so many sectors as all eight together do.
constexpr double kStoresByElements = 8;
// Operands of 16 bits are widened twelve times for 32 products of a thread, in lanes that half of an RTX card's products need
// too.
constexpr double kWidening = 2;
// A scheduler computes with one subgroup while another waits for memory or at a barrier.
constexpr int kSubgroupsOfScheduler = 2;
// Threads of a core that run at once: what all GPUs of today have room for.
constexpr int kThreadsAtOnce = 1024;

// Parts of a thread, and threads along m and n. Large parts read less from shared memory, small ones fill more cores.
struct Pair {
  int m, n;
};
constexpr Pair kParts[] = {{8, 8}, {8, 4}, {4, 8}, {4, 4}};
constexpr Pair kGrids[] = {{16, 16}, {16, 8}, {8, 16}, {8, 8}};
// The same for subgroups on matrix units, in elements and subgroups; and tiles of workgroups that multiply as one.
constexpr Pair kFragmentParts[] = {{64, 64}, {64, 32}, {32, 32}};
constexpr Pair kSubgroupGrids[] = {{2, 2}, {4, 1}, {1, 4}, {2, 1}, {1, 1}};
constexpr Pair kGroupTiles[] = {{128, 64}, {64, 128}, {64, 64}, {128, 32}, {32, 128}};

double up(double a, double b) { return std::ceil(a / b); }
int divided(int a, int b) { return (a + b - 1) / b; }

bool in_short_sums(const TileSchedule& s) { return s.variant == "half_sums"; }
// Variants that keep no tile of both operands in shared memory: they read from caches, once per thread.
bool without_tiles(const TileSchedule& s) {
  return !is_cuda_product(s.variant) && s.variant != "implicit" && s.variant != "points" && s.variant != kNativeType &&
         !in_short_sums(s) && !on_fragments(s);
}

// Of one core.
int64_t shared_bytes(const Device& device) {
  const int64_t limit = device.limits.shared_bytes_per_group;
  const MemoryLevel* level = device.level("shared");
  const int64_t core = level && level->bytes > 0 ? level->bytes / std::max(1, level->shared_by) : 0;
  return std::max(limit > 0 ? limit : kUnknownShared, core);
}

// `load`: elements in four words, 4 or 8.
bool fits(const TileSchedule& s, const Device& device, int load = 4) {
  const TileNeeds needs = tile_needs(s);
  const DeviceLimits& limits = device.limits;
  const int groups = std::max(1, divided(kThreadsInFlight, needs.threads));
  const int registers = limits.registers_per_thread > 0 ? limits.registers_per_thread : kUnknownRegisters;
  // Where there are few, compilers work addresses out again instead of keeping them.
  const int needed = needs.registers - std::max(0, kAddresses - registers / 2);
  return (s.m + s.n) * s.k * 4 / load <= kMostFetched * needs.threads &&
         (limits.max_threads_per_group == 0 || needs.threads <= limits.max_threads_per_group) &&
         (limits.shared_bytes_per_group == 0 || needs.shared_bytes <= limits.shared_bytes_per_group) &&
         needs.shared_bytes * groups <= shared_bytes(device) && needed <= registers;
}

// Sizes that subgroups may be demanded in, the unit's own width first: it issues one instruction per step, and RDNA3 pairs
// instructions only there; wider ones need fewer instructions for addresses. {0}: there is no choice.
std::vector<int> subgroup_sizes(const MathUnit& unit, const Device& device) {
  const int least = unit.kind == UnitKind::vector_fma ? unit.n : device.limits.subgroup_size,
            most = device.limits.subgroup_size;
  if (least <= 0 || most <= least) return {0};
  return {least, most};
}

double tiles_of(const TileSchedule& s, const GemmSizes& sizes) {
  return static_cast<double>(sizes.instances) * up(static_cast<double>(sizes.m), s.m) * up(static_cast<double>(sizes.n), s.n);
}

// Windows of two dimensions whose patch of inputs fits shared memory.
bool halo_fits(const Stage& stage, const Device& device) {
  const auto& p = get<GemmParams>(stage.params);
  const Window& w = p.window;
  if (p.loader != Loader::window || w.filter[0] != 1 || w.stride[0] != 1 || w.pad_begin[0] != 0) return false;
  const int64_t bytes = halo_bytes(w);
  return feature_map(stage.outputs[0]).d == 1 && feature_map(stage.inputs[0]).d == 1 && bytes <= shared_bytes(device) &&
         (device.limits.shared_bytes_per_group == 0 || bytes <= device.limits.shared_bytes_per_group);
}

// Four channels of each pixel lie side by side.
bool whole_vec4(const Stage& stage) {
  const TensorDesc& x = stage.inputs[0];
  const auto& p = get<GemmParams>(stage.params);
  const int channel = p.loader == Loader::window ? 1 : x.shape.size() - 1;
  bool vec4 =
      x.layout.strides[channel] == 1 && x.layout.offset % 4 == 0 && x.shape[channel] / std::max<int64_t>(1, p.groups) % 4 == 0;
  for (int i = 0; i < x.shape.size(); ++i) vec4 &= i == channel || x.layout.strides[i] % 4 == 0;
  return vec4;
}

// The schedule, and the same with each sum split over workgroups where whole sums would leave cores idle.
void add_splits(const TileSchedule& s, const GemmSizes& sizes, const Device& device, std::vector<TileSchedule>& found) {
  found.push_back(s);
  const double tiles = tiles_of(s, sizes), steps = up(static_cast<double>(sizes.k), s.k);
  int last = 1;
  for (const int groups : kSplitGroups) {
    const int split =
        static_cast<int>(std::min(std::floor(groups * device.cores / std::max(1.0, tiles)), std::floor(steps / kLeastSteps)));
    if (split <= last) continue;
    last = split;
    TileSchedule parts = s;
    parts.split = split;
    found.push_back(parts);
  }
}

std::vector<TileSchedule> register_tiles(TileSchedule s, const GemmSizes& sizes, const MathUnit& unit, const Device& device) {
  std::vector<TileSchedule> found;
  s.depth = 2, s.pad = 4;  // vec4s of columns stay aligned
  for (const Pair part : kParts)
    for (const Pair grid : kGrids) {
      s.m = part.m * grid.m, s.n = part.n * grid.n, s.thread_m = part.m, s.thread_n = part.n;
      // The deepest tile that fits: fewer barriers. Each thread loads at least four elements of both operands.
      for (s.k = 32; s.k >= 8 && (!fits(s, device) || (s.k == 32 && sizes.k <= 16)); s.k /= 2) {
      }
      const int threads = grid.m * grid.n;
      if (s.k < 8 || s.m * s.k / 4 < threads || s.n * s.k / 4 < threads) continue;
      s.unroll = in_short_sums(s) ? kShortRun : std::min(s.k, kProductsInARow / (part.m * part.n));
      for (const int size : subgroup_sizes(unit, device)) {
        if (size > threads) continue;
        s.subgroup = size;
        add_splits(s, sizes, device, found);
      }
    }
  return found;
}

// `load`: elements that a thread loads at once, in four words.
std::vector<TileSchedule> fragment_tiles(TileSchedule s, const GemmSizes& sizes, int load, const Device& device) {
  std::vector<TileSchedule> found;
  const Fragment fragment = fragment_of(s);
  s.depth = 2, s.pad = kFragmentPad;
  std::vector<int> subgroups = {std::max(1, device.limits.subgroup_size)};
  if (const MathUnit* lanes = best_vector_unit(device); lanes && lanes->n > 1 && lanes->n < subgroups[0])
    subgroups.insert(subgroups.begin(), lanes->n);
  if (device.limits.matrix_subgroup_size > 0) subgroups = {device.limits.matrix_subgroup_size};
  for (const Pair part : kFragmentParts)
    for (const Pair grid : kSubgroupGrids) {
      s.thread_m = part.m, s.thread_n = part.n;
      s.m = s.thread_m * grid.m, s.n = s.thread_n * grid.n;
      for (const int size : subgroups) {
        s.subgroup = size;
        for (s.k = 32; s.k >= fragment.k && !fits(s, device, load); s.k /= 2) {
        }
        const int threads = grid.m * grid.n * size;
        if (s.k < fragment.k || s.m * s.k / load < threads || s.n * s.k / load < threads) continue;
        add_splits(s, sizes, device, found);
      }
    }
  return found;
}

// `unit` says what sizes of matrices are multiples of.
std::vector<TileSchedule> group_tiles(TileSchedule s, const GemmSizes& sizes, int load, const MathUnit& unit,
                                      const Device& device) {
  std::vector<TileSchedule> found;
  s.depth = 2, s.pad = kFragmentPad, s.subgroup = kGroupThreads;
  const DeviceLimits& limits = device.limits;
  const int64_t shared = (limits.shared_bytes_per_group > 0 ? limits.shared_bytes_per_group : kUnknownShared) - kGroupReserved;
  if (limits.max_threads_per_group > 0 && limits.max_threads_per_group < kGroupThreads) return found;
  for (const Pair tile : kGroupTiles) {
    s.m = s.thread_m = tile.m, s.n = s.thread_n = tile.n;
    if (s.m % unit.m != 0 || s.n % unit.n != 0) continue;
    for (s.k = 64; s.k >= 16 && (s.k % unit.k != 0 || tile_needs(s).shared_bytes > shared); s.k /= 2) {
    }
    if (s.k < 16 || s.m * s.k / load < kGroupThreads || s.n * s.k / load < kGroupThreads) continue;
    add_splits(s, sizes, device, found);
  }
  return found;
}

// Tiles that waste much more than the best of them on rows and columns that there are not are left out.
void drop_wasteful(std::vector<TileSchedule>& found, const GemmSizes& sizes) {
  double least = 0;
  const auto padded = [&](const TileSchedule& s) { return tiles_of(s, sizes) * s.m * s.n; };
  for (const TileSchedule& s : found) least = least == 0 ? padded(s) : std::min(least, padded(s));
  std::erase_if(found, [&](const TileSchedule& s) { return padded(s) > 1.5 * least; });
}

// What the tiles of all instances read past a cache of all cores. Instances that run at once share it.
double read_past(const Stage& stage, const TileSchedule& s, const GemmSizes& sizes, const Device& device, double cache) {
  const TileWaves w = tile_waves_of(stage, s, device);
  const auto instances = static_cast<double>(sizes.instances);
  const double together = std::clamp(w.at_once / (w.tiles_m * w.tiles_n), 1.0, instances);
  return instances * bytes_past_cache(w, cache / together);
}

// Fragments of every size that the device has and kernels support.
std::vector<TileSchedule> all_fragment_tiles(TileSchedule s, const GemmSizes& sizes, int load, const Device& device) {
  std::vector<TileSchedule> found;
  for (const MathUnit& unit : device.units) {
    const bool group = unit.name == kGroupUnit;
    s.unit = unit.name;
    if (unit.kind != UnitKind::matrix || !unit.name.starts_with(kFragmentUnit) || group != of_groups(s)) continue;
    const Fragment fragment = fragment_of(s);
    if (!group && (fragment.m != unit.m || fragment.n != unit.n || fragment.k != unit.k || !is_supported(fragment))) continue;
    const auto tiles = group ? group_tiles(s, sizes, load, unit, device) : fragment_tiles(s, sizes, load, device);
    found.insert(found.end(), tiles.begin(), tiles.end());
  }
  return found;
}

bool has_unit_for(const TileSchedule& s, const Device& device) {
  return std::any_of(device.units.begin(), device.units.end(), [&](const MathUnit& u) {
    return u.kind == UnitKind::matrix && u.name.starts_with(kFragmentUnit) && (u.name == kGroupUnit) == of_groups(s);
  });
}

}  // namespace

bool on_fragments(const TileSchedule& s) { return s.variant.starts_with("cooperative"); }
bool of_groups(const TileSchedule& s) { return s.variant == "cooperative_group"; }
bool is_emulated(std::string_view unit) { return unit.ends_with("-emulated"); }

Fragment fragment_of(const TileSchedule& s) {
  if (of_groups(s)) return {s.m, s.n, s.k};
  Fragment f;
  const size_t at = std::string_view(kFragmentUnit).size();
  if (s.unit.size() > at && std::sscanf(s.unit.c_str() + at, "-%dx%dx%d", &f.m, &f.n, &f.k) != 3) return {};
  return f;
}

std::string fragment_unit_name(const Fragment& f) {
  const std::string name = kFragmentUnit;
  if (f.m == 16 && f.n == 16 && f.k == 16) return name;
  return name + "-" + std::to_string(f.m) + "x" + std::to_string(f.n) + "x" + std::to_string(f.k);
}

// Parts of a tile are whole fragments, and a lane stores four columns at a time.
bool is_supported(const Fragment& f) {
  const auto supported = [](int size) { return size == 8 || size == 16 || size == 32; };
  return supported(f.m) && supported(f.n) && supported(f.k);
}

int64_t halo_bytes(const Window& w) {
  int64_t words = kHaloChannels;
  for (const size_t at : {1, 2}) words *= (kHaloSide - 1) * w.stride[at] + (w.filter[at] - 1) * w.dilation[at] + 1;
  return 4 * words;
}

// Registers: a thread's sums, its parts of a row and a column (twice: compilers read ahead), what it fetches for the next step,
// where its rows lie (two words for each that it fetches), and up to 96 words of addresses and of what was read ahead. The last
// is what RADV takes on RDNA2, RDNA3 and Vega (tests/vulkan/vulkan_codegen_test.cc).
TileNeeds tile_needs(const TileSchedule& s) {
  TileNeeds needs;
  if (s.variant == kCudaFew) {
    needs.threads = kFewThreads, needs.registers = 3 * s.thread_n * s.k / 64 + 64;
    return needs;
  }
  if (const CudaTile* t = cuda_tile(s)) {
    needs.threads = t->threads, needs.shared_bytes = shared_bytes(*t), needs.registers = t->registers;
    return needs;
  }
  if (without_tiles(s)) {
    needs.threads = s.m / s.thread_m * (s.n / s.thread_n);
    needs.registers = s.thread_m * s.thread_n + 4 * (s.thread_m + s.thread_n) + 40;
    return needs;
  }
  if (on_fragments(s)) {
    const int subgroups = (s.m / s.thread_m) * (s.n / s.thread_n), lanes = std::max(1, s.subgroup);
    needs.threads = subgroups * lanes;
    needs.shared_bytes = 2 * int64_t{s.m + s.n} * (s.k + s.pad) + int64_t{4} * subgroups * fragment_of(s).m * fragment_of(s).n;
    // Fragments of 16 x 16 of both operands are 8 words in each lane: RDNA3 keeps each half of a subgroup a copy. Those of
    // whole workgroups are shared among more lanes.
    const Fragment f = fragment_of(s);
    const int holders = of_groups(s) ? lanes : 16;
    needs.registers = s.thread_m * s.thread_n / lanes + (s.thread_m * f.k + s.thread_n * f.k) / 2 / holders +
                      (3 * s.m + s.n) * s.k / needs.threads + kAddresses;
    return needs;
  }
  needs.threads = s.m / s.thread_m * (s.n / s.thread_n);
  needs.shared_bytes = (in_short_sums(s) ? 2 : 4) * (int64_t{s.k} * (s.m + s.pad) + int64_t{s.k} * s.n);
  needs.registers =
      s.thread_m * s.thread_n + 2 * (s.thread_m + s.thread_n) + (3 * s.m + s.n) * s.k / needs.threads + kAddresses;
  if (in_short_sums(s)) needs.registers += s.thread_m * s.thread_n / 2;
  return needs;
}

double cores_worth(double groups, const TileSchedule& s, const Device& device) {
  const DeviceLimits& limits = device.limits;
  if (limits.schedulers_per_core <= 0) return groups;
  const int lanes = s.subgroup > 0 ? s.subgroup : limits.subgroup_size > 0 ? limits.subgroup_size : 32;
  const double subgroups = divided(tile_needs(s).threads, lanes), cores = std::max(1, device.cores);
  const double share = std::min(1.0, subgroups / (kSubgroupsOfScheduler * limits.schedulers_per_core));
  return std::min(groups * share, groups / std::ceil(groups / cores));
}

double groups_at_once(const TileSchedule& s, const Device& device) {
  const TileNeeds needs = tile_needs(s);
  const int resident = std::clamp(static_cast<int>(shared_bytes(device) / std::max<int64_t>(1, needs.shared_bytes)), 1,
                                  std::max(1, kThreadsAtOnce / std::max(1, needs.threads)));
  return static_cast<double>(resident) * std::max(1, device.cores);
}

TileWaves tile_waves_of(const Stage& stage, const TileSchedule& s, const Device& device) {
  const auto& params = get<GemmParams>(stage.params);
  const GemmSizes sizes = gemm_sizes(params, stage.inputs, stage.outputs[0]);
  const auto number = [](auto value) { return static_cast<double>(value); };
  const double instances = number(sizes.instances), m = number(sizes.m), k = number(sizes.k);
  TileWaves w;
  w.tiles_m = up(m, s.m), w.tiles_n = up(number(sizes.n), s.n);
  w.at_once = groups_at_once(s, device);
  const double element = number(size_of(stage.inputs[0].dtype));
  w.left = m * k * element, w.gathered = w.left;
  w.right = k * number(sizes.n) * number(size_of(stage.inputs[1].dtype));
  if (params.loader == Loader::window) {
    const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
    const Window& window = params.window;
    const auto seen = [&](int64_t in, int64_t out, int i) {
      return number(window.filter[i] >= window.stride[i] ? in : std::min(in, out * window.filter[i]));
    };
    const double pixel = number(x.c) / instances * element;
    w.left = std::min(w.left, number(x.n * x.d) * seen(x.h, y.h, 1) * seen(x.w, y.w, 2) * pixel);
    w.taps_h = number(window.filter[0] * window.filter[1]), w.taps_w = number(window.filter[2]);
    w.stride_h = number(window.stride[1]), w.stride_w = number(window.stride[2]);
    w.border = number(std::max<int64_t>(0, (window.filter[1] - 1) * window.dilation[1] + 1 - window.stride[1]) * x.w) * pixel;
  }
  return w;
}

std::vector<TileSchedule> product_tiles(const GemmSizes& sizes, std::string_view variant, const Device& device) {
  const MathUnit* unit = best_vector_unit(device);
  if (!unit) return {};
  TileSchedule s;
  s.variant = variant;
  s.unit = unit->name;
  auto found = register_tiles(s, sizes, *unit, device);
  drop_wasteful(found, sizes);
  return found;
}

std::vector<Schedule> gemm_tile_schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  if (variant.name == kCudaFew || variant.name == kCudaWmma) return few_schedules(stage, variant, device, why_not);
  if (is_cuda_product(variant.name)) return gemm_cuda_schedules(stage, variant, device, why_not);
  if (is_integer_tile(variant.name)) return gemm_integer_tile_schedules(stage, variant, device, why_not);
  if (variant.name == kNativeType) return gemm_native_type_schedules(stage, device, why_not);
  const WhyNot refuse{why_not};
  if (!variant.runs_on(device)) return refuse(Reason::backend_lacks_variant);
  const OperandType operands = get<GemmParams>(stage.params).operands;
  const bool rounded = operands != OperandType::own, fragments = variant.unit == UnitKind::matrix;
  const bool short_sums = variant.name == "half_sums";
  if (rounded != (fragments || short_sums)) return refuse(Reason::type_not_served);
  if (rounded && operands != OperandType::f16) return refuse(Reason::unit_missing);  // no kernel multiplies these yet
  TileSchedule s;
  s.variant = variant.name;
  const MathUnit* unit = short_sums ? device.unit("fma-f16") : best_vector_unit(device);
  if (fragments ? !has_unit_for(s, device) : !unit) return refuse(Reason::unit_missing);
  if (!stores_reals(variant, device, stage)) return refuse(Reason::type_not_served);
  if (!fragments) s.unit = unit->name;
  if (variant.name == "halo" && !halo_fits(stage, device)) return refuse(Reason::filter_not_served);
  if (variant.name == "fours" && !whole_vec4(stage)) return refuse(Reason::layout_not_served);
  if (without_tiles(s)) {
    s.m = variant.name == "naive" ? kNaiveThreads : kGroupsThreads, s.n = 1, s.k = 1;
    if (variant.name == "halo") s.m = kHaloSide * kHaloSide, s.n = kHaloFilters, s.k = kHaloChannels;
    if (variant.name == "fours") s.m = 64, s.n = 4, s.k = 4;
    if (variant.name == "several") s.m = 128, s.n = 32, s.k = 4, s.thread_m = s.thread_n = 4;
    if (device.limits.max_threads_per_group > 0 && tile_needs(s).threads > device.limits.max_threads_per_group)
      return refuse(Reason::too_few_registers);
    return {s};
  }
  const auto& params = get<GemmParams>(stage.params);
  const GemmSizes sizes = gemm_sizes(params, stage.inputs, stage.outputs[0]);
  const int load = stage.inputs[0].dtype == DType::f16 ? 8 : 4;
  auto found = fragments ? all_fragment_tiles(s, sizes, load, device) : register_tiles(s, sizes, *unit, device);
  drop_wasteful(found, sizes);
  if (found.empty()) return refuse(Reason::too_few_registers);
  return {found.begin(), found.end()};
}

Footprint gemm_tile_footprint(const Stage& stage, const TileSchedule& s, const Device& device) {
  if (is_integer_tile(s.variant)) return gemm_integer_tile_footprint(stage, s, device);
  if (s.variant == kCudaFew) return few_footprint(stage, device);
  const auto& params = get<GemmParams>(stage.params);
  const GemmSizes sizes = gemm_sizes(params, stage.inputs, stage.outputs[0]);
  const auto instances = static_cast<double>(sizes.instances), m = static_cast<double>(sizes.m),
             n = static_cast<double>(sizes.n), k = static_cast<double>(sizes.k);
  const bool naive = without_tiles(s);
  Footprint f = streaming_footprint(stage, device, 2 * instances * m * n * k);
  const double once = f.bytes.empty() ? 0 : *std::max_element(f.bytes.begin(), f.bytes.end());
  const double step_m = naive ? s.thread_m : s.m, step_n = naive ? s.thread_n : s.n;
  const auto halo = s.variant == kCudaHalo ? halo_tile(stage) : std::nullopt;
  const double tiles_m = halo ? static_cast<double>(halo->all) : up(m, step_m), tiles_n = up(n, step_n);
  f.executed_flops =
      naive ? 2 * instances * sizes.k_steps * n : 2 * instances * tiles_m * s.m * tiles_n * s.n * up(k, s.k) * s.k;
  if (s.variant == kCudaWmma) f.executed_flops *= kGathered;
  const CudaTile* cuda = is_cuda_product(s.variant) ? cuda_tile(s) : nullptr;
  if (const MathUnit* unit = device.unit(s.unit); cuda && unit && device.clock_hz > 0)
    f.executed_flops =
        std::max(f.executed_flops, instances * tiles_m * tiles_n * up(k, s.k) * clocks_by_elements(*cuda, stage) *
                                       unit->flops_per_second / device.clock_hz);
  if (s.variant == kCudaWidened) f.executed_flops *= kWidening;
  // Each tile reads its rows and columns; a thread (or subgroup) reads its own from shared memory once per step of k.
  // Threads side by side that each make an output read filters a row apart: a sector of 32 bytes for each product.
  const auto element = s.variant == "one_output" ? 16.0 : static_cast<double>(size_of(stage.inputs[0].dtype));
  // Blocks of a cluster share the columns' operand: one reads it for all.
  double read_of_tile = (step_m + step_n / (cuda ? cuda->cluster : 1)) * k;
  // Pixels and what surrounds them once for all taps.
  if (halo)
    read_of_tile = (static_cast<double>(halo->box_rows * halo->width) / static_cast<double>(params.window.taps()) + step_n) * k;
  const double read = element * instances * tiles_m * tiles_n * read_of_tile;
  // Sums of parts are written, and read again when they are added; of two on CUDA one stays where it is.
  const double parts = s.split == 2 && cuda ? 1 : s.split > 1 ? s.split : 0, partial = 8 * instances * m * n * parts;
  double written = 0;
  for (const TensorDesc& d : stage.outputs) written += static_cast<double>(d.bytes());
  // Of eight outputs that a thread stores one by one each store takes a sector of the cache.
  const double stored = cuda && stores_by_elements(stage) ? kStoresByElements * written : written;
  // Outputs, residuals and the like, each once.
  double operands = 0;
  for (size_t i = 0; i < 2; ++i) operands += static_cast<double>(stage.inputs[i].bytes());
  const double beside = std::max(written, once - operands);
  f.exposed.assign(f.bytes.size(), 0);
  // Words that an operand's element takes in shared memory.
  const double words = is_cuda_product(s.variant) ? element / 4 : on_fragments(s) || in_short_sums(s) ? 0.5 : 1;
  for (size_t i = 0; i < f.bytes.size(); ++i) {
    const MemoryLevel& level = device.memory[i];
    if (level.filled_by_hand) {
      f.bytes[i] = s.variant == "halo" ? 2 * f.executed_flops
                   : naive             ? 0
                                       : 2 * words * f.executed_flops * (1.0 / s.thread_m + 1.0 / s.thread_n);
      continue;
    }
    // What the next inner cache holds as a whole is read from here once.
    const bool inner = i > 0 && !device.memory[i - 1].filled_by_hand;
    const double holds = inner ? static_cast<double>(device.memory[i - 1].bytes) : 0;
    const bool far = inner && device.memory[i - 1].shared_by > 1;  // a shared cache puts stores together
    f.bytes[i] = once <= holds ? once : std::max(once, read + (far ? written : stored));
    if (once > holds && inner && device.memory[i - 1].shared_by > 1 && !naive)
      f.bytes[i] = std::min(f.bytes[i], std::max(once, read_past(stage, s, sizes, device, holds) + beside));
    f.exposed[i] = partial / 2 <= holds ? 0 : partial;
    f.bytes[i] += f.exposed[i];
    // Nothing is multiplied while tiles are copied.
    if (cuda && cuda->stages == 1) f.exposed[i] = f.bytes[i];
  }
  // Workgroups; the naive ones make an output per thread.
  const double groups = std::max(1.0, naive ? instances * m * n / (s.m * s.n) : instances * tiles_m * tiles_n * s.split);
  f.parallel_items = std::max(1.0, cores_worth(groups, s, device));
  // The sums' parts are added by a launch of their own, on CUDA by the last of the blocks that share them.
  f.launches = s.split > 1 && !is_cuda_product(s.variant) ? 2 : 1;
  f.workspace_bytes = s.split > 1 ? static_cast<int64_t>(4 * instances * m * n * s.split) : 0;
  if (s.variant == kNativeType) weigh_native_type(f, stage, device);
  return f;
}

}  // namespace sparkle
