#include "backends/roof_runs.h"

namespace sparkle {
namespace {

constexpr std::chrono::nanoseconds kPatience = std::chrono::seconds(20);

}  // namespace

Result<std::vector<double>> timed(Backend& backend, std::span<const Kernel* const> kernels, std::span<Buffer* const> buffers) {
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

}  // namespace sparkle
