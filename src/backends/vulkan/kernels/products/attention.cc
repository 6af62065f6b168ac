// The attention family on Vulkan: blocks of queries over blocks of keys (glsl/attention.comp), scores that are asked for found
// once more by a dispatch of their own; or each query's keys in parts for a workgroup each (glsl/attention_split.comp).
#include <algorithm>
#include <limits>

#include "backends/vulkan/kernels/real_types.h"
#include "families/attention/attention.h"

namespace sparkle::vulkan {
namespace {

constexpr int kBatchAxes = 6;
constexpr uint32_t kMostGroups = 65535;  // along y and z on every device
constexpr int64_t kQueries = 32, kKeys = 32, kColumns = 64;

// glsl/attention.comp has the same record, and says what the fields are.
struct AttentionRecord {
  int32_t queries, keys, size, columns, mask_keys, lengths, left, right, offset, offset_from_length;
  float scale, cap, unseen;
  int32_t batch_sizes[kBatchAxes];
  int32_t batch_strides[kBatchAxes][7];
  int32_t strides[6][2];
};

// Bounds beyond any number of keys are all the same.
int32_t bounded(int64_t value) { return static_cast<int32_t>(std::clamp<int64_t>(value, -(1 << 29), 1 << 29)); }

Result<AttentionRecord> record_of(const Stage& stage) {
  const auto& p = get<AttentionParams>(stage.params);
  const TensorDesc &q = stage.inputs[0], &k = stage.inputs[1], &v = stage.inputs[2], &y = stage.outputs[0];
  const TensorDesc* mask = p.mask ? &stage.inputs[static_cast<size_t>(mask_operand(p))] : nullptr;
  const TensorDesc* lengths = p.lengths ? &stage.inputs[static_cast<size_t>(lengths_operand(p))] : nullptr;
  const TensorDesc* scores = p.scores != ScoreOutput::none ? &stage.outputs[1] : nullptr;
  const int rank = q.shape.size(), batches = rank - 2;
  const TensorDesc* const matrices[] = {&q, &k, &v, mask, &y, scores};
  const TensorDesc* const operands[] = {&q, &k, &v, mask, lengths, &y, scores};
  for (const TensorDesc* d : operands)
    if (d && extent(d->shape, d->layout) > INT32_MAX)
      return Error{Reason::layout_not_served,
                   "the Vulkan kernels count elements in 31 bits, and an operand spans more; split the batch"};
  if (batches > kBatchAxes) return Error{Reason::layout_not_served, "the Vulkan attention kernels support up to 6 batch axes"};
  AttentionRecord r{};
  r.queries = static_cast<int32_t>(q.shape[rank - 2]);
  r.keys = static_cast<int32_t>(k.shape[rank - 2]);
  r.size = static_cast<int32_t>(q.shape[rank - 1]);
  r.columns = static_cast<int32_t>(v.shape[rank - 1]);
  r.mask_keys = mask ? static_cast<int32_t>(mask->shape[rank - 1]) : -1;
  r.lengths = lengths != nullptr;
  r.left = p.left < 0 ? -1 : bounded(p.left);
  r.right = p.right < 0 ? -1 : bounded(p.right);
  r.offset = bounded(p.offset);
  r.offset_from_length = p.offset_from_length;
  r.scale = static_cast<float>(p.scale);
  r.cap = static_cast<float>(p.softcap);
  r.unseen = p.unseen_is_nan ? std::numeric_limits<float>::quiet_NaN() : 0.0f;
  for (int i = 0; i < kBatchAxes; ++i) {
    const int axis = batches - 1 - i;
    r.batch_sizes[i] = axis < 0 ? 1 : static_cast<int32_t>(q.shape[axis]);
    for (int o = 0; o < 7; ++o)
      r.batch_strides[i][o] = axis < 0 || !operands[o] ? 0 : static_cast<int32_t>(operands[o]->layout.strides[axis]);
  }
  for (int o = 0; o < 6; ++o)
    for (int i = 0; i < 2; ++i)
      r.strides[o][i] = matrices[o] ? static_cast<int32_t>(matrices[o]->layout.strides[rank - 2 + i]) : 0;
  return r;
}

// Dispatches of a workgroup for each query and `part_keys` of its keys, and of those that join them.
Status add_split(VulkanKernel& kernel, const Workshop& shop, const AttentionRecord& record, bool bytes, bool fp16,
                 int64_t batches, int64_t part_keys, VkDeviceAddress at) {
  constexpr int64_t kBlock = 64, kMostParts = 128;
  const Stage& stage = kernel.stage;
  const auto& p = get<AttentionParams>(stage.params);
  if (p.scores != ScoreOutput::none)
    return Error{Reason::operator_not_served, "the attention variant 'split' gives no scores; use the variant blocks"};
  if (record.columns == 0) return ok();
  const auto up = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  // As asked for, in whole blocks, and no more parts than a workgroup joins.
  part_keys = up(std::max({part_keys, up(record.keys, kMostParts), int64_t{1}}), kBlock) * kBlock;
  const int64_t parts = std::max<int64_t>(1, up(record.keys, part_keys)), lines = batches * record.queries;
  const int64_t columns = record.columns <= 32 ? 32 : record.columns <= 64 ? 64 : 128, along_y = up(record.columns, columns);
  const int64_t elements = lines * parts * (record.columns + 2);
  if (elements > INT32_MAX || record.queries * parts > kMostGroups || along_y > kMostGroups)
    return Error{Reason::layout_not_served, "the attention variant 'split' supports fewer queries; use the variant blocks"};
  kernel.workspace = 4 * elements;
  const std::string shader = shader_for(bytes ? "attention_split_bytes" : "attention_split", fp16);
  const int y = static_cast<int>(stage.inputs.size());
  for (const bool joins : {false, true}) {
    PipelineRequest request;
    request.shader = shader;
    request.constants = {128, 1, 1, 0, joins, static_cast<uint32_t>(columns)};
    SPARKLE_TRY(pipeline, shop.pipelines->get(request));
    for (int64_t first = 0; first < batches; first += kMostGroups) {
      Dispatch d;
      d.pipeline = pipeline;
      d.groups = {static_cast<uint32_t>(record.queries * (joins ? 1 : parts)), static_cast<uint32_t>(along_y),
                  static_cast<uint32_t>(std::min<int64_t>(batches - first, kMostGroups))};
      d.addresses = {{0}, {1}, {2}, {std::max(0, mask_operand(p))}, {std::max(0, lengths_operand(p))}, {y}, {y}, {kWorkspace}};
      d.push(at);
      d.push(static_cast<int32_t>(first));
      d.push(static_cast<int32_t>(parts));
      d.push(static_cast<int32_t>(part_keys));
      d.after_previous = first == 0;
      kernel.dispatches.push_back(std::move(d));
    }
  }
  return ok();
}

}  // namespace

Result<VulkanKernelPtr> make_attention(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  const bool split = variant_of(schedule) == "split";
  if (!split && variant_of(schedule) != "blocks")
    return Error{Reason::backend_lacks_variant, "the Vulkan attention kernels have no variant '" + variant_of(schedule) + "'"};
  const auto& p = get<AttentionParams>(stage.params);
  const bool bytes = p.mask && stage.inputs[static_cast<size_t>(mask_operand(p))].dtype == DType::boolean;
  uint32_t others = 0;
  if (bytes) others |= 1u << mask_operand(p);
  if (p.lengths) others |= 1u << lengths_operand(p);
  SPARKLE_TRY(fp16, in_fp16(stage, shop, others));
  if ((bytes && !shop.context->features().i8) ||
      (p.lengths && stage.inputs[static_cast<size_t>(lengths_operand(p))].dtype != DType::i64))
    return Error{Reason::type_not_served,
                 "the Vulkan attention kernels support masks of truth values on devices that store bytes, and lengths of i64"};
  SPARKLE_TRY(record, record_of(stage));
  auto kernel = std::make_unique<VulkanKernel>(stage);
  int64_t batches = 1;
  for (const int32_t size : record.batch_sizes) batches *= size;
  if (batches * record.queries == 0) return kernel;
  if (batches * record.queries > INT32_MAX / 2)
    return Error{Reason::layout_not_served, "the Vulkan attention kernels support up to 2^30 queries; split the batch"};
  SPARKLE_TRY(buffer, shop.upload(&record, sizeof record));
  if (split) {
    const auto* loop = get_if<LoopSchedule>(&schedule);
    SPARKLE_CHECK(add_split(*kernel, shop, record, bytes, fp16, batches, loop ? loop->grain : 0, buffer->address()));
    kernel->records.push_back(std::move(buffer));
    return kernel;
  }
  const int y = static_cast<int>(stage.inputs.size());
  const bool keep = p.scores == ScoreOutput::softmax;
  if (keep) kernel->workspace = 8 * batches * record.queries;
  const auto add = [&](uint32_t shown, bool keeps, int64_t columns, int64_t step) -> Status {
    if (columns == 0) return ok();
    const auto along_y = (columns + step - 1) / step;
    if (along_y > kMostGroups)
      return Error{Reason::layout_not_served, "the Vulkan attention kernels support up to 65535 blocks of keys or columns"};
    const std::string shader = shader_for(bytes ? "attention_bytes" : "attention", fp16);
    PipelineRequest request;
    request.shader = shader;
    request.constants = {128, 1, 1, shown, keeps};
    SPARKLE_TRY(pipeline, shop.pipelines->get(request));
    for (int64_t first = 0; first < batches; first += kMostGroups) {
      Dispatch d;
      d.pipeline = pipeline;
      d.groups = {groups_for(record.queries, kQueries), static_cast<uint32_t>(along_y),
                  static_cast<uint32_t>(std::min<int64_t>(batches - first, kMostGroups))};
      d.addresses = {{0},
                     {1},
                     {2},
                     {std::max(0, mask_operand(p))},
                     {std::max(0, lengths_operand(p))},
                     {y},
                     {p.scores != ScoreOutput::none ? y + 1 : y},
                     {keep ? kWorkspace : y}};
      d.push(buffer->address());
      d.push(static_cast<int32_t>(first));
      d.after_previous = shown != 0;
      kernel->dispatches.push_back(std::move(d));
    }
    return ok();
  };
  // Without columns of values there is still a sum to keep.
  SPARKLE_CHECK(add(0, keep, keep ? std::max(1, record.columns) : record.columns, kColumns));
  if (p.scores != ScoreOutput::none) SPARKLE_CHECK(add(static_cast<uint32_t>(p.scores), false, record.keys, kKeys));
  kernel->records.push_back(std::move(buffer));
  return kernel;
}

}  // namespace sparkle::vulkan
