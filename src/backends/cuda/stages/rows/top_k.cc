// The top_k family on CUDA. The best of a row is found as reductions are. More than one: pieces of a row are sorted in shared
// memory, then pairs of them merged, of which no more is kept than can come out, until one is left.
#include "families/top_k/top_k.h"

#include <algorithm>

#include "backends/cuda/kernels/rows/top_k_record.h"
#include "backends/cuda/stages/moves/moves.h"
#include "backends/cuda/stages/rows/rows.h"
#include "families/top_k/top_k_gpu.h"
#include "families/type_set.h"

namespace sparkle::cuda {

static_assert(kSortEntries == kTopKEntries);

namespace {

// Kernels of keys of 4 or 8 bytes.
std::string named(const std::string& kernel, DType type) {
  return "sparkle_top_k_" + kernel + (size_of(type) == 8 ? "_8" : "_4");
}

Status add_best(CudaKernel& kernel, const Workshop& shop, RowsRecord record, const std::array<int, 4>& operands) {
  const DType type = kernel.stage.inputs[0].dtype;
  if (record.parts > 1) {
    kernel.workspace = int64_t{8} * record.rows * record.parts;
    SPARKLE_TRY(parts, rows_launch(named("parts", type), record, operands, shop));
    kernel.launches.push_back(std::move(parts));
    record.own[0] = record.parts;
  }
  SPARKLE_TRY(best, rows_launch(named(record.parts > 1 ? "of_parts" : "best", type), record, operands, shop));
  best.grid[1] = 1;
  kernel.launches.push_back(std::move(best));
  return ok();
}

Status add_sort(CudaKernel& kernel, const Workshop& shop, RowsRecord record, const std::array<int, 4>& operands) {
  const DType type = kernel.stage.inputs[0].dtype;
  const int64_t k = get<TopKParams>(kernel.stage.params).k, bytes = 4 + std::max<int64_t>(4, size_of(type));
  const TopKRuns first = top_k_runs(kernel.stage);
  if (2 * first.entries > INT32_MAX) return too_far("top_k");
  kernel.workspace = first.bytes;
  int64_t width = first.width, runs = first.runs, from = 0, to = 0;
  const auto add = [&](const std::string& name, std::array<unsigned, 3> grid, int64_t shared) -> Status {
    int i = 0;
    for (const int64_t number : {k, width, runs, std::min(k, width), from, to, 2 * first.entries})
      record.own[i++] = static_cast<uint32_t>(number);
    SPARKLE_TRY(launch, rows_launch(named(name, type), record, operands, shop));
    launch.grid = grid, launch.shared_bytes = static_cast<unsigned>(shared);
    if (first.bytes > 0) launch.addresses.push_back({offsetof(RowsRecord, work), kWorkspace, 0});
    kernel.launches.push_back(std::move(launch));
    return ok();
  };
  SPARKLE_CHECK(add("sort", blocks_for(first.rows * runs * width, kSortEntries), bytes * kSortEntries));
  for (to = first.entries; runs > 1; std::swap(from, to)) {
    const int64_t entries = first.rows * runs * std::min(k, width);
    width *= 2, runs = (runs + 1) / 2;
    SPARKLE_CHECK(add("merge", blocks_for(entries, kRowsThreads), 0));
  }
  return ok();
}

}  // namespace

Result<CudaKernelPtr> make_top_k(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  const auto& p = get<TopKParams>(stage.params);
  const bool best = variant_of(schedule) == "best";
  if (!best && variant_of(schedule) != "sort")
    return Error{Reason::backend_lacks_variant, "the CUDA backend has no top_k variant '" + variant_of(schedule) + "'"};
  if (best && p.k > 1) return Error{Reason::filter_not_served, "the variant 'best' finds one element of each row"};
  if (!best && p.k <= 1) return Error{Reason::filter_not_served, "the variant 'sort' finds more than one element of each row"};
  const DType type = stage.inputs[0].dtype;
  if (!kIntegers.has(type) && !is_float(type))
    return Error{Reason::type_not_served, "the CUDA top_k kernels rank numbers, not " + std::string(name_of(type))};
  auto kernel = std::make_unique<CudaKernel>(stage);
  if (stage.outputs.back().elements() == 0) return kernel;
  const bool values = stage.outputs.size() > 1;
  const std::array<int, 4> operands{0, values ? 1 : -1, -1, values ? 2 : 1};
  SPARKLE_TRY(record, rows_of(stage, operands, 1u << p.axis, best));
  record.kind = static_cast<uint8_t>(is_float(type) ? kRankFloat : kSignedIntegers.has(type) ? kRankSigned : kRankUnsigned);
  record.flags = static_cast<uint8_t>((p.largest ? kRankLargest : 0) | (p.last_of_equals ? kRankLastOfEquals : 0) |
                                      (p.nan_first ? kRankNanFirst : 0) | (values ? kRankValues : 0));
  SPARKLE_CHECK(best ? add_best(*kernel, shop, record, operands) : add_sort(*kernel, shop, record, operands));
  return kernel;
}

}  // namespace sparkle::cuda
