// The attention family on CUDA: a block for each query, or for each block of queries.
#include "families/attention/attention.h"

#include <cmath>

#include "backends/cuda/kernels/attention/attention_record.h"
#include "backends/cuda/stages/moves/moves.h"
#include "families/attention/attention_flash.h"

namespace sparkle::cuda {
namespace {

const TensorDesc& operand_of(const Stage& stage, int number) {
  const auto i = static_cast<size_t>(number);
  return i < stage.inputs.size() ? stage.inputs[i] : stage.outputs[i - stage.inputs.size()];
}

Result<AttentionRecord> record_of(const Stage& stage, const int (&operands)[kAttentionOperands]) {
  const auto& p = get<AttentionParams>(stage.params);
  const Dims& q = stage.inputs[0].shape;
  const int rank = q.size();
  if (rank - 2 > kAttentionAxes)
    return Error{Reason::layout_not_served, "the CUDA attention kernels support up to 6 batch axes"};
  AttentionRecord r;
  r.axes = rank - 2;
  for (int i = 0; i < rank - 2; ++i) r.size[i] = divisor_of(q[i]);
  for (size_t o = 0; o < kAttentionOperands; ++o) {
    if (operands[o] < 0) continue;
    const TensorDesc& d = operand_of(stage, operands[o]);
    if (extent(d.shape, d.layout) > INT32_MAX) return too_far("attention");
    r.type[o] = static_cast<uint8_t>(d.dtype);
    for (int i = 0; i < rank - 2; ++i) r.batch_strides[i][o] = static_cast<int32_t>(d.layout.strides[i]);
    if (o == kLengths) continue;
    r.row_strides[o] = static_cast<int32_t>(d.layout.strides[rank - 2]);
    r.column_strides[o] = static_cast<int32_t>(d.layout.strides[rank - 1]);
    r.in_chunks[o] = in_chunks(d);
  }
  r.queries = divisor_of(q[rank - 2]);
  r.keys = static_cast<int32_t>(stage.inputs[1].shape[rank - 2]), r.depth = static_cast<int32_t>(q[rank - 1]);
  r.columns = static_cast<int32_t>(stage.inputs[2].shape[rank - 1]);
  if (p.mask) r.mask_keys = static_cast<int32_t>(operand_of(stage, operands[kMask]).shape[rank - 1]);
  const auto bounded = [](int64_t v) { return static_cast<int32_t>(std::clamp<int64_t>(v, -(1 << 29), 1 << 29)); };
  r.scale = static_cast<float>(p.scale), r.softcap = static_cast<float>(p.softcap);
  r.left = bounded(p.left), r.right = bounded(p.right), r.offset = bounded(p.offset);
  r.offset_from_length = p.offset_from_length, r.unseen_is_nan = p.unseen_is_nan;
  r.scores = static_cast<uint8_t>(p.scores);
  // Exponentials are powers of two. A scale that is not above zero and finite would turn what is hidden into what is seen.
  constexpr double kLog2E = 1.4426950408889634;
  const bool added = p.mask && operand_of(stage, operands[kMask]).dtype != DType::boolean;
  const auto factor = static_cast<float>(p.scale * kLog2E);
  r.is_linear = p.softcap <= 0 && !added && std::isnormal(factor) && factor > 0;
  r.factor = r.is_linear ? factor : static_cast<float>(kLog2E);
  return r;
}

}  // namespace

Result<CudaKernelPtr> make_attention(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  const std::string& variant = variant_of(schedule);
  if (variant != "queries" && variant != "flash" && variant != "flash_fma")
    return Error{Reason::backend_lacks_variant, "the CUDA backend has no attention variant '" + variant + "'"};
  const auto flash = flash_tile(stage, schedule);
  if (!flash && variant != "queries")
    return Error{Reason::layout_not_served,
                 "the CUDA attention variant '" + variant + "' has no kernel for blocks of these sizes"};
  auto kernel = std::make_unique<CudaKernel>(stage);
  if (stage.outputs[0].elements() == 0) return kernel;
  const auto& p = get<AttentionParams>(stage.params);
  const int inputs = static_cast<int>(stage.inputs.size());
  const int operands[kAttentionOperands] = {
      0, 1, 2, mask_operand(p), lengths_operand(p), inputs, p.scores == ScoreOutput::none ? -1 : inputs + 1};
  SPARKLE_TRY(r, record_of(stage, operands));
  const Dims& q = stage.inputs[0].shape;
  int64_t batches = 1;
  for (int i = 0; i < q.size() - 2; ++i) batches *= q[i];
  int64_t blocks = batches * q[q.size() - 2], shared = 4 * (int64_t{kAttentionThreads} + r.depth + r.keys);
  std::string name = "sparkle_attention_queries";
  unsigned threads = kAttentionThreads;
  if (flash) {
    r.blocks = divisor_of(divided(q[q.size() - 2], flash->queries));
    blocks = batches * r.blocks.size, shared = flash->shared_bytes, threads = static_cast<unsigned>(flash->threads);
    name = "sparkle_" + flash->kernel;
  }
  SPARKLE_TRY(launch, launch_of(shop, name, r, blocks_for(blocks, 1), threads, shared));
  for (size_t o = 0; o < kAttentionOperands; ++o)
    if (operands[o] >= 0) launch.addresses.push_back({offsetof(AttentionRecord, at) + o * sizeof(void*), operands[o], 0});
  kernel->launches.push_back(std::move(launch));
  return kernel;
}

}  // namespace sparkle::cuda
