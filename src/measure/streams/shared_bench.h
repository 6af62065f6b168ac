// A model's items through a pipeline of each of several devices alone, beside the same items through one queue over all of
// them: rates alone and together. Every output of every item is compared.
#pragma once

#include "measure/pipeline_bench.h"
#include "run/pipeline/shared_pipeline.h"

namespace sparkle {

struct SharedMeasurement {
  struct Row {
    std::string name;
    int alone_items = 0;  // of a round
    double alone = 0;     // seconds for an item, the median round's
    uint64_t items = 0;   // of those together
  };
  int items = 0, rounds = 0, depth = 0;  // of a round together
  std::vector<Row> devices;
  double together = 0;  // seconds for an item, all devices, the median round's
  double stream = 0;    // the same by those of them that a stream takes
  std::string why;      // which these are
  std::string checked;

  // Items together over the sum of those alone in the same time.
  double efficiency() const;
  // Items together, and in a stream, over those of the fastest alone.
  double gain() const { return together > 0 ? best_alone() / together : 0; }
  double stream_gain() const { return stream > 0 ? best_alone() / stream : 0; }
  double best_alone() const;
};

struct SharedBenchDevice {
  std::string name;
  std::shared_ptr<Session> session;
};

// Together all devices take part, whatever is predicted; a stream leaves those out that bring nothing. `options.items` 0: about
// a third of a second of the fastest, and of each device where it is alone. `checks`: of the first item, one for each device.
// Errors: those of running; internal where an output is wrong.
Result<SharedMeasurement> measure_shared(const std::vector<SharedBenchDevice>& devices, const std::vector<HostTensor>& inputs,
                                         std::vector<ModelCheck>& checks, const PipelineBenchOptions& options,
                                         const std::shared_ptr<PipelineTrace>& trace = nullptr);

}  // namespace sparkle
