// The attention family: positions, names, and what it tells the planner.
#include "families/attention/attention.h"

#include <algorithm>
#include <array>

#include "base/round_up.h"
#include "families/attention/attention_flash.h"
#include "families/attention/attention_reference.h"
#include "families/blocking.h"
#include "families/common.h"
#include "families/family.h"
#include "families/windows/samples.h"

namespace sparkle {
namespace {

constexpr std::array<std::string_view, 5> kScoreOutputs = {"none", "raw", "capped", "masked", "softmax"};

constexpr Variant kVariants[] = {
#include "families/attention/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"", "Attention", kFloats, kInF32},
};

// Sizes of the products.
struct Sizes {
  int64_t batches = 1, queries = 0, keys = 0, size = 0, columns = 0;
};
Sizes sizes_of(const Stage& stage) {
  const Dims &q = stage.inputs[0].shape, &v = stage.inputs[2].shape;
  const int rank = q.size();
  Sizes s{1, q[rank - 2], v[rank - 2], q[rank - 1], v[rank - 1]};
  for (int i = 0; i < rank - 2; ++i) s.batches *= q[i];
  return s;
}

// Keys of a workgroup where each query's are shared out among several: enough workgroups for the device, and two blocks of 64
// keys for each of them. All keys: no parts.
int64_t keys_of_part(const Sizes& s, const Device& device) {
  constexpr int64_t kBlock = 64, kMostParts = 128;
  const int64_t enough = std::max<int64_t>(64, 4 * device.cores), lines = std::max<int64_t>(1, s.batches * s.queries);
  const int64_t parts = std::clamp<int64_t>(std::min(enough / lines, s.keys / (2 * kBlock)), 1, kMostParts);
  return divided(divided(s.keys, parts), kBlock) * kBlock;
}

bool is_flash(std::string_view variant) { return variant == "flash" || variant == "flash_fma"; }

// GPUs: blocks of 32 queries and 64 columns that share what they read, or queries on their own.
void gpu_footprint(const Stage& stage, const Schedule& schedule, const Device& device, Footprint& f) {
  if (is_flash(variant_of(schedule))) return flash_footprint(stage, schedule, device, f);
  const Sizes s = sizes_of(stage);
  const auto each = static_cast<double>(2 * (s.size + s.columns) + 25), keys = static_cast<double>(s.keys);
  const double lines = static_cast<double>(s.batches * s.queries);
  if (variant_of(schedule) == "split") {
    const auto* loop = get_if<LoopSchedule>(&schedule);
    const int64_t parts = loop && loop->grain > 0 ? divided(s.keys, loop->grain) : 1;
    f.executed_flops = 2 * lines * keys * each;  // every product loads an operand of its own
    const double read = lines * keys * static_cast<double>((s.size + s.columns) * size_of(stage.inputs[1].dtype));
    for (size_t i = 0; i < f.bytes.size(); ++i) {
      if (device.memory[i].filled_by_hand) continue;
      f.bytes[i] = std::max(f.bytes[i], read);
      break;
    }
    f.parallel_items = std::max(1.0, lines * static_cast<double>(parts * divided(s.columns, 128)));
    f.workspace_bytes = 4 * s.batches * s.queries * parts * (s.columns + 2);
    return;
  }
  if (variant_of(schedule) == "queries") {
    // Lanes read a key each, so that a load is one of 32 lines, and values have one sum a lane that waits for its loads.
    f.executed_flops = 16 * lines * keys * each;
    const double read = lines * keys * static_cast<double>((s.size + s.columns) * size_of(stage.inputs[1].dtype));
    for (size_t i = 0; i < f.bytes.size(); ++i) {
      if (device.memory[i].filled_by_hand) continue;
      f.bytes[i] = std::max(f.bytes[i], read);
      break;
    }
    f.parallel_items = std::max(1.0, lines);
    return;
  }
  const int64_t blocks = divided(s.queries, 32);
  f.executed_flops = static_cast<double>(s.batches * blocks * 32) * keys * each;
  f.exposed = f.bytes;  // loads and products take turns
  f.parallel_items = std::max(1.0, static_cast<double>(s.batches * blocks * divided(s.columns, 64)));
}

// Two products, and about 25 operations per score for the softmax; keys and values pass once per block of queries.
Footprint footprint(const Stage& stage, const Schedule& schedule, const Device& device) {
  const Dims &q = stage.inputs[0].shape, &v = stage.inputs[2].shape;
  const auto scores = static_cast<double>(q.product() / std::max<int64_t>(1, q.back()) * v[v.size() - 2]);
  Footprint result = streaming_footprint(stage, device, scores * static_cast<double>(2 * (q.back() + v.back()) + 25));
  const auto batches = static_cast<double>(q.product() / std::max<int64_t>(1, q.back() * q[q.size() - 2]));
  result.parallel_items = std::max(1.0, batches * static_cast<double>((q[q.size() - 2] + 47) / 48));
  if (device.has_workgroups()) gpu_footprint(stage, schedule, device, result);
  if (variant_of(schedule) == "stream") {
    // Packed keys and values, filled up to whole vectors.
    const MathUnit* unit = device.unit(unit_of(schedule));
    const int64_t lanes = unit && unit->n > 0 ? unit->n : 16, keys = v[v.size() - 2];
    const auto padded = [lanes](int64_t count) { return (count + lanes - 1) / lanes * lanes; };
    int64_t instances = 1;
    for (int axis = 0; axis < v.size() - 2; ++axis)
      if (stage.inputs[1].layout.strides[axis] != 0 || stage.inputs[2].layout.strides[axis] != 0) instances *= v[axis];
    result.workspace_bytes = 4 * instances * (padded(keys) * q.back() + keys * padded(v.back())) + 64;
  }
  return result;
}

// More queries than these share the keys that they read, by the variant blocks.
std::vector<Schedule> split_schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  constexpr int64_t kMostQueries = 16;
  const Sizes s = sizes_of(stage);
  if (get<AttentionParams>(stage.params).scores != ScoreOutput::none)
    return why_not = Reason::operator_not_served, std::vector<Schedule>{};
  const int64_t keys = keys_of_part(s, device);
  if (s.queries > kMostQueries || keys >= s.keys) return why_not = Reason::costlier, std::vector<Schedule>{};
  std::vector<Schedule> found = loop_schedules(stage, variant, device, why_not);
  for (Schedule& schedule : found) get<LoopSchedule>(schedule).grain = keys;
  return found;
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  if (variant.name != "plain") {
    const auto& p = get<AttentionParams>(stage.params);
    const DType real = stage.outputs[0].dtype;
    if (!stores_reals(variant, device, real)) return why_not = Reason::type_not_served, std::vector<Schedule>{};
    for (size_t i = 0; i < 3; ++i)
      if (stage.inputs[i].dtype != real) return why_not = Reason::type_not_served, std::vector<Schedule>{};
    if (p.mask) {
      const DType type = stage.inputs[static_cast<size_t>(mask_operand(p))].dtype;
      if (type != real && type != DType::boolean) return why_not = Reason::type_not_served, std::vector<Schedule>{};
    }
    for (const TensorDesc& y : stage.outputs)
      if (y.dtype != real) return why_not = Reason::type_not_served, std::vector<Schedule>{};
    if (is_flash(variant.name)) return flash_schedules(stage, variant, device, why_not);
    if (variant.name == "queries") {
      // A query, its scores and a word a thread.
      const Sizes s = sizes_of(stage);
      if (4 * (s.keys + s.size + 128) > device.limits.shared_bytes_per_group)
        return why_not = Reason::layout_not_served, std::vector<Schedule>{};
      return loop_schedules(stage, variant, device, why_not);
    }
    if (variant.for_workgroups()) {
      const bool bytes = p.mask && stage.inputs[static_cast<size_t>(mask_operand(p))].dtype == DType::boolean;
      if (bytes && device.has_workgroups() && !device.unit("alu-i8"))
        return why_not = Reason::type_not_served, std::vector<Schedule>{};
      if (variant.name == "split") return split_schedules(stage, variant, device, why_not);
      return loop_schedules(stage, variant, device, why_not);
    }
    const auto contiguous = [](const TensorDesc& desc) { return desc.shape.back() <= 1 || desc.layout.strides.back() == 1; };
    if (!contiguous(stage.inputs[0]) || (stage.outputs.size() > 1 && !contiguous(stage.outputs[1])))
      return why_not = Reason::layout_not_served, std::vector<Schedule>{};
  }
  std::vector<Schedule> found = loop_schedules(stage, variant, device, why_not);
  // A block of queries, which reads all keys, is worth a task.
  cut_into(found, device, stage.outputs[0].elements(), device.cores > 1 ? 8 * device.cores : 1);
  return found;
}

// Blocks of queries over keys: register tiles and blocks as the variant's row has them.
Blocking blocking(const Stage& stage, const Schedule& schedule, const Device& device) {
  const auto& p = get<AttentionParams>(stage.params);
  const Sizes s = sizes_of(stage);
  const auto* loops = get_if<LoopSchedule>(&schedule);
  const Variant* variant = std::find_if(std::begin(kVariants), std::end(kVariants),
                                        [&](const Variant& v) { return v.name == variant_of(schedule); });
  const MathUnit* unit = device.unit(unit_of(schedule));
  Blocking b = streaming_blocking(stage, schedule, device);
  b.fused = {"scale", "softmax between the products"};
  if (p.softcap != 0) b.fused.emplace_back("soft cap");
  if (p.mask || p.lengths || p.left >= 0 || p.right >= 0) b.fused.emplace_back("mask");
  if (variant == std::end(kVariants) || variant->rows == 0 || !unit) return b;
  const auto text = [](int64_t n) { return std::to_string(n); };
  std::vector<BlockingTile> tiles;
  if (device.has_workgroups()) {
    const auto tile = flash_tile(stage, schedule);
    const int64_t keys = tile                                              ? tile->keys
                         : variant->rows == 1 && loops && loops->grain > 0 ? std::min(loops->grain, s.keys)
                                                                           : variant->vectors;
    const auto shared =
        std::find_if(device.memory.begin(), device.memory.end(), [](const MemoryLevel& l) { return l.filled_by_hand; });
    if (tile)
      tiles.push_back({text(tile->queries) + " queries, " + text(tile->keys) + " keys and values" +
                           (unit->kind == UnitKind::matrix ? " in two stages" : ""),
                       static_cast<double>(tile->shared_bytes), shared != device.memory.end() ? shared->name : ""});
    else if (variant->rows > 1 && shared != device.memory.end())
      tiles.push_back({"scores of " + text(variant->rows) + " queries x " + text(keys) + " keys",
                       static_cast<double>(4 * variant->rows * keys), shared->name});
    else
      tiles.push_back({text(keys) + " keys and values of a query, a workgroup",
                       static_cast<double>((s.size + s.columns) * keys * size_of(stage.inputs[1].dtype)), ""});
    b.vectorised = lanes_of(device, unit_of(schedule), "scores of neighbouring keys each");
    if (tile)
      tiles.push_back({"scores of " + text(tile->queries) + " queries x " + text(tile->keys) + " keys",
                       static_cast<double>(4 * tile->queries * tile->keys), std::string(kRegisters)});
  } else {
    // By the gemm family's tiles, which are two vectors wide where registers are few.
    const int vectors = registers_of(*unit) >= 32 ? variant->vectors : std::min(variant->vectors, 2);
    const int64_t keys = int64_t{vectors} * std::max(1, unit->n);
    tiles.push_back({"scores of " + text(variant->rows) + " queries x " + text(keys) + " keys",
                     static_cast<double>(4 * variant->rows * keys), std::string(kRegisters)});
    tiles.push_back({text(variant->rows) + " queries and " + text(keys) + " keys",
                     static_cast<double>(4 * s.size * (variant->rows + keys)), ""});
    b.vectorised = lanes_of(device, unit_of(schedule), "keys, then columns of values");
  }
  tiles.push_back(
      {"keys and values of a head", static_cast<double>(s.keys * (s.size + s.columns) * size_of(stage.inputs[1].dtype)), ""});
  b.tiles.insert(b.tiles.begin(), tiles.begin(), tiles.end());
  return b;
}

std::vector<SampleForm> sample_forms() {
  constexpr DType kF = DType::f32;
  AttentionParams p, masked, hidden;
  p.scale = 0.3;
  masked = p;
  masked.mask = masked.lengths = true, masked.right = 0, masked.offset = 5000, masked.scores = ScoreOutput::softmax;
  hidden = masked;
  hidden.scores = ScoreOutput::none, hidden.left = 90;
  return {{p, {kF, kF, kF}, {kF}},
          {hidden, {kF, kF, kF, DType::boolean, DType::i64}, {kF}},
          {hidden, {kF, kF, kF, kF, DType::i64}, {kF}},
          {masked, {kF, kF, kF, DType::boolean, DType::i64}, {kF, kF}},
          {masked, {kF, kF, kF, kF, DType::i64}, {kF, kF}}};
}

// More queries and keys than a block, and columns in whole vectors and not; of blocks that have kernels for some sizes several.
std::vector<Stage> samples(const SampleRequest& t) {
  AttentionParams p = get<AttentionParams>(t.params);
  const DType type = t.inputs[0];
  // Most queries see some keys.
  p.offset = std::clamp<int64_t>(p.offset, -5, 30);
  p.left = std::min<int64_t>(p.left, 20), p.right = std::min<int64_t>(p.right, 20);
  struct Sizes {
    int64_t queries, keys, size, columns;
  };
  std::vector<Sizes> sizes{{35, 37, 9, 5}, {7, 67, 8, 72}};
  if (is_flash(variant_of(t.schedule))) sizes.insert(sizes.end(), {{150, 131, 64, 64}, {66, 70, 96, 128}, {65, 75, 192, 256}});
  std::vector<Stage> stages;
  for (const Sizes& s : sizes) {
    Stage stage;
    stage.params = p;
    const int64_t gap = s.size % 2;
    stage.inputs = {described(type, {2, s.queries, s.size}, false, gap), described(type, {2, s.keys, s.size}, false, 0),
                    described(type, {2, s.keys, s.columns}, false, gap)};
    if (p.mask)
      stage.inputs.push_back(described(t.inputs[static_cast<size_t>(mask_operand(p))], {2, s.queries, s.keys}, false, 0));
    if (p.lengths) stage.inputs.push_back(dense_desc(DType::i64, {2}));
    stage.outputs.push_back(described(type, {2, s.queries, s.columns}, false, gap));
    if (p.scores != ScoreOutput::none) stage.outputs.push_back(described(type, {2, s.queries, s.keys}, false, 1));
    stages.push_back(stage);
  }
  return stages;
}

// Lengths lie within the keys.
double sample_value(const Stage& stage, size_t operand, std::mt19937& random) {
  const DType type = stage.inputs[operand].dtype;
  return type == DType::i64 ? drawn_between(1, stage.inputs[1].shape[1], random) : any_value(type, random);
}

}  // namespace

std::string_view name_of(ScoreOutput output) { return kScoreOutputs[static_cast<size_t>(output)]; }
bool parse_name(std::string_view text, ScoreOutput& output) {
  const auto at = std::find(kScoreOutputs.begin(), kScoreOutputs.end(), text);
  if (at == kScoreOutputs.end()) return false;
  output = static_cast<ScoreOutput>(at - kScoreOutputs.begin());
  return true;
}

KeyRange key_range(const AttentionParams& params, int64_t query, int64_t queries, int64_t keys, int64_t length) {
  length = std::clamp<int64_t>(length, 0, keys);
  const int64_t place = query + (params.offset_from_length ? length - queries : params.offset);
  KeyRange range{0, length};
  if (params.left >= 0) range.begin = std::max<int64_t>(0, place - params.left);
  if (params.right >= 0) range.end = std::min(range.end, place + params.right + 1);
  range.end = std::max<int64_t>(range.end, 0);
  range.begin = std::min(range.begin, range.end);
  return range;
}

const FamilyInfo& attention_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<AttentionParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .gpu_16_bits = true,
      .reference = attention_reference,
      .footprint = footprint,
      .blocking = blocking,
      .schedules = schedules,
      .sample_forms = sample_forms,
      .samples = samples,
      .sample_value = sample_value,
  };
  return family;
}

}  // namespace sparkle
