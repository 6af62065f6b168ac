#include "onnx/model_file.h"

#include <filesystem>
#include <limits>

#include "base/files/mapped_file.h"
#include "base/files/new_file.h"
#include "base/round_up.h"
#include "base/system/out_of_memory.h"
#include "onnx/tensor_proto.h"

namespace sparkle {
namespace {
namespace fs = std::filesystem;
using ::onnx::ModelProto;
using ::onnx::TensorProto;

constexpr int64_t kPage = 4096;      // mapped files are read by pages
constexpr size_t kStaysFrom = 1024;  // smaller tensors are shapes and scalars, which readers want beside their nodes

Status take_in(TensorProto& proto, const std::string& model, const std::string& folder) {
  if (proto.data_location() != TensorProto::EXTERNAL) return ok();
  SPARKLE_TRY(value, take_tensor(proto, "'" + model + "': tensor '" + proto.name() + "'", folder));
  proto.clear_external_data();
  proto.clear_data_location();
  TensorProto stored;
  put_tensor(value, proto.name(), stored);
  proto.set_raw_data(std::move(*stored.mutable_raw_data()));
  return ok();
}

Result<ModelProto> parse_alone(const std::string& path) {
  SPARKLE_TRY(mapped, MappedFile::open(path));
  ModelProto model;
  const bool fits = mapped.bytes().size() <= static_cast<size_t>(std::numeric_limits<int>::max());
  if (!fits || !model.ParseFromArray(mapped.bytes().data(), static_cast<int>(mapped.bytes().size())) || !model.has_graph())
    return Error{Reason::bad_format, "'" + path + "' is no ONNX model or is cut short."};
  return model;
}

Result<ModelProto> parse(const std::string& path) {
  SPARKLE_TRY(model, parse_alone(path));
  std::string folder = fs::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  for (TensorProto& proto : *model.mutable_graph()->mutable_initializer()) SPARKLE_CHECK(take_in(proto, path, folder));
  for (auto& node : *model.mutable_graph()->mutable_node())
    for (auto& attribute : *node.mutable_attribute())
      if (attribute.has_t()) SPARKLE_CHECK(take_in(*attribute.mutable_t(), path, folder));
  return model;
}

void add_location(const TensorProto& proto, std::set<std::string>& files) {
  if (proto.data_location() != TensorProto::EXTERNAL) return;
  for (const auto& entry : proto.external_data())
    if (entry.key() == "location") files.insert(entry.value());
}

void add_locations(const ::onnx::NodeProto& node, std::set<std::string>& files);

void add_locations(const ::onnx::GraphProto& graph, std::set<std::string>& files) {
  for (const TensorProto& proto : graph.initializer()) add_location(proto, files);
  for (const auto& node : graph.node()) add_locations(node, files);
}

void add_locations(const ::onnx::NodeProto& node, std::set<std::string>& files) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_t()) add_location(attribute.t(), files);
    if (attribute.has_g()) add_locations(attribute.g(), files);
  }
}

void add_entry(TensorProto& proto, const char* key, const std::string& value) {
  auto& entry = *proto.add_external_data();
  entry.set_key(key);
  entry.set_value(value);
}

// Moves the bytes of large initializers into `file`, whose name beside the model is `name`.
Status put_aside(ModelProto& model, NewFile& file, const std::string& name) {
  static constexpr std::byte kZeros[kPage] = {};
  for (TensorProto& proto : *model.mutable_graph()->mutable_initializer()) {
    if (proto.raw_data().size() < kStaysFrom) continue;
    const int64_t begin = rounded_up(file.size(), kPage);
    SPARKLE_CHECK(file.write(std::span(kZeros, static_cast<size_t>(begin - file.size()))));
    SPARKLE_CHECK(file.write(std::as_bytes(std::span(proto.raw_data()))));
    add_entry(proto, "location", name);
    add_entry(proto, "offset", std::to_string(begin));
    add_entry(proto, "length", std::to_string(proto.raw_data().size()));
    proto.clear_raw_data();
    proto.set_data_location(TensorProto::EXTERNAL);
  }
  return ok();
}

Status write(ModelProto& model, const std::string& path, int64_t largest) {
  const Error too_large{Reason::size_overflow, "'" + path +
                                                   "' would be larger than 2 GiB without its weights, the most that "
                                                   "the format allows."};
  if (static_cast<int64_t>(model.ByteSizeLong()) > largest) {
    const std::string data = path + ".data";
    SPARKLE_TRY(file, NewFile::create(data));
    SPARKLE_CHECK(put_aside(model, file, fs::path(data).filename().string()));
    SPARKLE_CHECK(file.finish());
  }
  if (static_cast<int64_t>(model.ByteSizeLong()) > kLargestModelFile) return too_large;
  std::string text;
  if (!model.SerializeToString(&text)) return too_large;
  return write_file(path, std::as_bytes(std::span(text)));
}

}  // namespace

Result<ModelProto> read_model_proto(const std::string& path) {
  return guard_memory("Reading the model", [&] { return parse(path); });
}

Result<ModelProto> read_model_outline(const std::string& path) {
  return guard_memory("Reading the model", [&] { return parse_alone(path); });
}

std::set<std::string> data_files_of(const std::string& path) {
  std::set<std::string> files;
  const auto model = read_model_outline(path);
  if (!model.ok()) return files;
  add_locations(model->graph(), files);
  for (const auto& function : model->functions())
    for (const auto& node : function.node()) add_locations(node, files);
  return files;
}

Result<HostTensor> tensor_value(const TensorProto& proto, const std::string& what) {
  TensorProto copy = proto;
  return take_tensor(copy, what, "");
}

Status write_model_proto(ModelProto model, const std::string& path, int64_t largest) {
  return guard_memory("Writing the model", [&] { return write(model, path, largest); });
}

}  // namespace sparkle
