// TensorProto <-> HostTensor: raw and typed storage, and files beside the model. Nothing in the message is trusted.
#pragma once

#include <onnx.pb.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/files/mapped_file.h"
#include "base/result.h"
#include "base/tensor.h"

namespace sparkle {

// ONNX element types that Sparkle holds; nothing for strings, complex numbers and types of 6 bits.
std::optional<DType> dtype_from_onnx(int onnx_type);
int onnx_type_of(DType type);
// "FLOAT8E4M3FN (17)": for messages.
std::string onnx_type_name(int onnx_type);

// Checks and multiplies sizes: negative sizes, more than kMaxRank axes and overflow are errors ("`what` has ...").
Result<Dims> checked_shape(const std::string& what, const int64_t* sizes, int count);

// The tensor's value; its raw bytes are moved out of the message where possible. `what` starts error sentences
// ("'m.onnx': tensor 'w'"); `folder` is where external data lies, empty for none. `maps`:
// such data stays where it is, in maps that the tensors of a file share; without them it is copied.
struct ExternalMaps {
  std::map<std::string, std::shared_ptr<MappedFile>> by_path;
};
Result<HostTensor> take_tensor(::onnx::TensorProto& proto, const std::string& what, const std::string& folder,
                               ExternalMaps* maps = nullptr);

// Bytes that `elements` of a type take in a file, where those of 4 and 2 bits are packed.
int64_t stored_bytes(DType type, int64_t elements);
// Packed elements, the first in the lowest bits of the first byte, to one a byte. Other types are copied.
void unpack(DType type, const std::byte* from, int64_t elements, std::byte* to);

void put_tensor(const HostTensor& tensor, const std::string& name, ::onnx::TensorProto& proto);

// The bytes that `proto` keeps in another file of `folder`; a path that leaves the folder is refused.
Result<HostTensor> read_external(const ::onnx::TensorProto& proto, DType type, const Dims& shape, const std::string& what,
                                 const std::string& folder, ExternalMaps* maps = nullptr);

}  // namespace sparkle
