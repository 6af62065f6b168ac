// Files that hold one ONNX TensorProto: the inputs and expected outputs of test_data_set folders (input_0.pb).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"
#include "base/tensor.h"

namespace sparkle {

struct NamedTensor {
  std::string name;
  HostTensor value;
};

Result<NamedTensor> read_tensor_pb(const std::string& path);
// The same from memory; `file` is what errors call it.
Result<NamedTensor> read_tensor_pb_bytes(std::span<const std::byte> bytes, const std::string& file);
Status write_tensor_pb(const std::string& path, const std::string& name, const HostTensor& value);

}  // namespace sparkle
