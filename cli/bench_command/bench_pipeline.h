// bench --pipeline: a model's items one after another, each waited for, beside the same through a pipeline; or of several
// devices, through a pipeline of each beside one queue over all.
#pragma once

#include "bench_command/bench_model.h"
#include "measure/pipeline_bench.h"

namespace sparkle::cli {

// `trace`: a file for the stages of the items of the first round; empty: none.
int bench_pipeline(const CommonOptions& common, const ModelBench& bench, const PipelineBenchOptions& options,
                   const std::string& trace);
int bench_together(const CommonOptions& common, const ModelBench& bench, const PipelineBenchOptions& options,
                   const std::string& trace);
// The trace into the file; nothing where there is none.
Status write_trace(const std::string& path, const std::shared_ptr<PipelineTrace>& trace);

}  // namespace sparkle::cli
