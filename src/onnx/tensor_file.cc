#include "onnx/tensor_file.h"

#include <filesystem>
#include <limits>

#include "base/system/out_of_memory.h"
#include "base/files/mapped_file.h"
#include "base/files/new_file.h"
#include "onnx/tensor_proto.h"

namespace sparkle {
namespace {
Result<NamedTensor> parse(std::span<const std::byte> bytes, const std::string& file, const std::string& folder) {
  ::onnx::TensorProto proto;
  const bool fits = bytes.size() <= static_cast<size_t>(std::numeric_limits<int>::max());
  if (!fits || !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || !proto.has_data_type())
    return Error{Reason::bad_format, "'" + file + "' is no ONNX tensor file or is cut short."};
  NamedTensor tensor{proto.name(), {}};
  SPARKLE_TRY(value, take_tensor(proto, "'" + file + "': tensor '" + tensor.name + "'", folder));
  tensor.value = std::move(value);
  return tensor;
}
}  // namespace

Result<NamedTensor> read_tensor_pb_bytes(std::span<const std::byte> bytes, const std::string& file) {
  return guard_memory("Reading the tensor", [&] { return parse(bytes, file, ""); });
}

Result<NamedTensor> read_tensor_pb(const std::string& path) {
  SPARKLE_TRY(mapped, MappedFile::open(path));
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return guard_memory("Reading the tensor", [&] { return parse(mapped.bytes(), path, folder.empty() ? "." : folder); });
}

Status write_tensor_pb(const std::string& path, const std::string& name, const HostTensor& value) {
  ::onnx::TensorProto proto;
  put_tensor(value, name, proto);
  std::string text;
  if (!proto.SerializeToString(&text))
    return Error{Reason::size_overflow, "'" + path + "' would be larger than 2 GiB, the most that the format allows."};
  return write_file(path, std::as_bytes(std::span(text)));
}

}  // namespace sparkle
