// A model run item after item, waiting for each, beside the same items through a pipeline: what overlapping host, copies and
// device brings, and how busy the device is. Every output of every item is compared.
#pragma once

#include <algorithm>

#include "measure/checks/model_check.h"
#include "measure/roofs/roof_judge.h"
#include "run/pipeline/pipeline.h"

namespace sparkle {

struct PipelineBenchOptions {
  int items = 0;   // of a round; 0: about a third of a second
  int rounds = 5;  // of each, in turns
  int depth = 3;
  uint64_t seed = 1;
};

// Times are seconds for an item.
struct PipelineMeasurement {
  int items = 0, rounds = 0, depth = 0;
  double latency = 0;      // of a run that is waited for: the median
  double synchronous = 0;  // the median round's time over its items
  double pipelined = 0;
  double device = 0;  // its steps, by timestamps of runs that are waited for
  bool clock_of_device = false;
  PipelineTimes host;  // of all pipelined rounds, in whole
  double roof = 0;  // no item can take less: what is executed at the peaks, or what is moved at the bandwidths, of this moment
  std::string above;  // a sentence where items took less
  std::string checked;

  double gain() const { return pipelined > 0 ? synchronous / pipelined : 0; }
  // The share of the time of the pipeline's that the device had work, 1 at most: steps of a run that is waited for may take
  // longer than an item does in the pipeline, where caches and clocks stay warm.
  double busy() const { return pipelined > 0 ? std::min(1.0, device / pipelined) : 0; }
  uint64_t piped_items() const { return static_cast<uint64_t>(items) * static_cast<uint64_t>(rounds); }
};

// `inputs`: the first item; three more of the same shapes have random numbers. `check`: of the first. Errors: those of running;
// internal where an output is wrong. `trace`: of the first pipelined round.
Result<PipelineMeasurement> measure_pipeline(const std::shared_ptr<Session>& session, const std::vector<HostTensor>& inputs,
                                             ModelCheck& check, const PipelineBenchOptions& options,
                                             const std::shared_ptr<PipelineTrace>& trace = nullptr);

}  // namespace sparkle
