// The attention family on CUDA: a block for each query.
#include "families/attention/attention.h"

#include "backends/cuda/kernels/rows/attention_record.h"
#include "backends/cuda/stages/moves.h"

namespace sparkle::cuda {

Result<CudaKernelPtr> make_attention(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "queries")
    return Error{Reason::backend_lacks_variant, "the CUDA backend has no attention variant '" + variant_of(schedule) + "'"};
  auto kernel = std::make_unique<CudaKernel>(stage);
  if (stage.outputs[0].elements() == 0) return kernel;
  const auto& p = get<AttentionParams>(stage.params);
  const int inputs = static_cast<int>(stage.inputs.size());
  int operands[kAttentionOperands] = {
      0, 1, 2, mask_operand(p), lengths_operand(p), inputs, p.scores == ScoreOutput::none ? -1 : inputs + 1};
  const Dims& q = stage.inputs[0].shape;
  const int rank = q.size();
  if (rank - 2 > kAttentionAxes)
    return Error{Reason::layout_not_served, "the CUDA attention kernels support up to 6 batch axes"};
  AttentionRecord r;
  r.axes = rank - 2;
  int64_t batches = 1;
  for (int i = 0; i < rank - 2; ++i) r.size[i] = divisor_of(q[i]), batches *= q[i];
  for (size_t o = 0; o < kAttentionOperands; ++o) {
    if (operands[o] < 0) continue;
    const auto number = static_cast<size_t>(operands[o]);
    const TensorDesc& d = operands[o] < inputs ? stage.inputs[number] : stage.outputs[number - stage.inputs.size()];
    if (extent(d.shape, d.layout) > INT32_MAX) return too_far("attention");
    r.type[o] = static_cast<uint8_t>(d.dtype);
    for (int i = 0; i < rank - 2; ++i) r.batch_strides[i][o] = static_cast<int32_t>(d.layout.strides[i]);
    if (o == kLengths) continue;
    r.row_strides[o] = static_cast<int32_t>(d.layout.strides[rank - 2]);
    r.column_strides[o] = static_cast<int32_t>(d.layout.strides[rank - 1]);
  }
  r.queries = divisor_of(q[rank - 2]);
  r.keys = static_cast<int32_t>(stage.inputs[1].shape[rank - 2]), r.depth = static_cast<int32_t>(q[rank - 1]);
  r.columns = static_cast<int32_t>(stage.inputs[2].shape[rank - 1]);
  if (p.mask) r.mask_keys = static_cast<int32_t>(stage.inputs[static_cast<size_t>(operands[kMask])].shape[rank - 1]);
  const auto bounded = [](int64_t v) { return static_cast<int32_t>(std::clamp<int64_t>(v, -(1 << 29), 1 << 29)); };
  r.scale = static_cast<float>(p.scale), r.softcap = static_cast<float>(p.softcap);
  r.left = bounded(p.left), r.right = bounded(p.right), r.offset = bounded(p.offset);
  r.offset_from_length = p.offset_from_length, r.unseen_is_nan = p.unseen_is_nan;
  r.scores = static_cast<uint8_t>(p.scores);
  SPARKLE_TRY(launch, launch_of(shop, "sparkle_attention_queries", r, blocks_for(batches * q[rank - 2], 1), kAttentionThreads,
                                4 * (int64_t{kAttentionThreads} + r.depth + r.keys)));
  for (size_t o = 0; o < kAttentionOperands; ++o)
    if (operands[o] >= 0) launch.addresses.push_back({offsetof(AttentionRecord, at) + o * sizeof(void*), operands[o], 0});
  kernel->launches.push_back(std::move(launch));
  return kernel;
}

}  // namespace sparkle::cuda
