// bench --model: a whole network, its steps against their roofs; --serve: the helper side of comparisons with other engines.
#pragma once

#include "command.h"

namespace sparkle::cli {

struct ModelBench {
  std::string model;
  std::vector<std::string> inputs, shapes;
  int runs = 0;
  bool serve = false;
};

int bench_model(const CommonOptions& common, const ModelBench& bench);

}  // namespace sparkle::cli
