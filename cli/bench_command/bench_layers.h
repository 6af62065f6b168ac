// bench for layers: one after another, beside other engines, by optimisation steps, with one pattern off at a time.
#pragma once

#include <string>
#include <vector>

#include "command.h"
#include "measure/layer_bench.h"

namespace sparkle::cli {

struct LayerBench {
  std::string layers, against, output;
  std::vector<std::string> convs, gemms, filters;
  bool ladder = false, ablate = false, crossover = false;
  int batches = 0;
  bool fp16 = false;  // layers of f16 tensors
  LayerBenchOptions options;
};

int bench_layers(CommonOptions common, LayerBench bench);

}  // namespace sparkle::cli
