#include "run/opening/kernel_sources.h"

#ifdef SPARKLE_WITH_VULKAN
#include "backends/vulkan/sources.h"
#endif
#ifdef SPARKLE_WITH_CUDA
#include "backends/cuda/sources.h"
#include "families/gemm/cuda/cuda_tiles.h"
#endif

namespace sparkle {
namespace {

std::string times(uint32_t a, uint32_t b, uint32_t c) {
  return std::to_string(a) + " x " + std::to_string(b) + " x " + std::to_string(c);
}

#ifdef SPARKLE_WITH_VULKAN
Result<std::string> of_vulkan(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t constants) {
  SPARKLE_TRY(sources, vulkan::sources_of(stage, schedule, device, constants));
  std::string text;
  for (const vulkan::KernelSource& s : sources) {
    text += "  shader " + s.shader + ": workgroups of " + times(s.group[0], s.group[1], s.group[2]);
    if (s.subgroup > 0) text += ", subgroups of " + std::to_string(s.subgroup);
    text += "\n";
    for (const auto& constant : s.constants) text += "    " + constant.name + " = " + std::to_string(constant.value) + "\n";
    if (!s.program.empty()) text += s.program + (s.program.ends_with('\n') ? "" : "\n");
  }
  return text;
}
#endif

#ifdef SPARKLE_WITH_CUDA
// The tile that a kernel of products was compiled for.
std::string tile_text(const cuda::KernelLaunch& launch, const Schedule& schedule) {
  const auto* s = get_if<TileSchedule>(&schedule);
  const CudaTile* t = s && is_cuda_product(s->variant) && launch.kernel.starts_with("sparkle_gemm_") ? cuda_tile(*s) : nullptr;
  if (!t) return {};
  return "    compiled for tiles of " + std::to_string(t->m) + " x " + std::to_string(t->n) + " sums, " + std::to_string(s->k) +
         " of k a step, " + std::to_string(t->stages) + (t->stages == 1 ? " step" : " steps") +
         " in shared memory, products of " + std::to_string(t->part_m) + " x " + std::to_string(t->part_n) + " by " + s->unit +
         "\n";
}

Result<std::string> of_cuda(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t constants) {
  SPARKLE_TRY(launches, cuda::launches_of(stage, schedule, device, constants));
  std::string text;
  for (const cuda::KernelLaunch& l : launches) {
    text += "  kernel " + l.kernel + ": " + times(l.grid[0], l.grid[1], l.grid[2]) + " blocks of " + std::to_string(l.threads) +
            " threads";
    if (l.cluster[0] > 1) text += ", clusters of " + std::to_string(l.cluster[0]);
    if (l.shared_bytes > 0) text += ", " + std::to_string(l.shared_bytes) + " bytes of shared memory";
    text +=
        ", a record of " + std::to_string(l.record.size()) + " bytes\n" + tile_text(l, schedule) + cuda::words_of(l) + l.text;
  }
  return text;
}
#endif

}  // namespace

Result<std::string> kernel_sources(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t constants) {
#ifdef SPARKLE_WITH_VULKAN
  if (device.kind == DeviceKind::vulkan) return of_vulkan(stage, schedule, device, constants);
#endif
#ifdef SPARKLE_WITH_CUDA
  if (device.kind == DeviceKind::cuda) return of_cuda(stage, schedule, device, constants);
#endif
  (void)stage, (void)schedule, (void)constants;
  return Error{Reason::no_kernel, "What a GPU would be given is known for GPUs of this build's backends, and '" + device.name +
                                      "' is none of these; name one with --device."};
}

}  // namespace sparkle
