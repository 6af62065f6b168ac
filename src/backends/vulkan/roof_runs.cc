#include "backends/vulkan/roof_runs.h"

#include <algorithm>

#include "families/copy/copy.h"

namespace sparkle::vulkan {
namespace {

constexpr std::chrono::nanoseconds kPatience = std::chrono::seconds(20);
constexpr int kMostRounds = 1 << 20;

}  // namespace

Result<std::unique_ptr<VulkanKernel>> bare_kernel(const Workshop& shop, const PipelineRequest& request, uint32_t groups,
                                                  int operands, std::initializer_list<int> pushed) {
  SPARKLE_TRY(pipeline, shop.pipelines->get(request));
  Stage stage;
  stage.params = CopyParams{};
  const TensorDesc bytes = dense_desc(DType::f32, {16});
  stage.inputs.assign(static_cast<size_t>(operands - 1), bytes);
  stage.outputs.push_back(bytes);
  auto kernel = std::make_unique<VulkanKernel>(stage);
  Dispatch d;
  d.pipeline = pipeline;
  d.groups = {groups, 1, 1};
  for (int i = 0; i < operands; ++i) d.addresses.push_back({i});
  for (const int value : pushed) d.push(value);
  kernel->dispatches.push_back(std::move(d));
  return kernel;
}

Result<std::vector<double>> timed(VulkanBackend& backend, std::span<const Kernel* const> kernels,
                                  std::span<Buffer* const> buffers) {
  std::vector<Launch> launches;
  for (const Kernel* kernel : kernels) {
    Launch launch;
    launch.kernel = kernel;
    for (size_t i = 0; i + 1 < buffers.size(); ++i) launch.inputs.push_back({static_cast<int>(i), 0});
    launch.outputs.push_back({static_cast<int>(buffers.size()) - 1, 0});
    launches.push_back(std::move(launch));
  }
  SPARKLE_TRY(program, backend.record(launches));
  SubmitOptions options;
  options.timestamps = true;
  SPARKLE_TRY(token, backend.submit(*program, buffers, options));
  if (Status done = backend.wait(token, kPatience); !done.ok()) {
    if (!backend.settle(kPatience).ok()) (void)program.release();  // it may still run
    return done.take_error();
  }
  SPARKLE_TRY(times, backend.timestamps(token));
  std::vector<double> seconds;
  for (const StepTime& t : times) seconds.push_back(t.end - t.begin);
  return seconds;
}

Result<double> seconds_of_round(VulkanBackend& backend, std::span<Buffer* const> buffers, int least, double seconds,
                                const std::function<Result<std::unique_ptr<VulkanKernel>>(int rounds)>& kernel_of) {
  for (int rounds = std::clamp(least, 1, kMostRounds);;) {
    SPARKLE_TRY(first, kernel_of(rounds));
    SPARKLE_TRY(second, kernel_of(rounds));
    const Kernel* const kernels[] = {first.get(), second.get()};
    SPARKLE_TRY(taken, timed(backend, kernels, buffers));
    if (taken[1] <= 0) return 0.0;
    if (taken[1] >= seconds / 2 || rounds >= kMostRounds) return taken[1] / rounds;
    rounds =
        static_cast<int>(std::clamp(rounds * seconds / taken[1], 2.0 * rounds, std::min(64.0 * rounds, 1.0 * kMostRounds)));
  }
}

uint32_t groups_of(const Device& device) {
  return is_software(device) ? 16 : static_cast<uint32_t>(std::max(1, device.cores)) * 16;
}

}  // namespace sparkle::vulkan
