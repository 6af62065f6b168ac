// sparkle bench --conv TEXT --batches N: a layer on many batches, resident and with transfers.
#pragma once

#include "bench_command/bench_layers.h"
#include "command.h"

namespace sparkle::cli {

int bench_stream(const CommonOptions& common, const LayerBench& bench, const std::vector<NamedProblem>& problems);

}  // namespace sparkle::cli
