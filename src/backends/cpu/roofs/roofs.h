// The roofs of this very machine, measured: what its math units and its memory levels can do, with one core and with all.
#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/executor.h"
#include "base/result.h"
#include "device/device.h"

namespace sparkle::cpu {

// Fills the rates of `device` (a probe of this machine): flops of each vector and dot-product unit that has kernels, read and
// copy rates of each memory level, launch_seconds, clock_hz; sets calibrated. Takes about `seconds`. One core's rates go by the
// CPU time of its thread, so neighbours on the machine hardly disturb them.
Status measure_roofs(Device& device, Executor& executor, double seconds = 0.3);

// Peak of a unit at this moment; 0 when the unit has no kernels here. Benchmarks take one just before and after what they
// judge, because clocks wander by a quarter within seconds.
struct UnitPeak {
  double flops_per_second = 0;       // all threads together
  double core_flops_per_second = 0;  // one of them
};
UnitPeak probe_peak(std::string_view unit, double seconds = 1.5e-3);  // the calling thread
UnitPeak probe_peak(std::string_view unit, Executor& executor, double seconds = 1.5e-3);

// The same of memory levels: what all cores together read, or read and write, in a second. Keeps its pages from probe to probe.
class BandwidthProbe {
 public:
  BandwidthProbe();
  ~BandwidthProbe();
  // 0 where the level cannot be told from the one inside it, there is no memory for it or no unit with kernels.
  double bytes_per_second(const Device& device, size_t level, Executor& executor, double seconds = 2e-3);
  // Gives its pages back, which may be several times the outermost cache.
  void forget();

 private:
  struct Level;
  std::vector<std::unique_ptr<Level>> levels_;
};

// measure_roofs with a memory: the results of the same machine, cores and build are kept in a file.
struct CalibrateOptions {
  bool force = false;       // measure again
  std::string folder = {};  // of the file; default $XDG_CACHE_HOME/sparkle or ~/.cache/sparkle
  double seconds = 0.3;
  std::function<void(Device&)> more = {};  // measures what is kept with the roofs
};
struct Calibration {
  std::string path;             // of the file; empty when there is nowhere to write
  std::time_t measured_at = 0;  // 0 where it cannot be told
};
// A file that cannot be read is measured anew, one that cannot be written leaves `path` empty.
Result<Calibration> calibrate(Device& device, Executor& executor, const CalibrateOptions& options = {});

// What calibrate kept earlier for this machine, cores and build, put into `device`; none, and `device` as it was, where there
// is no such file. Takes no measuring, so that a command answers at once.
std::optional<Calibration> kept_roofs(Device& device, const Executor& executor, const std::string& folder = {});

}  // namespace sparkle::cpu
