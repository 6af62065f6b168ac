// What the direct family tells the planner: variants, predicted work and traffic, schedules worth ranking.
#include "families/direct/direct.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/round_up.h"
#include "families/common.h"
#include "families/direct/direct_family.h"
#include "families/direct/direct_layout.h"
#include "families/gemm/gemm_family.h"
#include "families/loops/grain.h"
#include "families/loops/rows_in_cache.h"
#include "families/windows/taps.h"
#include "families/windows/window_samples.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#include "families/direct/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"", "Conv with a few input channels", kFloats, kInF32},
};

const DirectParams& params_of(const Stage& stage) { return get<DirectParams>(stage.params); }

// Taps of a row that the sliding kernels hold in registers.
bool slides(const Window& w) {
  return w.stride[2] == 1 && w.dilation[2] == 1 && (w.filter[2] == 3 || w.filter[2] == 5 || w.filter[2] == 7);
}

// Rows of outputs in a block: all, or so few that there are some blocks for each core, in numbers that let all cores end
// together.
int64_t rows_of_block(const Stage& stage, int64_t column_blocks, const Device& device) {
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  const DirectParams& p = params_of(stage);
  if (p.groups > 1) return group_rows(x, y, p.window.stride[1], device);
  const int64_t cores = std::max(1, device.cores), strips = std::max<int64_t>(1, y.n * column_blocks);
  if (cores == 1 || strips >= 8 * cores) return 0;
  const int64_t fewest = p.window.filter[1] > 1 ? 4 : 1;  // each task lays the rows above its own again
  int64_t best = y.h, least = 0;
  for (int64_t blocks = 1; blocks <= divided(8 * cores, strips); ++blocks) {
    const int64_t rows = divided(y.h, blocks);
    if (rows < fewest && blocks > 1) break;
    const int64_t longest = divided(strips * divided(y.h, rows), cores) * rows;  // rows of the busiest core
    if (least == 0 || longest <= least) best = rows, least = longest;
  }
  return std::max<int64_t>(1, best);
}

// Groups read and write a line or so of each pixel. Of pixels a large power of two apart these lie in a few sets of the L1 (64
// sets of lines, as many as a page has): so many pixels of a tile that their lines stay together.
int64_t pixels_in_l1(const Stage& stage, const Device& device) {
  constexpr int64_t kLine = 64, kSets = 64;
  const MemoryLevel* l1 = device.level("L1");
  const int64_t lines_a_set = l1 && l1->bytes > 0 ? std::max<int64_t>(4, l1->bytes / (kLine * kSets)) : 8;
  const int64_t bytes = feature_map(stage.inputs[0]).pixel_stride * 4;
  const int64_t sets = kSets / std::gcd(kSets, std::max<int64_t>(1, bytes / kLine));
  return std::max<int64_t>(1, sets * lines_a_set / 2);
}

// Whether inputs come from beyond the L2, and pixel by pixel where they lie: tiles of a few steps would wait for their lines.
bool fetches(const Stage& stage, int64_t columns, int64_t lanes, const Device& device) {
  const Window& w = params_of(stage).window;
  const MemoryLevel* l2 = device.level("L2");
  if (!l2 || l2->bytes == 0 || stage.inputs[0].bytes() + stage.outputs[0].bytes() <= l2->bytes) return false;
  return params_of(stage).groups == 1 && channels_innermost(stage.inputs[0]) && w.stride[2] <= w.filter[2] &&
         direct_reading(stage, "maps", columns, lanes) == DirectReading::in_place;
}

std::optional<DirectSchedule> schedule_on(const Stage& stage, const Variant& variant, const MathUnit& unit,
                                          const Device& device) {
  const DirectParams& p = params_of(stage);
  const Window& w = p.window;
  const FeatureMap y = feature_map(stage.outputs[0]);
  const int64_t ring = w.span(1, 1), lanes = std::max(1, unit.n), maps = y.c / p.groups;
  DirectSchedule s;
  s.variant = variant.name;
  s.unit = unit.name;
  const bool many = registers_of(unit) >= 32;
  if (variant.name == "pixels") {
    const int64_t blocks = divided(maps, 4);
    s.maps = static_cast<int>(divided(maps, std::max<int64_t>(1, blocks)));
    s.pixels = static_cast<int>(most_direct_pixels(variant.name, s.maps, w.filter[2], many));
  } else if (variant.name == "slide") {
    if (!slides(w)) return std::nullopt;
    s.maps = 1;
    s.pixels = static_cast<int>(most_direct_pixels(variant.name, s.maps, w.filter[2], many));
    if (y.w < (s.pixels + 1) / 2) return std::nullopt;
  } else {
    const int64_t vectors = std::max<int64_t>(1, divided(maps, lanes)), most = many ? 4 : 2;
    s.maps = static_cast<int>(divided(vectors, divided(vectors, most)));
    s.pixels = static_cast<int>(most_direct_pixels(variant.name, s.maps, w.filter[2], many));
    if (p.groups > 1 && direct_reading(stage, variant.name, y.w, lanes) == DirectReading::in_place)
      s.pixels = static_cast<int>(std::min<int64_t>(s.pixels, pixels_in_l1(stage, device)));
  }
  // As many columns as the scratch holds for all rows of the filter.
  int64_t blocks = 1;
  const auto columns = [&] {
    const int64_t even = std::max<int64_t>(1, divided(y.w, blocks));
    return s.variant != "pixels" ? even : std::min(rounded_up(even, lanes), std::max<int64_t>(1, y.w));
  };
  const auto floats = [&] { return ring * direct_row_of(s, stage, columns(), lanes).floats; };
  // The fewest blocks whose rows fit: rows may be as long as tensors may be large.
  int64_t most_blocks = std::max<int64_t>(1, divided(y.w, lanes));
  for (int64_t least = 1; least < most_blocks;) {
    blocks = least + (most_blocks - least) / 2;
    if (floats() <= kDirectScratchFloats) {
      most_blocks = blocks;
    } else {
      least = blocks + 1;
    }
  }
  blocks = most_blocks;
  if (floats() > kDirectScratchFloats) return std::nullopt;
  const int64_t last = y.w - (divided(y.w, columns()) - 1) * columns();
  if (variant.name == "slide" && std::min(columns(), last) < (s.pixels + 1) / 2) return std::nullopt;
  s.columns = columns();
  s.rows = rows_of_block(stage, blocks, device);
  const FeatureMap x = feature_map(stage.inputs[0]);
  if (variant.name == "maps" && fetches(stage, s.columns, lanes, device)) s.prefetch = 2;
  const double products = static_cast<double>(y.n * y.pixels() * y.c) * static_cast<double>(x.c / p.groups * w.taps());
  s.grain = grain_of(stage.outputs[0].elements(), planned_tasks(products, kLeastProducts, 8, device));
  return s;
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const WhyNot refuse{why_not};
  if (variant.name == "plain") return loop_schedules(stage, variant, device, why_not);
  if (!variant.runs_on(device)) return refuse(Reason::backend_lacks_variant);
  const std::vector<const MathUnit*> units = vector_units(device);
  if (units.empty()) return refuse(Reason::unit_missing);
  for (const TensorDesc& desc : stage.inputs)
    if (desc.dtype != DType::f32) return refuse(Reason::type_not_served);
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  if (y.c > 1 && y.channel_stride != 1) return refuse(Reason::layout_not_served);
  const Window& w = params_of(stage).window;
  const int64_t groups = params_of(stage).groups;
  if (groups > 1 && variant.name == "pixels") return refuse(Reason::groups_not_served);
  // Filters taller or wider than any scratch are refused before their sizes are multiplied.
  const auto large = [&](size_t axis) {
    return w.filter[axis] > kMostDirectRows || w.dilation[axis] > kMostDirectRing || w.stride[axis] > kMostDirectRing;
  };
  if (x.d != 1 || w.filter[0] != 1 || x.c / groups > most_direct_channels(w) || large(1) || large(2))
    return refuse(Reason::filter_not_served);
  const int64_t ring = w.span(1, 1);
  if (ring > kMostDirectRing) return refuse(Reason::filter_not_served);
  std::vector<Schedule> found;
  for (const MathUnit* unit : units) {
    if (const auto s = schedule_on(stage, variant, *unit, device)) found.push_back(*s);
    // The maps of a group may fill shorter vectors only.
    if (groups == 1 || y.c / groups % std::max(1, unit->n) == 0) break;
  }
  if (found.empty()) return refuse(Reason::filter_not_served);
  return found;
}

std::vector<SampleForm> sample_forms() {
  DirectParams p, grouped;
  p.window = grouped.window = small_window();
  p.epilogue.bias = true;
  grouped.groups = 4;
  return {{p, {DType::f32, DType::f32, DType::f32}, {DType::f32}}, {grouped, {DType::f32, DType::f32}, {DType::f32}}};
}

// Rows that all variants find long enough; maps that fill no vector, and one.
std::vector<Stage> samples(const SampleRequest& t) {
  const auto& p = get<DirectParams>(t.params);
  if (!of_one_real(t)) return {};
  return {with_types(window_sample(p, p.window, &p.epilogue, {3 * p.groups, 5 * p.groups, 3, 37}, 1), t),
          with_types(window_sample(p, p.window, &p.epilogue, {2 * p.groups, 16 * p.groups, 2, 40}, 0), t)};
}

SampleRules comparison(const Stage& stage) { return {.products = static_cast<double>(products_of(stage))}; }

}  // namespace

DirectRow direct_row_of(const DirectSchedule& s, const Stage& stage, int64_t columns, int64_t lanes) {
  const DirectParams& p = params_of(stage);
  const FeatureMap x = feature_map(stage.inputs[0]);
  const int64_t depth = x.c / p.groups;
  const bool pixels = s.variant == "pixels";
  return direct_row(p.window, direct_bundle(p.groups, depth) * depth, columns, lanes, pixels ? p.window.stride[2] : 1,
                    pixels || (x.c > 1 && x.channel_stride != 1));
}

int64_t most_direct_pixels(std::string_view variant, int64_t maps, int64_t taps, bool many) {
  static constexpr int64_t kMany[] = {10, 8, 6, 5}, kFew[] = {8, 4, 3, 2};
  maps = std::max<int64_t>(1, maps);
  const int64_t row = maps < 4 ? maps : 4;
  if (variant == "pixels") return (many ? kMany : kFew)[row - 1];
  if (variant == "slide") return std::min<int64_t>(taps == 5 ? 15 : 17, (many ? 30 : 14) - taps);
  return (many ? 24 : 12) / maps;
}

DirectReading direct_reading(const Stage& stage, std::string_view variant, int64_t columns, int64_t lanes) {
  const Window& w = params_of(stage).window;
  const int64_t groups = params_of(stage).groups;
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  const bool pixels = variant == "pixels";
  // In place: no column outside of the image is read, pixels lie as the kernels want them.
  const int64_t right = (y.w - 1) * w.stride[2] - w.pad_begin[2] + (w.filter[2] - 1) * w.dilation[2];
  const bool inside = w.pad_begin[2] <= 0 && right < x.w;
  const bool wanted = !pixels || (w.stride[2] == 1 && x.pixel_stride == 1);
  const bool whole = !pixels || (y.w % lanes == 0 && columns % lanes == 0);
  if (inside && wanted && whole) return DirectReading::in_place;
  const bool near = x.c == 1 || x.channel_stride == 1, together = near && x.pixel_stride == x.c;
  const bool planes = x.pixel_stride == 1, few = x.c <= 4;
  if (groups > 1) return near ? DirectReading::vectors : DirectReading::one_by_one;
  if (!pixels) return together || planes ? DirectReading::vectors : DirectReading::one_by_one;
  const bool vectors = w.stride[2] == 1 ? planes || (together && few) : w.stride[2] == 2 && planes;
  return vectors ? DirectReading::vectors : DirectReading::one_by_one;
}

int64_t direct_bundle(int64_t groups, int64_t depth) {
  int64_t bundle = 1;
  while (groups % (2 * bundle) == 0 && 2 * bundle * depth <= 16) bundle *= 2;
  return bundle;
}

DirectRow direct_row(const Window& window, int64_t channels, int64_t columns, int64_t lanes, int64_t phases, bool planes) {
  const int64_t stride = window.stride[2], reach = (window.filter[2] - 1) * window.dilation[2];
  DirectRow row;
  if (planes) {
    // Phases of the stride: the last vector of outputs may be partly filled, its inputs are zeros.
    const int64_t span =
        phases == stride ? rounded_up(columns, lanes) + reach / stride + 1 : (columns - 1) * stride + reach + 1;
    row.phase = rounded_up(span, 16);
    row.channel = phases * row.phase;
    row.column = 1;
    row.floats = channels * row.channel;
  } else {
    row.channel = 1;
    row.column = channels;
    row.floats = rounded_up(((columns - 1) * stride + reach + 1) * channels, 16);
  }
  return row;
}

const FamilyInfo& direct_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<DirectParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .reference = convolution_reference<DirectParams>,
      .footprint = direct_footprint,
      .blocking = direct_blocking,
      .schedules = schedules,
      .sample_forms = sample_forms,
      .samples = samples,
      .comparison = comparison,
      .cpu_schedule = &ScheduleType::of<DirectSchedule>,
  };
  return family;
}

}  // namespace sparkle
