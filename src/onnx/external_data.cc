// Tensors whose bytes lie in a file beside the model (TensorProto.external_data). The path comes from the model and is not
// trusted: it must be relative and end, links followed, inside the model's folder.
#include <charconv>
#include <cstring>
#include <filesystem>

#include "base/system/out_of_memory.h"
#include "base/files/mapped_file.h"
#include "onnx/tensor_proto.h"

namespace sparkle {
namespace {
namespace fs = std::filesystem;

bool inside(const fs::path& folder, const fs::path& file) {
  const fs::path relative = file.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

bool parse_count(const std::string& text, uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Result<std::shared_ptr<MappedFile>> open_external(const std::string& path, ExternalMaps* maps) {
  if (maps)
    if (const auto at = maps->by_path.find(path); at != maps->by_path.end()) return at->second;
  SPARKLE_TRY(file, MappedFile::open(path, maps ? MappedFile::Pages::touched : MappedFile::Pages::all));
  auto shared = std::make_shared<MappedFile>(std::move(file));
  if (maps) maps->by_path.emplace(path, shared);
  return shared;
}
}  // namespace

Result<HostTensor> read_external(const ::onnx::TensorProto& proto, DType type, const Dims& shape, const std::string& what,
                                 const std::string& folder, ExternalMaps* maps) {
  std::string location;
  uint64_t offset = 0, length = 0;
  bool length_given = false;
  for (const auto& entry : proto.external_data()) {
    bool good = true;
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") good = parse_count(entry.value(), offset);
    if (entry.key() == "length") good = length_given = parse_count(entry.value(), length);
    if (!good)
      return Error{Reason::bad_model, what + " gives '" + entry.value() + "' as " + entry.key() + " of its external data."};
  }
  if (folder.empty())
    return Error{Reason::bad_model, what + " keeps its data in another file, but the model was not read from a folder."};
  if (location.find('\0') != std::string::npos)
    return Error{Reason::bad_model, what + " keeps its data in a file whose name holds a byte of value 0."};
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  const fs::path file = error ? fs::path() : fs::weakly_canonical(root / location, error);
  if (location.empty() || error || fs::path(location).is_absolute() || !inside(root, file))
    return Error{Reason::bad_model, what + " keeps its data in '" + location + "', which is not inside the model's folder."};

  auto opened = open_external(file.string(), maps);
  if (!opened.ok() && !fs::exists(file, error))
    return Error{Reason::file_unreadable, what + " keeps its data in '" + location + "', and there is no such file in '" +
                                              root.string() + "'; put it beside the model."};
  if (!opened.ok()) return opened.take_error();
  const MappedFile& mapped = **opened;
  HostTensor tensor;
  tensor.dtype = type;
  tensor.shape = shape;
  const auto bytes = static_cast<uint64_t>(stored_bytes(type, tensor.elements()));
  const uint64_t available = mapped.bytes().size();
  if ((length_given && length != bytes) || offset > available || available - offset < bytes)
    return Error{Reason::bad_model, what + " needs " + std::to_string(bytes) + " bytes at offset " + std::to_string(offset) +
                                        " of '" + location + "', which has " + std::to_string(available) + "."};
  // What must be unpacked or put right is copied all the same.
  const bool as_is = stored_bits(type) >= 8 && type != DType::boolean && offset % static_cast<uint64_t>(size_of(type)) == 0;
  if (maps && as_is && bytes > 0) {
    // Constants are shared and never written.
    tensor.bytes = std::shared_ptr<std::byte[]>(*opened, const_cast<std::byte*>(mapped.bytes().data() + offset));
    return tensor;
  }
  SPARKLE_TRY(allocated, allocate_tensor(type, shape, what));
  tensor = std::move(allocated);
  if (bytes) unpack(type, mapped.bytes().data() + offset, tensor.elements(), tensor.bytes.get());
  return tensor;
}

}  // namespace sparkle
