// Head to head: one layer by Sparkle and by other engines in one process, in turns. Each engine gets the same operands
// (channels last, filters [K,C/groups,R,S], a bias), brings them into whatever form it likes before the clock runs, and its
// whole output is compared before it is timed, and after. Every round is a repetition of each, beginning with another one each
// time; the peak is probed between repetitions.
#pragma once

#include <memory>

#include "measure/layer_bench.h"

namespace sparkle {

// What a peer is given to prepare. Pointers live as long as the comparison.
struct PeerLayer {
  const AnchorCall& call;
  const float* x;     // in the layout of call.inputs[0]
  const float* w;     // row-major
  const float* bias;  // [K], or nullptr
  bool constant_weights;
};

// One layer as a peer prepared it.
class PeerRun {
 public:
  virtual ~PeerRun() = default;
  // The layer `calls` times, all of it done on return.
  virtual Status run(int64_t calls) = 0;
  // Seconds of each of so many calls; by the clock of a device where that is another than the host's.
  virtual Result<double> seconds(int64_t calls);
  // The output of the last run, written in the layout of the call's output.
  virtual Status result(float* y) = 0;
  // What each of so many calls costs beside the layer, in seconds, measured now; taken off the samples of this repetition.
  virtual Result<double> fixed_seconds(int64_t) { return 0.0; }
  // What the peer chose, in its own words.
  virtual std::string chose() const { return {}; }
};

class Peer {
 public:
  virtual ~Peer() = default;
  virtual std::string name() const = 0;
  virtual std::string version() const = 0;
  // Errors: operator_not_served where the peer cannot do this layer.
  virtual Result<std::unique_ptr<PeerRun>> prepare(const PeerLayer& layer) = 0;
};

struct PeerMeasurement {
  std::string name, version, chose;
  std::string refused;  // why it does not take part in this layer; empty: it does
  double median_seconds = 0, min_seconds = 0, p95_seconds = 0;
  double fixed_seconds = 0;  // already taken off
  double share_of_peak = 0;  // nominal rate / peak of the same moment, median over rounds
  double speedup = 0;        // its time / ours, median over rounds; above 1: Sparkle is faster
  double largest_error = 0;  // on the operands that were timed, relative to the largest output of a slice
  Checked checked;
  RoofVerdict verdict;
};

struct HeadToHead {
  LayerMeasurement ours;
  std::vector<PeerMeasurement> peers;
  double best_speedup = 0;  // that of the fastest peer
};

// Errors: those of measure_layer; internal where a peer's output is wrong.
Result<HeadToHead> head_to_head(Backend& backend, const Problem& problem, const LayerBenchOptions& options,
                                std::span<const std::unique_ptr<Peer>> peers);

// Sparkle's own candidates for one problem, in turns on the same operands.
struct ComparedChoice {
  Choice choice;
  bool planes = false;  // on the same feature maps plane by plane (NCHW)
};
struct CandidateMeasurement {
  LayerMeasurement measured;
  double times_first = 1;  // its time over the first candidate's, median over rounds
};
Result<std::vector<CandidateMeasurement>> compare_candidates(Backend& backend, const Problem& problem,
                                                             const LayerBenchOptions& options,
                                                             std::vector<ComparedChoice> candidates);

}  // namespace sparkle
