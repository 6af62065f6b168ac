// CpuKernel: a Stage compiled for the CPU. One file per family makes them; cpu_families.h lists the makers.
#pragma once

#include "backends/backend.h"

namespace sparkle::cpu {

struct CpuLaunch {
  // Start of each operand's element (0,...,0): layout offset and binding already added. Packed operands: start of the packing.
  std::span<std::byte* const> inputs, outputs;
  std::byte* workspace = nullptr;  // 64-byte aligned, workspace_bytes() long, not initialised
  Executor* executor = nullptr;
};

class CpuKernel : public Kernel {
 public:
  virtual void run(const CpuLaunch& launch) const = 0;
};

using CpuKernelPtr = std::unique_ptr<CpuKernel>;

// Makers, one per family: constants as in Backend::compile. Errors: backend_lacks_variant, layout_not_served, type_not_served.
Result<CpuKernelPtr> make_gemm(const Stage&, const Schedule&, const Device&, uint32_t constants);
Result<CpuKernelPtr> make_depthwise(const Stage&, const Schedule&, const Device&, uint32_t constants);
Result<CpuKernelPtr> make_pool(const Stage&, const Schedule&, const Device&, uint32_t constants);
Result<CpuKernelPtr> make_pointwise(const Stage&, const Schedule&, const Device&, uint32_t constants);
Result<CpuKernelPtr> make_reduce(const Stage&, const Schedule&, const Device&, uint32_t constants);
Result<CpuKernelPtr> make_softmax(const Stage&, const Schedule&, const Device&, uint32_t constants);
Result<CpuKernelPtr> make_normalize(const Stage&, const Schedule&, const Device&, uint32_t constants);
Result<CpuKernelPtr> make_copy(const Stage&, const Schedule&, const Device&, uint32_t constants);
Result<CpuKernelPtr> make_pad(const Stage&, const Schedule&, const Device&, uint32_t constants);
Result<CpuKernelPtr> make_resize(const Stage&, const Schedule&, const Device&, uint32_t constants);
Result<CpuKernelPtr> make_gather(const Stage&, const Schedule&, const Device&, uint32_t constants);
Result<CpuKernelPtr> make_scatter(const Stage&, const Schedule&, const Device&, uint32_t constants);
Result<CpuKernelPtr> make_top_k(const Stage&, const Schedule&, const Device&, uint32_t constants);
Result<CpuKernelPtr> make_scan(const Stage&, const Schedule&, const Device&, uint32_t constants);
Result<CpuKernelPtr> make_triangle(const Stage&, const Schedule&, const Device&, uint32_t constants);
Result<CpuKernelPtr> make_non_max(const Stage&, const Schedule&, const Device&, uint32_t constants);
Result<CpuKernelPtr> make_attention(const Stage&, const Schedule&, const Device&, uint32_t constants);
Result<CpuKernelPtr> make_rotary(const Stage&, const Schedule&, const Device&, uint32_t constants);
Result<CpuKernelPtr> make_sample(const Stage&, const Schedule&, const Device&, uint32_t constants);
Result<CpuKernelPtr> make_deform(const Stage&, const Schedule&, const Device&, uint32_t constants);
Result<CpuKernelPtr> make_quantize(const Stage&, const Schedule&, const Device&, uint32_t constants);
Result<CpuKernelPtr> make_winograd(const Stage&, const Schedule&, const Device&, uint32_t constants);
Result<CpuKernelPtr> make_grouped(const Stage&, const Schedule&, const Device&, uint32_t constants);
Result<CpuKernelPtr> make_fft(const Stage&, const Schedule&, const Device&, uint32_t constants);
// Any family by its plain reference loops: the variant "plain", named as such in every plan.
Result<CpuKernelPtr> make_plain(const Stage&, const Schedule&, const Device&, uint32_t constants);

}  // namespace sparkle::cpu
