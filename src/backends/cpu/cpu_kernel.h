// CpuKernel: a Stage compiled for the CPU. One file or folder per family makes them.
#pragma once

#include "backends/backend.h"
#include "base/round_up.h"

namespace sparkle::cpu {

struct CpuLaunch {
  // Start of each operand's element (0,...,0): layout offset and binding already added. Packed operands: start of the packing.
  std::span<std::byte* const> inputs, outputs;
  std::byte* workspace = nullptr;  // 64-byte aligned, workspace_bytes() long, not initialised
  Executor* executor = nullptr;
};

// Of a part of a workspace, so that the next one begins at a cache line too.
constexpr int64_t aligned(int64_t bytes) { return rounded_up(bytes, 64); }

class CpuKernel : public Kernel {
 public:
  virtual void run(const CpuLaunch& launch) const = 0;
};

using CpuKernelPtr = std::unique_ptr<CpuKernel>;

// Kernel factories, make_NAME of each family, which knows its variants; a file FAMILY/variant_NAME.cc has make_FAMILY_NAME of
// that variant alone, and needs no entry in a list. Constants as in Backend::compile. Errors: backend_lacks_variant,
// layout_not_served, type_not_served.
using KernelFactory = Result<CpuKernelPtr> (*)(const Stage&, const Schedule&, const Device&, uint32_t constants);
#define FAMILY(name, params) Result<CpuKernelPtr> make_##name(const Stage&, const Schedule&, const Device&, uint32_t constants);
#include "families/families.inc"
#undef FAMILY
// Who makes the kernels of a variant.
KernelFactory factory_of(Family family, std::string_view variant);
// Any family by its plain reference loops: the variant "plain", named as such in every plan.
Result<CpuKernelPtr> make_plain(const Stage&, const Schedule&, const Device&, uint32_t constants);

}  // namespace sparkle::cpu
