// StreamBench: one layer on many batches, as a program has them that works off a queue: each batch with an input and an output
// of its own, all handed over before the first is waited for. Once with operands resident on the device, once with every input
// brought there and every output fetched, beside what these copies take alone. Every output of every batch is compared
// whole, on operands of its own, before what is timed and after it, resident and with transfers.
#pragma once

#include "measure/prepared_layer.h"
#include "measure/roofs/roof_judge.h"

namespace sparkle {

struct StreamMeasurement {
  Problem problem;
  Choice choice;
  int batches = 0;
  double resident_seconds = 0;  // all batches, first submission to last completion by the host's clock; median, like all here
  double moved_seconds = 0;     // the same with uploads and downloads
  double link_seconds = 0;      // those uploads and downloads alone
  double up_seconds = 0, down_seconds = 0;  // each direction alone
  double bytes_up = 0, bytes_down = 0;
  double largest_error = 0;  // of all batches on the operands that were timed, relative to the largest output of a slice
  Checked checked;           // all outputs
  RoofVerdict verdict;       // of the resident batches

  // How much of the time with transfers the link alone would have taken.
  double share_of_link() const { return moved_seconds > 0 ? link_seconds / moved_seconds : 0; }
};

// Errors: those of planning and compiling; internal where an output is wrong.
Result<StreamMeasurement> measure_stream(Backend& backend, const Problem& problem, const LayerBenchOptions& options,
                                         int batches);

}  // namespace sparkle
