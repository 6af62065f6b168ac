// Keeps measured roofs in the user's cache, per machine, number of cores and build.
#include "backends/cpu/roofs/roofs.h"
#include "device/kept_rates.h"

namespace sparkle::cpu {

namespace {
std::string how_measured(const Executor& executor) { return "width " + std::to_string(executor.width()); }
}  // namespace

std::optional<Calibration> kept_roofs(Device& device, const Executor& executor, const std::string& folder) {
  const auto kept = kept_rates(device, how_measured(executor), folder);
  if (!kept) return std::nullopt;
  return Calibration{kept->path, kept->measured_at};
}

Result<Calibration> calibrate(Device& device, Executor& executor, const CalibrateOptions& options) {
  if (!options.force)
    if (auto kept = kept_roofs(device, executor, options.folder)) return std::move(*kept);
  SPARKLE_CHECK(measure_roofs(device, executor, options.seconds));
  if (options.more) options.more(device);
  const KeptRates kept = keep_rates(device, how_measured(executor), options.folder);
  return Calibration{kept.path, kept.measured_at};
}

}  // namespace sparkle::cpu
