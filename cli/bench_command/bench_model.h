// bench MODEL: a whole network, its steps against their roofs; --serve: the helper side of comparisons with other engines.
#pragma once

#include <nlohmann/json.hpp>

#include "loaded_model.h"
#include "measure/checks/model_check.h"

namespace sparkle::cli {

struct ModelBench {
  std::string model, output;
  std::vector<std::string> inputs, shapes;
  int runs = 0;
  double duration = 0;  // seconds; 0: what `runs` says
  int streams = 0;      // requests at once; 0: one run after another, step by step
  std::string against;
  bool serve = false;
};

// --output: whether the file can be written, found before anything is measured; and the results into it.
Status write_results(const std::string& path, const nlohmann::json& json);

int bench_model(const CommonOptions& common, const ModelBench& bench);

// What the outputs of a loaded model must be; in a session of its own that is gone before anything is timed.
Result<ModelCheck> check_of(const CommonOptions& common, const ModelBench& bench, const LoadedModel& loaded);
Result<ModelCheck> check_of(const CommonOptions& common, const ModelBench& bench, Session& session,
                            const std::vector<HostTensor>& inputs, const SessionOptions& options);

}  // namespace sparkle::cli
