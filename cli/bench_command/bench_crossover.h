// bench --crossover: from which filter length on transforms beat the other algorithms.
#pragma once

#include "command.h"
#include "measure/layer_bench.h"

namespace sparkle::cli {

// For each layer: filters of growing length up to its own, by transforms and by the best other algorithm, predicted and
// measured, and the lengths from which transforms win.
int bench_crossover(const CommonOptions& common, const std::vector<NamedProblem>& problems, LayerBenchOptions options);

}  // namespace sparkle::cli
