// No rate above the roofline: what was executed, and the bytes that no algorithm can do without, held against rates that were
// probed beside. Traffic that is only predicted is printed and not judged. docs/decisions/0020-roofs-that-judge.md
#pragma once

#include <string>
#include <vector>

#include "backends/backend.h"

namespace sparkle {

// What a measurement claims to have done in `seconds`.
struct RoofClaim {
  double seconds = 0;
  double executed_flops = 0;    // 0: not judged
  double compulsory_bytes = 0;  // operands and results, each once; 0: not judged
  double kept_bytes = 0;        // of these, what inner levels may still hold from the run before
  bool clock_of_device = false;
};

// A rate that was claimed and the roof it stands under.
struct RoofRate {
  std::string of;     // "avx512", "L2"; empty: there is no roof
  double rate = 0;    // per second
  double roof = 0;    // the median of the probes
  double spread = 0;  // the largest probe over their median, less one

  // Probes this far apart saw a machine that was sometimes somebody else's: a rate beside them is no more than it seems, and
  // what share of the roof it is nobody knows.
  bool disturbed() const { return spread > 0.25; }
};

struct RoofVerdict {
  RoofRate compute, memory;
  double tolerance = 0;  // beside the spread
  bool above(const RoofRate& r) const { return r.roof > 0 && r.rate > (1 + tolerance + r.spread) * r.roof; }
  bool disturbed() const { return compute.disturbed() || memory.disturbed(); }
  // Empty, or the sentence that names what is above which roof.
  std::string error_text(const std::string& who) const;
  // "avx512 73.1 GFLOP/s, probes within 1.2 %; L2 101.3 GB/s, probes within 3.4 %"
  std::string probed() const;
};

// The innermost level whose instances on all cores together hold so many bytes, -1 where sizes are unknown; and what the levels
// inside of it hold.
int holding_level(const Device& device, double bytes);
double held_inside(const Device& device, int level);

RoofVerdict judge(const RoofClaim& claim, const std::string& unit, const std::vector<double>& peaks, const std::string& level,
                  const std::vector<double>& bandwidths);

// `bytes`: the working set. 0 where the backend cannot tell.
double bandwidth_of(Backend& backend, size_t level, double bytes);
// Gives back the memory that probes keep from one to the next.
void forget_probes(Backend& backend);
// Whether levels alone say which bandwidth a working set has.
bool knows_caches(Backend& backend);

// The probes of one unit and one level, taken between the samples that they stand beside.
class RoofProbes {
 public:
  // `bytes`: the working set. A unit without a probe or an unknown level is not judged.
  RoofProbes(Backend& backend, std::string unit, double bytes);
  double take();  // the peak of this moment
  double peak() const;
  double bandwidth() const;
  const std::string& unit() const { return unit_; }
  const std::string& level() const { return level_; }
  // The same for claims on the same working set.
  RoofVerdict judge(RoofClaim claim) const;
  void add(const RoofProbes& other);  // probes of the same unit and level taken in the same comparison

 private:
  Backend* backend_;
  std::string unit_, level_;
  int index_ = -1;
  double bytes_ = 0, inside_ = 0;
  std::vector<double> peaks_, bandwidths_;
};

}  // namespace sparkle
