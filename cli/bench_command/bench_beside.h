// bench MODEL --against onnxruntime: a whole model by Sparkle and by ONNX Runtime in one process, in turns, outputs compared.
#pragma once

#include "bench_command/bench_model.h"
#include "measure/prepared_layer.h"

namespace sparkle::cli {

// `rounds`: how often and for how long at least each has its turn.
int bench_beside(CommonOptions common, const ModelBench& bench, const LayerBenchOptions& rounds);

}  // namespace sparkle::cli
