// What all measurements of rates share: kernels without a stage, timed by the device's own clock.
#pragma once

#include <functional>
#include <span>

#include "backends/vulkan/kernels/vulkan_kernel.h"
#include "backends/vulkan/vulkan_backend.h"

namespace sparkle::vulkan {

// A kernel of one dispatch, whose push constants begin with the addresses of that many buffers.
Result<std::unique_ptr<VulkanKernel>> bare_kernel(const Workshop& shop, const PipelineRequest& request, uint32_t groups,
                                                  int operands, std::initializer_list<int> pushed);

// Device seconds of each of `kernels`, run one after the other on the same buffers.
Result<std::vector<double>> timed(VulkanBackend& backend, std::span<const Kernel* const> kernels,
                                  std::span<Buffer* const> buffers);

// Seconds of a round, of as many rounds as take about `seconds`, `least` at least. `kernel_of`: a kernel for so many rounds;
// two are run, and the second counts: a driver may compile the first on its way. 0 without a clock.
Result<double> seconds_of_round(VulkanBackend& backend, std::span<Buffer* const> buffers, int least, double seconds,
                                const std::function<Result<std::unique_ptr<VulkanKernel>>(int rounds)>& kernel_of);

// Enough groups to fill any device several times over; software devices need few.
uint32_t groups_of(const Device& device);

}  // namespace sparkle::vulkan
