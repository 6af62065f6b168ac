// bench --pipeline: a model's items one after another, each waited for, beside the same through a pipeline.
#pragma once

#include "bench_command/bench_model.h"
#include "measure/pipeline_bench.h"

namespace sparkle::cli {

int bench_pipeline(const CommonOptions& common, const ModelBench& bench, const PipelineBenchOptions& options);

}  // namespace sparkle::cli
