// A whole model by ONNX Runtime, beside Sparkle's session of it: what `bench MODEL --against onnxruntime` times and `compare`
// takes values from.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "peers/onnxruntime_library.h"

namespace sparkle::cli {

class RuntimeModel {
 public:
  // A file, so that external data beside it is found. `inputs` and `outputs`: names, in the order of tensors below.
  static Result<std::unique_ptr<RuntimeModel>> open(std::shared_ptr<OnnxRuntime> runtime, const std::string& path,
                                                    std::vector<std::string> inputs, std::vector<std::string> outputs);
  // The same of a message; `optimised`: false as it stands, each node for itself.
  static Result<std::unique_ptr<RuntimeModel>> of_bytes(std::shared_ptr<OnnxRuntime> runtime, const std::string& bytes,
                                                        std::vector<std::string> inputs, std::vector<std::string> outputs,
                                                        bool optimised);
  ~RuntimeModel();
  RuntimeModel(const RuntimeModel&) = delete;
  RuntimeModel& operator=(const RuntimeModel&) = delete;

  // Which values the runs below take; their memory is used as it lies and stays as long as this. Errors: type_not_served for
  // types that the two keep differently, several elements a byte there.
  Status give(const std::vector<HostTensor>& inputs);
  // Into the outputs of the run before, where `again`, else into new ones.
  Status run(bool again);
  // Copies of what the last run gave. Errors: type_not_served for sequences, strings and types as above.
  Result<std::vector<HostTensor>> results() const;
  // The same of one output.
  Result<HostTensor> result(size_t output) const { return value(output_values_[output], outputs_[output]); }

 private:
  RuntimeModel(std::shared_ptr<OnnxRuntime> runtime, std::vector<std::string> inputs, std::vector<std::string> outputs);
  Result<HostTensor> value(void* tensor, const std::string& name) const;

  std::shared_ptr<OnnxRuntime> runtime_;
  std::vector<std::string> inputs_, outputs_;
  std::vector<HostTensor> given_;
  std::vector<void*> input_values_, output_values_;
  void* session_ = nullptr;
};

}  // namespace sparkle::cli
