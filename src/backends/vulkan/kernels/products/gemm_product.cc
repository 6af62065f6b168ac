#include "backends/vulkan/kernels/products/gemm_product.h"

#include <algorithm>
#include <limits>

#include "backends/vulkan/shaders/gemm_constants.h"
#include "backends/vulkan/kernels/real_types.h"
#include "families/values/epilogue.h"
#include "families/gemm/gemm_tiles.h"

namespace sparkle::vulkan {
namespace {

constexpr int64_t kMostGroups = 65535;  // along z on every device
constexpr int kReduceThreads = 64;

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

// A workgroup of so many threads in a row.
std::vector<uint32_t> group_of(int threads) { return {static_cast<uint32_t>(threads), 1, 1}; }

// What goes out in one dispatch, over as many as the instances need.
struct Work {
  const Pipeline* pipeline = nullptr;
  std::array<uint32_t, 3> groups{1, 1, 1};
  std::array<Address, 7> operands;
  std::span<const Address> behind;  // the post-op's, where the pipeline has it
  int64_t parts = 1, steps = 0;
  int64_t parts_along_z = 1;  // of groups: the reduction reads parts, but is none
  bool after_previous = true;
};

void add_work(VulkanKernel& kernel, const Work& work, VkDeviceAddress record, int64_t instances) {
  const int64_t most = kMostGroups / work.parts_along_z;
  for (int64_t first = 0; first < instances; first += most) {
    Dispatch d;
    d.pipeline = work.pipeline;
    d.groups = work.groups;
    d.groups[2] = static_cast<uint32_t>(std::min(instances - first, most) * work.parts_along_z);
    d.addresses.assign(work.operands.begin(), work.operands.end());
    d.addresses.insert(d.addresses.end(), work.behind.begin(), work.behind.end());
    d.push(record);
    d.push(static_cast<int32_t>(first));
    d.push(static_cast<int32_t>(work.parts));
    d.push(static_cast<int32_t>(work.steps));
    d.after_previous = first == 0 && work.after_previous;
    kernel.dispatches.push_back(std::move(d));
  }
}

// One output a thread.
std::array<uint32_t, 3> groups_of_outputs(const GemmRecord& g, int threads) {
  return groups_of_threads(int64_t{g.m} * g.n, threads);
}

}  // namespace

Result<PackedProduct> packed_product(const GemmRecord& record, const TileSchedule& tile) {
  PackedProduct p;
  p.record = record;
  p.record.set_divisors();
  p.record.n_padded = static_cast<int32_t>(round_up(record.n, tile.n));
  p.k_padded = round_up(record.k, tile.k);
  for (int i = 3; i >= 0; --i) {
    if (record.w_instance[i] == 0) continue;
    p.record.packed_instance[i] = static_cast<int32_t>(p.matrices * p.k_padded * p.record.n_padded);
    p.matrices *= record.instances[i];
  }
  if (p.elements() > std::numeric_limits<int32_t>::max())
    return Error{Reason::layout_not_served, "The weights span more than 2^31 elements; use --device cpu."};
  return p;
}

Status add_product(VulkanKernel& kernel, const Workshop& shop, const Product& p) {
  using enum GemmConstant;
  const GemmRecord& g = p.record;
  const TileSchedule& tile = p.tile;
  const int64_t instances = int64_t{1} * g.instances[0] * g.instances[1] * g.instances[2] * g.instances[3];
  SPARKLE_TRY(record, upload_with(shop, &g, sizeof g, p.post_op));
  kernel.records.push_back(record);
  Work work;
  work.operands = p.operands;
  PipelineRequest request;
  const auto finish = [&](PipelineRequest& finishing) {
    if (p.post_op.there()) finishing.post_op = &p.post_op.text, work.behind = p.post_op.operands;
  };
  if (tile.variant == "naive" || tile.variant == "groups") {
    const std::string shader = shader_for("gemm_naive", p.fp16);
    request.shader = shader;
    request.constants = group_of(tile.m);
    set(request, p.epilogue);
    finish(request);
    SPARKLE_TRY(pipeline, shop.pipelines->get(request));
    work.pipeline = pipeline;
    work.groups = groups_of_outputs(g, tile.m);
    add_work(kernel, work, record->address(), instances);
    return ok();
  }

  if (tile.variant == "halo" || tile.variant == "fours" || tile.variant == "several") {
    const bool halo = tile.variant == "halo";
    const std::string shader = shader_for(halo ? "gemm_halo" : "gemm_direct", p.fp16);
    request.shader = shader;
    request.constants = group_of(tile_needs(tile).threads);
    set(request, p.epilogue);
    finish(request);
    if (halo)
      set(request, {{kSide, kHaloSide},
                    {kFilters, tile.n},
                    {kChannels, tile.k},
                    {kReachH, (g.filter_size[1] - 1) * g.dilation[1] + 1},
                    {kReachW, (g.filter_size[2] - 1) * g.dilation[2] + 1},
                    {kStrideR, g.stride[1]},
                    {kStrideS, g.stride[2]}});
    else
      set(request, {{kM, tile.m},
                    {kN, tile.n},
                    {kThreadM, tile.thread_m},
                    {kThreadN, tile.thread_n},
                    {kVectors, p.vectors},
                    {kPacked, p.packed}});
    SPARKLE_TRY(pipeline, shop.pipelines->get(request));
    work.pipeline = pipeline;
    const int64_t squares = int64_t{g.rows[0]} * groups_for(g.rows[2], kHaloSide) * groups_for(g.rows[3], kHaloSide);
    work.groups = flat_groups((halo ? squares : groups_for(g.m, tile.m)) * groups_for(g.n, tile.n));
    add_work(kernel, work, record->address(), instances);
    return ok();
  }

  const bool fragments = on_fragments(tile), emulated = is_emulated(tile.unit), group = of_groups(tile);
  // Parts are whole steps of the tile; so many as there is work for.
  work.steps = round_up((g.k + tile.split - 1) / std::max(1, tile.split), tile.k);
  work.parts = std::max<int64_t>(1, (g.k + work.steps - 1) / std::max<int64_t>(1, work.steps));
  work.parts_along_z = work.parts;
  const bool partial = work.parts > 1;
  const TileNeeds needs = tile_needs(tile);
  const std::string shader = shader_for(p.complex                     ? "gemm_tile_complex"
                                        : tile.variant == "half_sums" ? "gemm_tile_short"
                                        : !fragments                  ? "gemm_tile"
                                        : emulated                    ? "gemm_cooperative_emulated"
                                        : group                       ? "gemm_cooperative_group"
                                                                      : "gemm_cooperative",
                                        p.fp16);
  request.shader = shader;
  request.subgroup = emulated || group ? 0 : static_cast<uint32_t>(tile.subgroup);
  request.constants = group_of(needs.threads);
  set(request, partial ? Epilogue{} : p.epilogue);
  if (!partial) finish(request);
  set(request, {{kM, tile.m},
                {kN, tile.n},
                {kK, tile.k},
                {kThreadM, tile.thread_m},
                {kThreadN, tile.thread_n},
                {kVectors, p.vectors},
                {kPacked, p.packed},
                {kStoreVectors, p.stores && !partial},
                {kFilterT, g.filter_size[0]},
                {kFilterR, g.filter_size[1]},
                {kFilterS, g.filter_size[2]},
                {kStrideT, g.stride[0]},
                {kStrideR, g.stride[1]},
                {kStrideS, g.stride[2]},
                {kPad, tile.pad},
                {kUnroll, tile.unroll},
                {kPartial, partial}});
  if (fragments) {
    const Fragment f = fragment_of(tile);
    set(request, {{kSubgroup, tile.subgroup}, {kFragmentM, f.m}, {kFragmentN, f.n}, {kFragmentK, f.k}});
  } else if (tile.depth < 2 || p.scalar) {
    // Ablations: no plan has a schedule of one tile in flight, or of single numbers.
    set(request, {{kAhead, tile.depth >= 2}, {kVec4, !p.scalar}});
  }
  SPARKLE_TRY(pipeline, shop.pipelines->get(request));
  work.pipeline = pipeline;
  work.groups = flat_groups(int64_t{groups_for(g.m, tile.m)} * groups_for(g.n, tile.n));
  const int64_t from = kernel.workspace;
  if (partial) {
    const int64_t elements = work.parts * instances * g.m * round_up(g.n, 4);
    if (elements > std::numeric_limits<int32_t>::max())
      return Error{Reason::layout_not_served, "The sums' parts span more than 2^31 elements; use a schedule without split."};
    kernel.workspace += elements * 4;
    work.operands[2] = {kWorkspace, from};
  }
  add_work(kernel, work, record->address(), instances);
  if (!partial) return ok();

  PipelineRequest reduce;
  const std::string adder = shader_for("gemm_reduce", p.fp16);
  reduce.shader = adder;
  reduce.constants = group_of(kReduceThreads);
  set(reduce, p.epilogue);
  finish(reduce);
  SPARKLE_TRY(adding, shop.pipelines->get(reduce));
  work.pipeline = adding;
  work.groups = groups_of_outputs(g, kReduceThreads);
  work.operands = p.operands;
  work.operands[1] = {kWorkspace, from};
  work.parts_along_z = 1;
  add_work(kernel, work, record->address(), instances);
  return ok();
}

}  // namespace sparkle::vulkan
