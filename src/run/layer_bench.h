// LayerBench: one Problem measured on a backend the honest way: verified against the reference first, random data, warmed up,
// peak probed just before and after every sample, medians over rounds.
#pragma once

#include "run/prepared_layer.h"

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
  double largest_error = 0;          // relative to the largest output checked
  bool verified = false;
  int64_t workspace_bytes = 0;
  uint64_t host_transfers = 0;   // copies between host and device while it was timed
  bool clock_of_device = false;  // times are the device's own, without the host's part
};

// Errors: those of planning and compiling; bad_model when the output is wrong (the sentence gives the error).
Result<LayerMeasurement> measure_layer(Backend& backend, const Problem& problem, const LayerBenchOptions& options);
// The same by a way of the caller's choosing.
Result<LayerMeasurement> measure_choice(Backend& backend, const Problem& problem, Choice choice,
                                        const LayerBenchOptions& options);

// What measurements share: the way the planner would take, the verification of an output, the roof.
Result<Choice> choose_layer(Backend& backend, const Problem& problem, const LayerBenchOptions& options);
// internal where the error is larger than the accuracy allows, or than the bound of a way that was forced (0: none).
Status accept_error(double error, const Problem& problem, const std::string& who, const LayerBenchOptions& options,
                    double bound);
// The unit whose peak a way is compared with: its own, or the widest where it has none.
std::string peak_unit(const Choice& choice, const Device& device);
void find_roof(const Device& device, LayerMeasurement& measurement);

// 2 * products whose input lies inside the image: padding taps left out.
double executed_flops(const Problem& problem);

}  // namespace sparkle
