// A model that runs in parts (graph/parts/cut.h): each part is a session of its own, which plans it once for each shape of its
// inputs, and the host runs what lies between.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "graph/parts/cut.h"
#include "prepare/model_inputs.h"
#include "prepare/session_options.h"
#include "run/parts/value.h"

namespace sparkle {

class Backend;
class Session;

class ModelInParts {
 public:
  // Takes the graph as expand_paths() leaves it.
  ModelInParts(Graph graph, std::shared_ptr<Backend> backend, const SessionOptions& options);
  ~ModelInParts();

  const std::vector<SessionInput>& inputs() const { return inputs_; }
  const std::vector<SessionInput>& outputs() const { return outputs_; }

  // Any number of threads. Errors: bad_input naming the input, what the parts say, size_overflow where loops of one run take
  // more than 131,072 steps or hold more than the bytes allowed.
  Result<std::vector<HostTensor>> run(const std::vector<HostTensor>& inputs);

  // Errors leave every part where it was.
  Status move_to(std::shared_ptr<Backend> backend);
  std::shared_ptr<Backend> backend() const;
  int64_t constant_bytes() const;
  int64_t cached_bytes() const;

  // What errors say of a call that needs one plan.
  const Error& no_single_plan() const { return no_single_plan_; }

 private:
  struct Part;
  struct Level;  // a graph: the model, or a body of an operator
  struct Run;
  using Values = std::vector<PartValue>;

  std::unique_ptr<Level> opened(CutGraph graph);
  Result<Values> run_level(Level& level, const Values& inputs, Run& run);
  Result<Values> run_part(Part& part, const Values& inputs);
  Result<Values> run_host(const HostPart& step, std::vector<std::unique_ptr<Level>>& bodies, const Values& inputs, Run& run);
  Result<Values> run_loop(const HostPart& step, Level& body, const Values& inputs, Run& run);
  Result<Values> run_scan(const HostPart& step, Level& body, const Values& inputs, Run& run);
  std::optional<Values> folded_values(Part& part, const std::vector<HostTensor>& inputs);
  Result<std::shared_ptr<Session>> session_of(Part& part, const std::vector<HostTensor>& inputs);

  std::string name_;
  std::vector<SessionInput> inputs_, outputs_;
  Error no_single_plan_;
  SessionOptions options_;
  mutable std::mutex mutex_;  // of the backend and of the parts' sessions
  std::shared_ptr<Backend> backend_;
  std::vector<Part*> parts_;
  std::unique_ptr<Level> whole_;
};

}  // namespace sparkle
