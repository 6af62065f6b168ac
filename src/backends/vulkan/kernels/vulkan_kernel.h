// VulkanKernel: a Stage compiled for a Vulkan device, as dispatches one after the other. One file per family makes them.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/backend.h"
#include "backends/bounds_reports.h"
#include "backends/vulkan/driver/memory.h"
#include "backends/vulkan/shaders/pipelines.h"

namespace sparkle::vulkan {

// What kernel factories work with.
struct Workshop {
  std::shared_ptr<Context> context;
  std::shared_ptr<Memory> memory;  // nullptr: kernels are made and never run
  std::shared_ptr<Pipelines> pipelines;
  // A buffer with these bytes in it, readable by shaders.
  Result<std::shared_ptr<DeviceBuffer>> upload(const void* bytes, int64_t size) const;
};

// Operands of a dispatch by number: inputs, then outputs; or the workspace, or the BoundsReports of the launch.
inline constexpr int kWorkspace = -1, kBoundsReports = -2;

// An address that the push constants begin with.
struct Address {
  int operand = 0;
  int64_t offset = 0;  // bytes from element (0,...,0) of the operand, or from the workspace's start
};

struct Dispatch {
  const Pipeline* pipeline = nullptr;
  std::array<uint32_t, 3> groups{1, 1, 1};
  std::vector<Address> addresses;    // 8 bytes each, at the start of what is pushed
  std::vector<std::byte> constants;  // pushed behind them; all within kPushBytes
  bool after_previous = true;        // reads what the dispatch before it in this kernel wrote

  template <class T>
  void push(const T& value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    constants.insert(constants.end(), from, from + sizeof value);
  }
};

class VulkanKernel final : public Kernel {
 public:
  explicit VulkanKernel(const Stage& s) : stage(s) {}
  int64_t workspace_bytes() const override { return workspace; }
  int64_t packed_bytes(int input) const override { return packing(input) ? packing(input)->bytes : 0; }
  std::string packed_key(int input) const override { return packing(input) ? packing(input)->key : std::string(); }
  void pack(int input, const std::byte* from, std::byte* to, Executor& executor) const override {
    if (const Packing* p = packing(input)) p->pack(from, to, executor);
  }

  // A constant operand in a form of the kernel's own, made on the host.
  struct Packing {
    int input = 0;
    int64_t bytes = 0;
    std::string key;
    std::function<void(const std::byte*, std::byte*, Executor&)> pack;
  };
  const Packing* packing(int input) const {
    for (const Packing& p : packings)
      if (p.input == input) return &p;
    return nullptr;
  }

  Stage stage;
  std::vector<Dispatch> dispatches;
  std::vector<Packing> packings;
  int64_t workspace = 0;
  std::vector<std::shared_ptr<DeviceBuffer>> records;  // that dispatches read beside their operands
  BoundsError bounds_error;                            // where dispatches take the address of BoundsReports
};
using VulkanKernelPtr = std::unique_ptr<VulkanKernel>;

// Kernel factories: the file kernels/NAME.cc has make_NAME of the family that it is called by, and needs no entry in a list.
// Constants as in Backend::compile. Errors: backend_lacks_variant, layout_not_served, type_not_served, and what the driver
// says.
using KernelFactory = Result<VulkanKernelPtr> (*)(const Stage&, const Schedule&, const Workshop&, uint32_t constants);
#define FAMILY(name, params) \
  Result<VulkanKernelPtr> make_##name(const Stage&, const Schedule&, const Workshop&, uint32_t constants);
#include "families/families.inc"
#undef FAMILY
// nullptr: the family has none.
KernelFactory factory_of(Family family);
// What it makes of a stage whose family has one.
Result<VulkanKernelPtr> make_kernel(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t constants);

// Groups of `size` threads that cover `count`.
inline uint32_t groups_for(int64_t count, int64_t size) { return static_cast<uint32_t>((count + size - 1) / size); }
// So many groups along x and y of a grid: every device takes 65,535 along each axis.
inline std::array<uint32_t, 3> flat_groups(int64_t groups) {
  const int64_t columns = std::clamp<int64_t>(groups, 1, 32768);
  return {static_cast<uint32_t>(columns), groups_for(groups, columns), 1};
}
// Of threads that make one thing each.
inline std::array<uint32_t, 3> groups_of_threads(int64_t count, int64_t threads) {
  return flat_groups((count + threads - 1) / threads);
}

}  // namespace sparkle::vulkan
