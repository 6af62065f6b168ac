// LayerBench: one Problem measured on a backend the honest way: its whole output checked before and after (LayerCheck), random
// data, warmed up, peak probed just before and after every sample, medians over rounds.
#pragma once

#include "measure/prepared_layer.h"
#include "measure/roofs/roof_judge.h"

namespace sparkle {

struct LayerMeasurement {
  Problem problem;
  Choice choice;
  double median_seconds = 0, min_seconds = 0, p95_seconds = 0;
  double peak_flops_per_second = 0;  // all cores, probed around the samples; 0 where the device cannot tell
  double share_of_peak = 0;          // nominal rate / peak of the same moment, median over rounds
  double executed_flops = 0;         // padding taps left out; what transforms save taken off
  double roof_seconds = 0;           // what the measured roofs allow: the slower of arithmetic and compulsory traffic
  std::string roof_bound;            // "compute" or the memory level
  double compulsory_bytes = 0;       // operands and output, each once
  RoofVerdict verdict;               // that no rate is above its roof, or which is
  double largest_error = 0;          // on the operands that were timed, relative to the largest output of a slice
  Checked checked;                   // the outputs on operands of whole numbers, before and after
  int64_t workspace_bytes = 0;
  uint64_t host_transfers = 0;   // copies between host and device while it was timed
  bool clock_of_device = false;  // times are the device's own, without the host's part
  int repeats = 1;               // runs in a sample, whose mean is one time
};

// Errors: those of planning and compiling; internal when an output is wrong (the sentence says where).
Result<LayerMeasurement> measure_layer(Backend& backend, const Problem& problem, const LayerBenchOptions& options);
// The same by a candidate of the caller's choosing.
Result<LayerMeasurement> measure_choice(Backend& backend, const Problem& problem, Choice choice,
                                        const LayerBenchOptions& options);

// A layer about to be timed: its whole output is right on operands of its own, then it has the operands that it is timed on,
// has run once on them, in `first_seconds`, and its output is wiped again.
class CheckedLayer {
 public:
  static Result<CheckedLayer> make(Backend& backend, const AnchorCall& call, const Choice& choice,
                                   const LayerBenchOptions& options);
  PreparedLayer& layer() { return *layer_; }
  double first_seconds() const { return first_; }
  // After the last timed run: that run's output is written everywhere and right where the reference was asked, and the whole
  // output is right on new operands. Into the measurement: how it was checked, and the largest error.
  Status finish(LayerMeasurement& m);

 private:
  Backend* backend_ = nullptr;
  AnchorCall call_;
  Choice choice_;
  LayerBenchOptions options_;
  std::unique_ptr<PreparedLayer> layer_;
  Checked checked_;
  double first_ = 0;
};

// What measurements share: the candidate the planner would take, the verification of an output, the roof.
Result<Choice> choose_layer(Backend& backend, const Problem& problem, const LayerBenchOptions& options);
// internal where the error is larger than the accuracy allows, or than the bound of a candidate that was forced (0: none).
Status accept_error(double error, const Problem& problem, const std::string& who, const LayerBenchOptions& options,
                    double bound);
// The unit whose peak a candidate is compared with: its own, or the widest where it has none.
std::string peak_unit(const Choice& choice, const Device& device);
// Rates are compared with these probes, peak and bandwidth of the level that holds the layer's operands.
void find_roof(const RoofProbes& probes, const Device& device, LayerMeasurement& measurement);
// Operands and output, each once, as far as the layer touches them.
double compulsory_bytes(const AnchorCall& call, const Choice& choice);

// 2 * products whose input lies inside the image: padding taps left out.
double executed_flops(const Problem& problem);

}  // namespace sparkle
