// The fft family on GPUs: transforms in shared memory, and what they and the products between them move.
#include "families/fft/fft_tiles.h"

#include <algorithm>
#include <cmath>

#include "families/common.h"
#include "families/fft/fft_family.h"
#include "families/gemm/gemm_family.h"
#include "families/gemm/gemm_tiles.h"
#include "families/values/fused.h"

namespace sparkle {
namespace {

// What Vulkan promises where a device says nothing.
constexpr int64_t kUnknownShared = 16384;
constexpr int kMostThreads = 256, kLeastThreads = 64, kPointsOfThread = 16;
// Between passes everyone waits for the last one; no GPU has shown yet how long, so half of the time is taken to be lost.
constexpr double kWaits = 2;
// Instructions for a point beside its passes: on its way in and out, and for a frequency of two planes.
constexpr double kIn = 12, kOut = 25, kTimes = 40, kPart = 25;
// Memory is read and written in pieces of this size, whatever is asked of them.
constexpr double kPieceBytes = 64;
constexpr double kLeastTileRows = 32;  // of a product
constexpr size_t kMostSizes = 12, kMostTransforms = 6, kMostProducts = 6, kMostSchedules = 16;

double number(int64_t v) { return static_cast<double>(v); }
double up(double a, double b) { return std::ceil(a / b); }

// Instructions of a pass for each of its points: sums, factors, addresses, moves to shared memory and back.
double instructions(int64_t points) {
  double sum = 0;
  for (const int radix : fft_radices(points, kFftGpuRegisters))
    sum += radix == 8 ? 13 : radix == 5 ? 15 : radix == 4 ? 10 : radix == 3 ? 11.5 : 8;
  return sum;
}
double passes(int64_t points) { return number(static_cast<int64_t>(fft_radices(points, kFftGpuRegisters).size())); }

struct Sizes {
  FftAxis height, width;
  int64_t groups = 1, depth = 1, filters = 1;  // of a group
  double tiles = 1, pairs_in = 1, pairs_out = 1;
  bool whole = false, last_in = false, last_out = false;  // channels of a pixel lie side by side
};
Sizes sizes_of(const Stage& stage, const FftTileSchedule& s) {
  Sizes z;
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  z.whole = s.variant == "whole";
  z.groups = z.whole ? 1 : std::max<int64_t>(1, get<FftParams>(stage.params).groups);
  z.depth = x.c / z.groups, z.filters = y.c / z.groups;
  z.height = fft_axis(stage, 1), z.width = fft_axis(stage, 2);
  if (!cut(z.height, s.rows) || !cut(z.width, s.columns)) return z;
  z.tiles = number(y.n * z.height.tiles * z.width.tiles);
  z.pairs_in = up(number(z.depth), 2), z.pairs_out = up(number(z.filters), 2);
  z.last_in = x.c > 2 && x.channel_stride == 1, z.last_out = y.c > 2 && y.channel_stride == 1;
  return z;
}

// The product of each frequency; complex numbers are two columns or rows.
GemmSizes product_of(const Sizes& z, const FftTileSchedule& s) {
  GemmSizes product;
  product.instances = product.weight_matrices = fft_frequencies(s) * z.groups;
  product.m = static_cast<int64_t>(z.tiles), product.n = 4 * static_cast<int64_t>(z.pairs_out);
  product.k = 4 * static_cast<int64_t>(z.pairs_in);
  product.k_steps = z.tiles * number(product.k);
  return product;
}

// Of a pair's tile: instructions and bytes of shared memory, there and back.
struct Way {
  double instructions = 0, shared = 0;
};
Way way_of(const FftTileSchedule& s, double lines, double moved, double each) {
  const double row = lines * number(s.columns), plane = number(s.rows * s.columns);
  Way w;
  w.instructions = row * instructions(s.columns) + plane * instructions(s.rows) + moved * each;
  w.shared = 16 * (row * passes(s.columns) + plane * passes(s.rows)) + 8 * moved;
  return w;
}

// Seconds by which schedules are ranked here; the planner predicts for itself.
double rank_of(const Stage& stage, const FftTileSchedule& s, const Device& device, const MathUnit& unit) {
  const Footprint f = fft_footprint(stage, s, device);
  const double cores = std::min(number(std::max(1, device.cores)), f.parallel_items);
  double seconds = unit.flops_per_second > 0 ? f.executed_flops / (unit.flops_per_second * cores) : f.executed_flops;
  for (size_t i = 0; i < device.memory.size(); ++i)
    if (const double rate = device.memory[i].total_bytes_per_second; rate > 0) seconds += f.bytes[i] / rate;
  return seconds;
}

void keep_best(std::vector<FftTileSchedule>& list, size_t most, const Stage& stage, const Device& device,
               const MathUnit& unit) {
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < list.size(); ++i) order.emplace_back(rank_of(stage, list[i], device, unit), i);
  std::sort(order.begin(), order.end());
  std::vector<FftTileSchedule> best;
  for (size_t i = 0; i < order.size() && i < most; ++i) best.push_back(list[order[i].second]);
  list = std::move(best);
}

// Sizes up to `largest` that shaders are written for.
std::vector<int64_t> sizes_for(const FftAxis& axis, int64_t largest) {
  std::vector<int64_t> sizes;
  for (const int64_t points : fft_sizes_for(axis, kMostFftPoints))
    if (points <= largest && fft_radices(points, kFftGpuRegisters).size() <= kMostFftPasses && sizes.size() < kMostSizes)
      sizes.push_back(points);
  return sizes;
}

}  // namespace

Blocking fft_tile_blocking(const Stage& stage, const FftTileSchedule& s, const Device& device) {
  const auto& p = get<FftParams>(stage.params);
  const Sizes z = sizes_of(stage, s);
  Blocking b;
  add_fused(b, p.epilogue);
  add_fused(b, p.window, true);
  const auto text = [](int64_t n) { return std::to_string(n); };
  b.tiles.push_back({"a butterfly of at most 8 points a thread", 8.0 * 8, std::string(kRegisters)});
  for (const MemoryLevel& level : device.memory)
    if (level.filled_by_hand) {
      b.tiles.push_back({counted(s.pairs, "pair") + " of channels, tiles of " + text(s.rows) + " x " + text(s.columns) +
                             " points for " + text(z.height.tile) + " x " + text(z.width.tile) + " outputs",
                         static_cast<double>(fft_shared_bytes(s)), level.name});
      break;
    }
  if (z.whole) {
    b.vectorised = lanes_of(device, s.unit, "points of a pass");
    b.in_flight = nothing_fetched(device) + "; " + counted(s.threads, "thread") + " a workgroup";
    b.fused.emplace_back("both transforms and the products");
  } else {
    const double frequencies = number(fft_frequencies(s));
    if (s.product.m > 0) add_tile_blocking(b, s.product, product_of(z, s), stage, device);
    b.tiles.push_back(
        {"frequencies of all tiles", 16 * frequencies * z.tiles * number(z.groups) * (z.pairs_in + z.pairs_out), ""});
  }
  b.tiles.push_back(all_operands(stage));
  return b;
}

int64_t fft_line_stride(int64_t rows, int64_t columns) { return (rows == 1 ? columns + columns / 16 : columns) | 1; }

std::vector<Schedule> fft_tile_schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const WhyNot refuse{why_not};
  const MathUnit* unit = best_vector_unit(device);
  if (!unit) return refuse(Reason::unit_missing);
  if (!stores_reals(variant, device, stage)) return refuse(Reason::type_not_served);
  const FftParams& p = get<FftParams>(stage.params);
  const int64_t channels = feature_map(stage.inputs[0]).c, filters = feature_map(stage.outputs[0]).c;
  const bool single = p.groups == channels && p.groups == filters, whole = variant.name == "whole";
  // Products of one channel and one filter are no products of matrices.
  if (whole != single) return refuse(Reason::groups_not_served);

  const int64_t limit = device.limits.shared_bytes_per_group > 0 ? device.limits.shared_bytes_per_group : kUnknownShared;
  const int threads = device.limits.max_threads_per_group > 0 ? device.limits.max_threads_per_group : kMostThreads;
  const FftAxis height = fft_axis(stage, 1);
  // With two axes neither is much longer than the other.
  const int64_t fit = limit / 8, largest = height.filter == 1 ? fit : static_cast<int64_t>(2 * std::sqrt(number(fit)));
  const std::vector<int64_t> rows = height.filter == 1 ? std::vector<int64_t>{1} : sizes_for(height, largest);
  const std::vector<int64_t> columns = sizes_for(fft_axis(stage, 2), largest);
  std::vector<FftTileSchedule> found;
  for (const int64_t r : rows)
    for (const int64_t c : columns)
      for (const int pairs : {1, 2, 4, 8}) {
        FftTileSchedule s;
        s.variant = variant.name, s.unit = unit->name, s.rows = r, s.columns = c, s.pairs = pairs;
        s.product.variant.clear();
        if (fft_shared_bytes(s) > limit || (pairs > 1 && 4 * (pairs / 2) > std::max(channels, filters))) break;
        s.threads = kLeastThreads;
        while (2 * s.threads <= std::min(threads, kMostThreads) && s.threads * kPointsOfThread < r * c * pairs) s.threads *= 2;
        found.push_back(s);
      }
  if (found.empty()) return refuse(Reason::filter_not_served);
  keep_best(found, whole ? kMostSchedules : kMostTransforms, stage, device, *unit);
  if (whole) return {found.begin(), found.end()};

  std::vector<FftTileSchedule> all;
  for (const FftTileSchedule& s : found) {
    std::vector<FftTileSchedule> with;
    for (const TileSchedule& tile : product_tiles(product_of(sizes_of(stage, s), s), "implicit", device)) {
      if (tile.split > 1) continue;  // frequencies alone fill the cores
      with.push_back(s);
      with.back().product = tile;
    }
    keep_best(with, kMostProducts, stage, device, *unit);
    all.insert(all.end(), with.begin(), with.end());
  }
  if (all.empty()) return refuse(Reason::too_few_registers);
  keep_best(all, kMostSchedules, stage, device, *unit);
  return {all.begin(), all.end()};
}

// Frequencies of sums over channels are written once and read once before the products and behind them; a channel with a filter
// of its own never leaves shared memory.
Footprint fft_tile_footprint(const Stage& stage, const FftTileSchedule& s, const Device& device, Footprint f) {
  const Sizes z = sizes_of(stage, s);
  const double frequencies = number(fft_frequencies(s)), plane = number(s.rows * s.columns), groups = number(z.groups);
  const double rows_in = number(std::min({z.height.in, z.height.span(), s.rows})),
               columns_in = number(std::min({z.width.in, z.width.span(), s.columns}));
  const double outputs = number(z.height.tile * z.width.tile);
  const double blocks_in = up(z.pairs_in, s.pairs), blocks_out = up(z.pairs_out, s.pairs);
  const Way there = way_of(s, rows_in, plane, kIn), back = way_of(s, number(z.height.tile), outputs, kOut * 2);
  const double in = z.tiles * groups * blocks_in * s.pairs, out = z.tiles * groups * blocks_out * s.pairs;

  // Workgroups of the transforms; where they leave cores idle, the products still fill them.
  const double workgroups = z.tiles * groups * std::min(blocks_in, blocks_out), cores = number(std::max(1, device.cores));
  const double idle = z.whole ? 1 : std::max(1.0, cores / workgroups);
  double work = in * there.instructions + out * back.instructions + (z.whole ? in * kTimes : (in + out) * kPart) * frequencies;
  double shared = in * there.shared + out * back.shared + (z.whole ? 32 * in : 16 * (in + out)) * frequencies;
  f.executed_flops = 2 * kWaits * idle * work;

  // Pixels of some channels alone take whole pieces of memory from the outer caches, and so do frequencies.
  const auto pieces = [&](bool last, int64_t channels) {
    const double pixel = 8.0 * s.pairs;
    return last ? std::max(1.0, std::min(kPieceBytes, 4 * number(channels)) / pixel) : 1.0;
  };
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  const double x_read = 8 * z.tiles * groups * z.pairs_in * rows_in * columns_in,
               y_written = 4 * number(stage.outputs[0].elements());
  double others = 0;
  for (size_t i = 2; i < stage.inputs.size(); ++i) others += number(stage.inputs[i].bytes());
  const double both = x_read * pieces(z.last_in, x.c) + y_written * pieces(z.last_out, y.c) + others;
  const double weights = z.whole ? 16 * frequencies * z.pairs_in : 16 * groups * frequencies * z.pairs_in * 2 * z.pairs_out;
  const double transformed = z.whole ? 0 : 16 * frequencies * z.tiles * groups * (z.pairs_in + z.pairs_out);
  const double scattered = std::max(1.0, kPieceBytes / (16.0 * s.pairs));
  double read = z.whole ? weights * z.tiles : 0, products = 0, product_shared = 0, tiles = 0;
  if (!z.whole && s.product.m == 0) {
    // Not chosen yet: what any tile does at least.
    tiles = frequencies * groups;
    products = 32 * tiles * up(z.tiles, kLeastTileRows) * kLeastTileRows * z.pairs_in * z.pairs_out;
  }
  if (!z.whole && s.product.m > 0) {
    const TileSchedule& t = s.product;
    const double m = up(z.tiles, t.m), n = up(4 * z.pairs_out, t.n), k = 4 * z.pairs_in;
    tiles = frequencies * groups * m * n;
    products = 2 * tiles * t.m * t.n * up(k, t.k) * t.k;
    read = 4 * tiles * (t.m + 0.5 * t.n) * k;
    product_shared = products * 2 * (1.0 / t.thread_m + 1.0 / t.thread_n);
  }
  f.executed_flops += products;

  const double operands = number(stage.inputs[0].bytes()) + y_written + others;
  // A core with several workgroups loads for one while others compute.
  const double alone = workgroups > 2 * cores ? 0.5 : 1;
  f.exposed.assign(f.bytes.size(), 0);
  for (size_t i = 0; i < f.bytes.size(); ++i) {
    if (device.memory[i].filled_by_hand) {
      f.bytes[i] = shared + product_shared;
      continue;
    }
    const bool inner = i > 0 && !device.memory[i - 1].filled_by_hand,
               cache_of_all = i > 0 && device.memory[i - 1].shared_by > 1;
    const double holds = inner ? number(device.memory[i - 1].bytes) : 0;
    const bool stays = operands + weights + transformed <= holds;
    // Behind a cache of all cores neighbours' pieces are found there.
    const bool found = inner && cache_of_all;
    const double moved = stays ? 0 : found ? std::max(operands, x_read + y_written + others) : both;
    const double points = transformed <= holds ? 0 : 2 * transformed * (found ? 1 : scattered);
    f.exposed[i] = alone * (moved + points);
    const double again = weights + transformed <= holds ? 0 : found ? weights + transformed : read;
    f.bytes[i] = moved + points + again;
  }
  f.parallel_items = std::max(1.0, z.whole ? workgroups : s.product.m > 0 ? cores_worth(tiles, s.product, device) : tiles);
  f.workspace_bytes = static_cast<int64_t>(transformed);
  return f;
}

}  // namespace sparkle
