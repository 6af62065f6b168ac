// What CUDA's attention kernels over blocks of queries support, and what they do with each level of memory.
#include "families/attention/attention_flash.h"

#include <algorithm>

#include "base/round_up.h"
#include "families/attention/attention.h"
#include "families/common.h"

namespace sparkle {
namespace {

// The unit and the ending of a kernel's name for operands of a type.
std::string_view operand_of(DType type) {
  return type == DType::f16 ? "f16" : type == DType::bf16 ? "bf16" : type == DType::f32 ? "f32" : "";
}
// Clocks of a core for each column of a block of keys or values that comes element by element: a pass of 128 threads brings
// eight elements each, 40 instructions, and waits for the L2, some 300 clocks, half of which the core's other block fills; a
// block has a pass for 16 columns.
constexpr double kClocksByElements = (40 + 300 / 2.0) / 16;

bool on_matrices(std::string_view variant) { return variant == "flash"; }

// Keys that blocks of queries look at, of all blocks of a batch together; lengths are only known when it runs.
double keys_of_blocks(const Stage& stage, int block) {
  const auto& p = get<AttentionParams>(stage.params);
  const Dims &q = stage.inputs[0].shape, &k = stage.inputs[1].shape;
  const int64_t queries = q[q.size() - 2], keys = k[k.size() - 2];
  double all = 0;
  for (int64_t query = 0; query < queries; query += block) {
    const KeyRange first = key_range(p, query, queries, keys, keys),
                   last = key_range(p, std::min(queries, query + block) - 1, queries, keys, keys);
    all += static_cast<double>(std::max<int64_t>(0, last.end - first.begin));
  }
  return all;
}

}  // namespace

bool in_chunks(const TensorDesc& d) {
  const int rank = d.shape.size();
  const int64_t run = 16 / size_of(d.dtype);
  if (d.shape[rank - 1] % run != 0 || d.layout.strides[rank - 1] != 1 || d.layout.offset % run != 0) return false;
  for (int i = 0; i < rank - 1; ++i)
    if (d.shape[i] > 1 && d.layout.strides[i] % run != 0) return false;
  return true;
}

std::optional<FlashTile> flash_tile(const Stage& stage, const Schedule& schedule) {
  const auto* loops = get_if<LoopSchedule>(&schedule);
  if (!loops) return std::nullopt;
  const auto& p = get<AttentionParams>(stage.params);
  const int64_t depth = stage.inputs[0].shape.back(), columns = stage.inputs[2].shape.back();
  const std::string operand(operand_of(stage.inputs[0].dtype));
  FlashTile t;
  const auto fits = [&](std::span<const int> sizes, int64_t least) {
    for (const int size : sizes)
      if (t.size == 0 && size >= least) t.size = size;
    return t.size != 0;
  };
  if (on_matrices(loops->variant)) {
    const bool wide = loops->grain == flash_queries(true);
    if (operand == "f32" || operand.empty() || (!wide && loops->grain != flash_queries(false))) return std::nullopt;
    if (!fits(kFlashSizes, std::max(depth, columns)) || (wide && !has_wide_flash(t.size))) return std::nullopt;
    t.queries = flash_queries(wide), t.keys = kFlashKeys, t.threads = 32 * kFlashWarps, t.strips = kFlashWarps;
    t.shared_bytes = flash_shared_bytes(t.queries, t.size, p.mask);
    t.kernel = "flash_" + std::to_string(t.queries) + "x" + std::to_string(t.size) + "_" + operand;
    return t;
  }
  if (loops->variant != "flash_fma" || operand != "f32" || loops->grain != kFlashFmaQueries) return std::nullopt;
  if (!fits(kFlashFmaSizes, columns)) return std::nullopt;
  t.queries = kFlashFmaQueries, t.keys = flash_fma_keys(t.size), t.threads = kFlashFmaThreads, t.strips = kFlashFmaQueries / 4;
  t.shared_bytes = flash_fma_shared_bytes(t.size, depth, columns);
  t.kernel = "flash_fma_" + std::to_string(t.size) + "_f32";
  return t;
}

std::vector<Schedule> flash_schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const WhyNot refuse{why_not};
  if (!variant.runs_on(device)) return refuse(Reason::backend_lacks_variant);
  const bool matrices = on_matrices(variant.name);
  const DType type = stage.inputs[0].dtype;
  if (matrices == (type == DType::f32)) return refuse(Reason::type_not_served);
  if (get<AttentionParams>(stage.params).scores != ScoreOutput::none) return refuse(Reason::operator_not_served);
  const MathUnit* unit = device.unit(matrices ? "mma-" + std::string(operand_of(type)) : "fma-f32");
  if (!unit) return refuse(Reason::unit_missing);
  std::vector<Schedule> found;
  const auto add = [&](int64_t queries) {
    const Schedule schedule = LoopSchedule{std::string(variant.name), unit->name, queries};
    const auto tile = flash_tile(stage, schedule);
    if (tile && tile->shared_bytes <= device.limits.shared_bytes_per_group) found.push_back(schedule);
  };
  if (matrices) add(flash_queries(true)), add(flash_queries(false));
  else add(kFlashFmaQueries);
  if (found.empty()) return refuse(Reason::layout_not_served);
  return found;
}

// Keys and values pass once for each block of queries: from the L2 to shared memory, and from there once for each strip.
void flash_footprint(const Stage& stage, const Schedule& schedule, const Device& device, Footprint& f) {
  const auto tile = flash_tile(stage, schedule);
  if (!tile) return;
  const Dims& q = stage.inputs[0].shape;
  const auto depth = static_cast<double>(q.back()), columns = static_cast<double>(stage.inputs[2].shape.back());
  const bool matrices = on_matrices(variant_of(schedule));
  const auto padded = static_cast<double>(tile->size);
  double batches = 1;
  for (int i = 0; i < q.size() - 2; ++i) batches *= static_cast<double>(q[i]);
  const double keys = batches * keys_of_blocks(stage, tile->queries);  // of all blocks
  // Two products; exponentials take their own units, which is half hidden behind the products of other warps: 64 operations
  // of Tensor Cores for each. On CUDA cores a fifth of what is issued are loads and addresses.
  const double each = matrices ? 2 * (padded + padded) + 64 : 1.25 * 2 * (depth + padded) + 25;
  f.executed_flops = keys * tile->queries * each;
  // Rows that are no runs of 16 bytes are loaded by the warps that multiply, which wait for them.
  if (const MathUnit* unit = device.unit(unit_of(schedule)); matrices && unit && device.clock_hz > 0)
    for (const size_t operand : {1, 2})
      if (!in_chunks(stage.inputs[operand]))
        f.executed_flops += keys / tile->keys * padded * kClocksByElements * unit->flops_per_second / device.clock_hz;
  const double read = keys * (depth + columns) * static_cast<double>(size_of(stage.inputs[1].dtype));
  for (size_t i = 0, caches = 0; i < f.bytes.size() && caches < 2; ++i) {
    if (device.memory[i].filled_by_hand) continue;
    f.bytes[i] = std::max(f.bytes[i], read), ++caches;
  }
  f.parallel_items = std::max(1.0, batches * static_cast<double>(divided(q[q.size() - 2], int64_t{tile->queries})));
}

}  // namespace sparkle
