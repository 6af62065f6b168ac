#include "plan/choose/cost.h"

#include <algorithm>
#include <cmath>

#include "families/family.h"

namespace sparkle {
namespace {

// Rates for what a device description leaves at zero: cautious round numbers of a small machine, so that an unknown never looks
// fast.
constexpr double kUnknownFlops = 8e9;
constexpr double kUnknownBytes = 8e9;
// The plain reference loops: one product with its addressing takes about this long (measured 2-6 ns on several machines).
constexpr double kPlainFlops = 0.4e9;
constexpr double kPlainBytes = 0.5e9;
// Functions are chains of instructions that wait for each other; short vectors have more of them for the same work, and fill a
// core's queues before its units (GELU, e^x, erf and tanh by AVX2 and AVX-512 on a Zen 4, whose peaks are the same).
constexpr double kShortVectors = 1.6;
// Row pointers, empty sums and their way out, once per call of a micro-kernel (taken as some 50 cycles).
constexpr double kCallSeconds = 15e-9;

}  // namespace

Cost cost_of(const Footprint& f, const Schedule& schedule, const Device& device, double pace) {
  const bool plain = variant_of(schedule) == "plain";
  const MathUnit* unit = device.unit(unit_of(schedule));
  // Whole rounds of tasks over cores: 3 tasks on 2 cores take as long as 4.
  const double cores = plain ? 1 : std::max(1, device.cores);
  const double tasks = std::max(1.0, f.parallel_items);
  const double speedup = tasks / std::ceil(tasks / cores);
  const double flops = plain ? kPlainFlops : unit && unit->flops_per_second > 0 ? unit->flops_per_second : kUnknownFlops;
  const bool short_vectors = unit && unit->n <= 8 && !device.has_workgroups();
  const double functions = f.function_flops * (short_vectors ? kShortVectors : 1);
  Cost cost{(pace * f.executed_flops + functions) / (flops * std::min(speedup, cores)), "compute"};
  // A level without a rate binds nothing: it costs at most what its neighbours cost. Where all rates are unknown, any will do.
  const bool told = std::any_of(device.memory.begin(), device.memory.end(),
                                [](const MemoryLevel& l) { return l.bytes_per_second > 0 || l.total_bytes_per_second > 0; });
  double exposed = 0;
  for (size_t i = 0; i < device.memory.size() && i < f.bytes.size(); ++i) {
    const MemoryLevel& level = device.memory[i];
    const bool known = level.bytes_per_second > 0 || level.total_bytes_per_second > 0;
    if (told && !known) continue;
    double rate = level.bytes_per_second > 0 ? level.bytes_per_second * std::min(speedup, cores) : kUnknownBytes;
    if (level.total_bytes_per_second > 0)
      rate = level.bytes_per_second > 0 ? std::min(rate, level.total_bytes_per_second) : level.total_bytes_per_second;
    if (plain) rate = std::min(rate, kPlainBytes);
    const double alone = i < f.exposed.size() ? f.exposed[i] : 0;
    const double moved = i == 0 ? std::max(f.bytes[0], f.port_bytes) : f.bytes[i];
    const double seconds = (moved - alone) / rate;
    if (seconds > cost.seconds) cost = {seconds, level.name};
    exposed += alone / rate;
  }
  cost.seconds += exposed + pace * kCallSeconds * f.calls / std::min(speedup, cores);
  const double launches = device.launch_seconds * f.launches;
  if (launches > cost.seconds) cost.bound = "launch";
  cost.seconds += launches;
  return cost;
}

Cost add(const Cost& a, const Cost& b) { return {a.seconds + b.seconds, a.seconds >= b.seconds ? a.bound : b.bound}; }

}  // namespace sparkle
