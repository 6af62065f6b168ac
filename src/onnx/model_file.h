// ONNX files as messages: read whole, with what lies in files beside them, and written again. What nobody changes - names,
// metadata, attributes that Sparkle does not know - stays as it was.
#pragma once

#include <onnx.pb.h>

#include <set>
#include <string>

#include "base/result.h"
#include "base/tensor.h"

namespace sparkle {

// The model with external data taken in, so that it stands alone. Errors: file_unreadable, bad_format, bad_model.
Result<::onnx::ModelProto> read_model_proto(const std::string& path);

// The file alone: what lies beside it is not read.
Result<::onnx::ModelProto> read_model_outline(const std::string& path);

// The files beside an ONNX file that hold values of its tensors, by what they are called there, each once; none where it is no
// ONNX file. They need not be there.
std::set<std::string> data_files_of(const std::string& path);

// A copy of the tensor's value; `what` starts error sentences. For tensors without external data.
Result<HostTensor> tensor_value(const ::onnx::TensorProto& proto, const std::string& what);

// The largest message that one file may be: protobuf counts bytes in 31 bits.
inline constexpr int64_t kLargestModelFile = (int64_t{1} << 31) - (int64_t{1} << 20);

// One file, or where that would be more than `largest` bytes the file and PATH.data beside it, which holds the initializers of
// 1 KiB and more, each from a multiple of 4096 bytes on. Errors: file_unwritable, size_overflow.
Status write_model_proto(::onnx::ModelProto model, const std::string& path, int64_t largest = kLargestModelFile);

}  // namespace sparkle
