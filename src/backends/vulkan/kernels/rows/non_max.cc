// The non_max family on Vulkan: each class of each image picks its boxes, then rows are laid one behind the other.
#include "families/non_max/non_max.h"
#include "families/non_max/non_max_gpu.h"

#include "backends/vulkan/kernels/vulkan_kernel.h"

namespace sparkle::vulkan {
namespace {

constexpr auto kThreads = static_cast<uint32_t>(kNonMaxThreads);

// As in glsl/non_max.glsl.
struct NonMaxRecord {
  uint32_t tasks, classes, boxes, most, rows, words;
  uint32_t kept, out_at;
  float overlap, threshold;
  int32_t box[3], score[3], row[2];
};

void put_strides(const TensorDesc& desc, int32_t* to) {
  for (int i = 0; i < desc.shape.size(); ++i) to[i] = static_cast<int32_t>(desc.layout.strides[i]);
}

}  // namespace

Result<VulkanKernelPtr> make_non_max(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "groups")
    return Error{Reason::backend_lacks_variant, "the Vulkan backend has no non_max variant '" + variant_of(schedule) + "'"};
  const auto& p = get<NonMaxParams>(stage.params);
  const TensorDesc &boxes = stage.inputs[0], &scores = stage.inputs[1], &rows = stage.outputs[0];
  for (const TensorDesc* d : {&boxes, &scores})
    if (d->dtype != DType::f32) return Error{Reason::type_not_served, "boxes and scores are f32"};
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (rows.elements() == 0) return kernel;
  const NonMaxOffsets offsets = non_max_offsets(stage);
  if (offsets.end > INT32_MAX || std::max(extent(boxes.shape, boxes.layout), extent(scores.shape, scores.layout)) > INT32_MAX ||
      extent(rows.shape, rows.layout) > INT32_MAX / 2)
    return Error{Reason::layout_not_served,
                 "the Vulkan kernels count elements in 31 bits, and an operand spans more; split the batch"};
  NonMaxRecord r{};
  r.tasks = static_cast<uint32_t>(offsets.tasks), r.classes = static_cast<uint32_t>(std::max<int64_t>(1, scores.shape[1]));
  r.boxes = static_cast<uint32_t>(scores.shape[2]), r.most = static_cast<uint32_t>(offsets.most);
  r.rows = static_cast<uint32_t>(rows.shape[0]), r.words = static_cast<uint32_t>(offsets.words);
  r.kept = static_cast<uint32_t>(offsets.kept), r.out_at = static_cast<uint32_t>(offsets.out);
  r.overlap = static_cast<float>(p.overlap), r.threshold = static_cast<float>(p.threshold);
  put_strides(boxes, r.box), put_strides(scores, r.score), put_strides(rows, r.row);
  kernel->workspace = 4 * offsets.end;
  SPARKLE_TRY(record, shop.upload(&r, sizeof r));
  const auto add = [&](const char* shader, std::vector<uint32_t> constants, std::array<uint32_t, 3> groups) -> Status {
    PipelineRequest request;
    request.shader = shader;
    request.constants = {kThreads, 1, 1};
    request.constants.insert(request.constants.end(), constants.begin(), constants.end());
    SPARKLE_TRY(pipeline, shop.pipelines->get(request));
    Dispatch d;
    d.pipeline = pipeline;
    d.groups = groups;
    d.addresses = {{0}, {1}, {2}, {kWorkspace}};
    d.push(record->address());
    kernel->dispatches.push_back(std::move(d));
    return ok();
  };
  if (offsets.tasks > 0) SPARKLE_CHECK(add("non_max_pick", {p.centers, p.has_threshold}, flat_groups(offsets.tasks)));
  SPARKLE_CHECK(add("non_max_starts", {}, {1, 1, 1}));
  SPARKLE_CHECK(add("non_max_rows", {}, groups_of_threads(std::max(offsets.tasks * offsets.most, rows.shape[0]), kThreads)));
  kernel->records.push_back(std::move(record));
  return kernel;
}

}  // namespace sparkle::vulkan
