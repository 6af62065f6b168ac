// The pointwise family on Vulkan: programs printed to GLSL (pointwise_text.h) and compiled where they are new. Axes are merged
// where all operands pass from one to the next without a jump; what is left is read from a record.
#include <algorithm>

#include "backends/vulkan/shaders/glsl_compiler.h"
#include "backends/vulkan/kernels/elements/pointwise_text.h"
#include "backends/vulkan/kernels/rows/rows.h"
#include "families/pointwise/pointwise.h"

namespace sparkle::vulkan {
namespace {

constexpr uint32_t kThreads = 128;

// One axis of the loop nest: its size, and the stride of each operand along it.
struct Axis {
  int64_t size = 1;
  std::vector<int64_t> strides;
};

// Axes of more than one element, the output's outermost first, neighbours merged.
std::vector<Axis> merged_axes(const Stage& stage) {
  std::vector<const TensorDesc*> operands;
  for (const TensorDesc& x : stage.inputs) operands.push_back(&x);
  const TensorDesc& y = stage.outputs[0];
  operands.push_back(&y);
  std::vector<Axis> axes;
  for (int i = 0; i < y.shape.size(); ++i) {
    if (y.shape[i] == 1) continue;
    Axis axis{y.shape[i], {}};
    for (const TensorDesc* d : operands) axis.strides.push_back(d->layout.strides[i]);
    axes.push_back(std::move(axis));
  }
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis& a, const Axis& b) { return std::abs(a.strides.back()) > std::abs(b.strides.back()); });
  for (size_t i = axes.size(); i-- > 1;) {
    Axis &outer = axes[i - 1], &inner = axes[i];
    bool whole = true;
    for (size_t k = 0; k < operands.size(); ++k) whole = whole && outer.strides[k] == inner.strides[k] * inner.size;
    if (!whole) continue;
    inner.size *= outer.size;
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i) - 1);
  }
  if (axes.empty()) axes.push_back({1, std::vector<int64_t>(operands.size(), 0)});
  return axes;
}

// Whether four neighbours of each operand are one aligned load, or one element.
bool in_vec4(const Stage& stage, const std::vector<Axis>& axes) {
  for (size_t k = 0; k <= stage.inputs.size(); ++k) {
    const bool output = k == stage.inputs.size();
    const TensorDesc& d = output ? stage.outputs[0] : stage.inputs[k];
    const int64_t inner = axes.back().strides[k];
    if (inner == 0 && !output) continue;
    if (inner != 1 || d.layout.offset % 4 != 0) return false;
    for (size_t a = 0; a + 1 < axes.size(); ++a)
      if (axes[a].strides[k] % 4 != 0) return false;
  }
  return true;
}

void append_divisor(std::vector<uint32_t>& words, uint32_t by) {
  const auto divisor = divisor_of(by);
  words.insert(words.end(), divisor.begin(), divisor.end());
}

}  // namespace

Result<VulkanKernelPtr> make_pointwise(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "printed")
    return Error{Reason::backend_lacks_variant, "the Vulkan pointwise kernels have no variant '" + variant_of(schedule) + "'"};
  const auto& params = get<PointwiseParams>(stage.params);
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (stage.outputs[0].elements() == 0) return kernel;
  if (stage.inputs.size() > static_cast<size_t>(kPointwiseOperands))
    return Error{Reason::layout_not_served, "the Vulkan pointwise kernels read up to 12 operands"};
  std::vector<DType> types;
  for (const TensorDesc& d : stage.inputs) types.push_back(d.dtype);
  const Features& features = shop.context->features();
  const FloatPromises promises{features.keeps_nan, features.exact_f16, features.f64};
  SPARKLE_TRY(text, pointwise_text(params, types, stage.outputs[0].dtype, promises));

  const std::vector<Axis> axes = merged_axes(stage);
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& d : *list)
      if (extent(d.shape, d.layout) > INT32_MAX || d.elements() > INT32_MAX)
        return Error{Reason::layout_not_served,
                     "the Vulkan kernels count elements in 31 bits, and an operand spans more; split the batch"};
  if (axes.size() > static_cast<size_t>(kPointwiseAxes) + 1)
    return Error{Reason::layout_not_served, "the Vulkan pointwise kernels support up to 8 axes"};

  const bool vectors = in_vec4(stage, axes);
  const int64_t steps = vectors ? (axes.back().size + 3) / 4 : axes.back().size;
  int64_t threads = steps;
  for (size_t a = 0; a + 1 < axes.size(); ++a) threads *= axes[a].size;
  const size_t operands = stage.inputs.size() + 1;
  std::vector<uint32_t> record{static_cast<uint32_t>(threads), static_cast<uint32_t>(axes.size() - 1),
                               static_cast<uint32_t>(axes.back().size)};
  append_divisor(record, static_cast<uint32_t>(steps));
  for (int i = 1; i <= kPointwiseAxes; ++i) {
    const bool there = static_cast<size_t>(i) < axes.size();
    append_divisor(record, there ? static_cast<uint32_t>(axes[axes.size() - 1 - static_cast<size_t>(i)].size) : 1);
  }
  for (const int64_t p : axes.back().strides) record.push_back(static_cast<uint32_t>(p));
  for (size_t i = 0; i <= static_cast<size_t>(kPointwiseAxes); ++i)
    for (size_t k = 0; k < operands; ++k)
      record.push_back(i > 0 && i < axes.size() ? static_cast<uint32_t>(axes[axes.size() - 1 - i].strides[k]) : 0);
  record.insert(record.end(), text.parameters.begin(), text.parameters.end());

  SPARKLE_TRY(words, compile_glsl(text.glsl));
  const SpecializationConstant constants[] = {{0, kThreads}, {1, 1}, {2, 1}, {3, vectors}};
  std::string name = "pointwise " + expression(params) + " " + std::to_string(std::hash<std::string>{}(text.glsl));
  SPARKLE_TRY(pipeline, shop.pipelines->get(name, *words, constants, 0));
  SPARKLE_TRY(buffer, shop.upload(record.data(), static_cast<int64_t>(record.size()) * 4));
  Dispatch d;
  d.pipeline = pipeline;
  d.groups = groups_of_threads(threads, kThreads);
  for (size_t k = 0; k < operands; ++k) d.addresses.push_back({static_cast<int>(k)});
  d.push(buffer->address());
  kernel->dispatches.push_back(std::move(d));
  kernel->records.push_back(std::move(buffer));
  return kernel;
}

}  // namespace sparkle::vulkan
