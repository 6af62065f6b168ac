// Models run for a proof: on plain loops where results must agree to the bit, else on the CPU's kernels, with as many of the
// tensors within as asked for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fix/document/document.h"
#include "run/session.h"

namespace sparkle::fix {

class Runner {
 public:
  // `within`: tensors of the model whose values are wanted beside its outputs; those that the model has not are left out.
  static Result<Runner> open(const Document& doc, std::shared_ptr<Backend> backend, const std::vector<std::string>& within = {},
                             const SessionOptions& options = {});
  Result<std::vector<HostTensor>> run(const std::vector<HostTensor>& inputs) { return session_->run(inputs); }
  // Of what run() gives: the model's outputs first.
  const std::vector<std::string>& names() const { return names_; }
  size_t outputs() const { return outputs_; }
  const std::vector<SessionInput>& inputs() const { return session_->inputs(); }

 private:
  std::unique_ptr<Session> session_;
  std::vector<std::string> names_;
  size_t outputs_ = 0;
};

// Seeded values for the inputs: normal numbers in all types of floats, integers of 8 bits and fewer over their whole range as
// pictures have them, small ones of more bits for indices.
std::vector<HostTensor> random_inputs(const Graph& graph, const std::vector<InputBinding>& bindings, uint64_t seed);

}  // namespace sparkle::fix
