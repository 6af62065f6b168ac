// bench for layers: one after another, beside other engines, by optimisation steps, with one pattern off at a time.
#pragma once

#include <string>
#include <vector>

#include "command.h"
#include "measure/layer_bench.h"

namespace sparkle::cli {

struct LayerBench {
  std::string layers, batch, dt, dir, against, output;
  std::vector<std::string> convs, gemms, filters;
  bool ladder = false, ablate = false, crossover = false;
  int batches = 0;
  std::string stored;  // "f16", "bf16": layers of such tensors; empty: f32
  LayerBenchOptions options;
};

int bench_layers(CommonOptions common, LayerBench bench);

}  // namespace sparkle::cli
