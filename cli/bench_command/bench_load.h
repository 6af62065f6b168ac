// bench MODEL --streams N: so many requests at once on one session, each by a thread of its own; latency and throughput.
#pragma once

#include "bench_command/bench_model.h"

namespace sparkle::cli {

int bench_load(const CommonOptions& common, const ModelBench& bench);

}  // namespace sparkle::cli
