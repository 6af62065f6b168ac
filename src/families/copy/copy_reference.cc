// The copy family: plain loops, and what it tells the planner.
#include <algorithm>
#include <cstring>

#include "families/common.h"
#include "families/copy/copy.h"
#include "families/windows/samples.h"
#include "families/loops/chunk_move.h"
#include "families/loops/walk.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#include "families/copy/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"", "Reshape, Transpose, Concat, Slice, Split, Expand, Tile, DepthToSpace, SpaceToDepth", kAllTypes,
     "elements move as they are", "all"},
};

void copy_reference(const StageParams&, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const TensorView &x = inputs[0], &y = outputs[0];
  const auto bytes = static_cast<size_t>(size_of(y.desc.dtype));
  for_each_index(y.desc.shape, [&](const Dims& at) { std::memcpy(element_at(y, at), element_at(x, at), bytes); });
}

// GPUs read memory in sectors of so many bytes: a chunk that is read alone costs a whole one.
constexpr int64_t kSector = 32;
// Lines shorter than this are no work for tiles of 32 x 32.
constexpr int64_t kShortestLine = 8;

// Whether CPUs move elements one by one: neither lines of y nor tiles of a transposition are long enough for vectors
// (backends/cpu/copy/copy.cc).
bool one_by_one(const ChunkMove& move, const Transposition& t) {
  constexpr int64_t kFew = 16, kPlanes = 4, kTile = 16;
  if (move.bytes > 8 || move.axes.empty() || move.axes.back().size >= kFew) return false;
  if (!t.found()) return true;
  const auto [few, many] = std::minmax(move.axes[static_cast<size_t>(t.a)].size, move.axes[static_cast<size_t>(t.b)].size);
  return few <= kPlanes ? many < kFew : few * move.bytes < kTile;
}

Footprint footprint(const Stage& stage, const Schedule& schedule, const Device& device) {
  Footprint f = streaming_footprint(stage, device, 0);
  const bool tiles = variant_of(schedule) == "tiles", units = device.has_workgroups() && variant_of(schedule) == "units";
  if (!tiles && !units) return f;
  const ChunkMove move = chunk_move(stage.inputs[0], stage.outputs[0]);
  const Transposition t = transposition(move);
  if (tiles) {
    // An element and its place are two loads, which take a core as long as two of vectors.
    const MathUnit* unit = device.unit(unit_of(schedule));
    if (unit && one_by_one(move, t)) f.port_bytes = 2 * static_cast<double>(move.count()) * static_cast<double>(unit->n) * 4;
    return f;
  }
  // What lies next to a chunk in x is lost where y wants it later; caches bring back the part that short lines share.
  if (!t.found()) return f;
  const int64_t lost = std::min(kSector / move.bytes, move.axes[static_cast<size_t>(t.a)].size);
  const double read = static_cast<double>(stage.inputs[0].bytes()) * static_cast<double>(std::max<int64_t>(lost, 1) - 1);
  for (double& bytes : f.bytes)
    if (bytes > 0) bytes += read;
  return f;
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  if (variant.name == "transpose") {
    const ChunkMove move = chunk_move(stage.inputs[0], stage.outputs[0]);
    const Transposition t = transposition(move);
    const auto line = [&](int axis) { return move.axes[static_cast<size_t>(axis)].size; };
    if (!t.found() || move.bytes >= kSector / 2 || line(t.a) < kShortestLine || line(t.b) < kShortestLine) {
      why_not = Reason::layout_not_served;
      return {};
    }
  }
  return loop_schedules(stage, variant, device, why_not);
}

std::vector<SampleForm> sample_forms() {
  const auto of = [](DType type) { return SampleForm{CopyParams{}, {type}, {type}}; };
  return {of(DType::f32), of(DType::u8), of(DType::i64)};
}

// Planes to pixels and back: what goes through shared memory where it can.
std::vector<Stage> samples(const SampleRequest& t) {
  const TensorDesc planes = described(t.inputs[0], {2, 37, 5, 9}, false, 1),
                   pixels = described(t.inputs[0], {2, 37, 5, 9}, true, 0);
  return {{t.params, {planes}, {pixels}}, {t.params, {pixels}, {planes}}};
}

SampleRules comparison(const Stage&) { return {.in_native_type = true}; }

}  // namespace

const FamilyInfo& copy_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<CopyParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .gpu_16_bits = true,
      .reference = copy_reference,
      .footprint = footprint,
      .schedules = schedules,
      .sample_forms = sample_forms,
      .samples = samples,
      .comparison = comparison,
  };
  return family;
}

}  // namespace sparkle
