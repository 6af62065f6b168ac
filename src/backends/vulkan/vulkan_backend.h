// The Vulkan backend: programs are command buffers, submitted as a whole, and complete on a timeline.
#pragma once

#include "backends/backend.h"
#include "backends/vulkan/kernels/vulkan_kernel.h"

namespace sparkle::vulkan {

// A part of a buffer that the caller made on `device` with `usage`; it stays the caller's.
struct LentBuffer {
  VkDevice device = VK_NULL_HANDLE;
  VkBuffer buffer = VK_NULL_HANDLE;
  VkBufferUsageFlags usage = 0;
  int64_t offset = 0, bytes = 0;
};

class VulkanBackend : public Backend {
 public:
  // What was done so far, for tests and reports.
  struct Counters {
    uint64_t submissions = 0;  // of programs
    uint64_t recordings = 0;   // of command buffers
    uint64_t copies = 0;       // regions moved between buffers
    uint64_t pipelines = 0;    // built by this backend
  };
  virtual Counters counters() const = 0;
  // The caller's memory as a Buffer, not copied and not freed. Errors: bad_usage for another device, a usage that kernels
  // cannot work with, and bytes that are not there or not aligned to kLentAlignment.
  virtual Result<std::shared_ptr<Buffer>> wrap(const LentBuffer& lent) = 0;
  virtual const Context& context() const = 0;
  // Tries kernels by the lines that ContextOptions::try_elsewhere was handed. Errors: bad_format.
  virtual Status try_lines(const std::string& lines) = 0;
  // What was wrong with variants that this driver is not trusted with.
  virtual std::vector<std::string> findings() const = 0;
  // What was measured of variants that had to be faster than others, and were.
  virtual std::vector<std::string> speeds() const = 0;
  // Measures the rates of the device, which device() tells from then on. Errors: what the driver says; device_unusable where it
  // keeps no time.
  virtual Status calibrate() = 0;
  // Takes rates that were measured before.
  virtual void set_rates(const Device& device) = 0;
  virtual class Pipelines& pipelines() = 0;
};

inline constexpr int64_t kLentAlignment = 16;  // the widest load of a kernel

// The kernel of a stage whose family has one.
using MakeKernel = std::function<Result<VulkanKernelPtr>(const Stage&, const Schedule&, const Workshop&, uint32_t constants)>;

// `description` is what the planner sees; its rates may have been measured. `make` makes the kernels.
Result<std::shared_ptr<VulkanBackend>> make_vulkan_backend(std::shared_ptr<Instance> instance, size_t index,
                                                           const ContextOptions& options, std::shared_ptr<Executor> executor,
                                                           MakeKernel make = make_kernel);

}  // namespace sparkle::vulkan
