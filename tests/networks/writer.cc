#include "networks/writer.h"

#include <filesystem>

#include "base/files/new_file.h"
#include "graph/infer/known_types.h"
#include "onnx/tensor_proto.h"
#include "networks/write_ops.h"

namespace sparkle {
namespace {
constexpr int64_t kOpset = 21;
constexpr int64_t kIrVersion = 10;
// What first had all of the narrow types.
constexpr int64_t kNarrowOpset = 25, kNarrowIrVersion = 13;
// Tensors of fewer bytes stay in the model's own file.
constexpr int64_t kSmall = 1024;

// The file beside a model that holds its weights.
struct DataFile {
  NewFile file;
  std::string name;

  Status put(const HostTensor& tensor, const std::string& tensor_name, ::onnx::TensorProto& proto) {
    constexpr std::byte kGap[64] = {};  // lines of caches, which any type may begin at
    if (const auto over = static_cast<size_t>(file.size() % 64)) SPARKLE_CHECK(file.write(std::span(kGap).first(64 - over)));
    proto.set_name(tensor_name);
    proto.set_data_type(onnx_type_of(tensor.dtype));
    for (int64_t size : tensor.shape) proto.add_dims(size);
    proto.set_data_location(::onnx::TensorProto::EXTERNAL);
    const auto entry = [&](const char* key, const std::string& value) {
      auto& added = *proto.add_external_data();
      added.set_key(key);
      added.set_value(value);
    };
    entry("location", name);
    entry("offset", std::to_string(file.size()));
    entry("length", std::to_string(tensor.size_bytes()));
    return file.write(std::span(tensor.bytes.get(), static_cast<size_t>(tensor.size_bytes())));
  }
};

void declare(const GraphTensor& tensor, DType dtype, const std::string& name, ::onnx::ValueInfoProto& info) {
  info.set_name(name);
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx_type_of(dtype));
  if (!tensor.known && !tensor.rank_known) return;
  auto& shape = *type.mutable_shape();
  for (int i = 0; i < tensor.shape.size(); ++i) {
    auto& dim = *shape.add_dim();
    const size_t axis = static_cast<size_t>(i);
    if (tensor.shape[i] >= 0) {
      dim.set_dim_value(tensor.shape[i]);
    } else if (axis < tensor.axis_names.size() && !tensor.axis_names[axis].empty()) {
      dim.set_dim_param(tensor.axis_names[axis]);
    }
  }
}
}  // namespace

ModelWriter::ModelWriter(const Graph& graph, ::onnx::GraphProto& file) : graph_(graph), file_(file) {
  const auto note = [&](DType type) { only_f32_ = only_f32_ && (type == DType::f32 || !is_float(type)); };
  for (const GraphTensor& tensor : graph.tensors) note(tensor.dtype);
  for (const Op& op : graph.ops) {
    if (const auto* cast = std::get_if<CastOp>(&op.params)) note(cast->to);
    if (const auto* filled = std::get_if<ConstantOfShapeOp>(&op.params)) note(filled->dtype);
  }
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    const std::string& name = graph.tensors[i].name;
    names_.push_back(fresh(name.empty() ? "tensor_" + std::to_string(i) : name));
  }
}

const std::string& ModelWriter::name(TensorId id) const {
  static const std::string absent;
  return id < 0 ? absent : names_[static_cast<size_t>(id)];
}

std::string ModelWriter::fresh(const std::string& wish) {
  std::string name = wish;
  for (int i = 2; !taken_.insert(name).second; ++i) name = wish + "_" + std::to_string(i);
  return name;
}

std::string ModelWriter::constant(const std::string& wish, const HostTensor& value) {
  const std::string name = fresh(wish);
  put_tensor(value, name, *file_.add_initializer());
  return name;
}

std::string ModelWriter::integers(const std::string& wish, const std::vector<int64_t>& values) {
  return constant(wish, HostTensor::of(DType::i64, {static_cast<int64_t>(values.size())}, values));
}

::onnx::NodeProto& ModelWriter::node(const std::string& node_name, std::string_view type,
                                     const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  ::onnx::NodeProto& node = *file_.add_node();
  std::string unique = node_name;
  for (int i = 2; !node_names_.insert(unique).second; ++i) unique = node_name + "_" + std::to_string(i);
  node.set_name(unique);
  node.set_op_type(std::string(type));
  size_t given = inputs.size();
  while (given > 0 && inputs[given - 1].empty()) --given;
  for (size_t i = 0; i < given; ++i) node.add_input(inputs[i]);
  for (const std::string& output : outputs) node.add_output(output);
  return node;
}

namespace {

Result<std::string> bytes_of(const Graph& graph, DataFile* beside) {
  ::onnx::ModelProto model;
  const bool narrow =
      std::any_of(graph.tensors.begin(), graph.tensors.end(), [](const GraphTensor& t) { return is_narrow(t.dtype); });
  model.set_ir_version(narrow ? kNarrowIrVersion : kIrVersion);
  model.set_producer_name("sparkle");
  auto& opset = *model.add_opset_import();
  opset.set_domain("");
  opset.set_version(narrow ? kNarrowOpset : kOpset);
  auto& file = *model.mutable_graph();
  file.set_name(graph.name.empty() ? "graph" : graph.name);

  ModelWriter writer(graph, file);
  std::vector<bool> used(graph.tensors.size(), false);
  for (const Op& op : graph.ops)
    for (TensorId id : op.inputs)
      if (id >= 0) used[static_cast<size_t>(id)] = true;
  for (TensorId id : graph.outputs) used[static_cast<size_t>(id)] = true;
  size_t bytes = 0;
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    if (!graph.tensors[i].constant || !used[i]) continue;
    const HostTensor& value = *graph.tensors[i].constant;
    const std::string& name = writer.name(static_cast<TensorId>(i));
    if (beside && value.size_bytes() >= kSmall) {
      SPARKLE_CHECK(beside->put(value, name, *file.add_initializer()));
      continue;
    }
    bytes += static_cast<size_t>(value.size_bytes());
    if (bytes >= (size_t{1} << 31) - (1 << 20))
      return Error{Reason::size_overflow,
                   "Graph '" + graph.name + "' has more than 2 GiB of constants, the most that one file may hold."};
    put_tensor(value, name, *file.add_initializer());
  }
  for (TensorId id : graph.inputs) declare(graph.tensor(id), graph.tensor(id).dtype, writer.name(id), *file.add_input());
  for (const Op& op : graph.ops) SPARKLE_CHECK(write_op(writer, op));
  const auto types = known_types(graph);  // of a graph that was never bound tensors do not have theirs
  for (TensorId id : graph.outputs) {
    const GraphTensor& tensor = graph.tensor(id);
    declare(tensor, types[static_cast<size_t>(id)].value_or(tensor.dtype), writer.name(id), *file.add_output());
  }

  std::string text;
  if (!model.SerializeToString(&text))
    return Error{Reason::size_overflow, "Graph '" + graph.name + "' is larger than one ONNX file may be."};
  return text;
}

}  // namespace

Result<std::string> onnx_bytes(const Graph& graph) { return bytes_of(graph, nullptr); }

Status write_onnx(const Graph& graph, const std::string& path, Weights weights) {
  if (weights == Weights::inside) {
    SPARKLE_TRY(text, onnx_bytes(graph));
    return write_file(path, std::as_bytes(std::span(text)));
  }
  SPARKLE_TRY(data, NewFile::create(path + ".data"));
  DataFile beside{std::move(data), std::filesystem::path(path).filename().string() + ".data"};
  SPARKLE_TRY(text, bytes_of(graph, &beside));
  SPARKLE_CHECK(beside.file.finish());
  return write_file(path, std::as_bytes(std::span(text)));
}

}  // namespace sparkle
