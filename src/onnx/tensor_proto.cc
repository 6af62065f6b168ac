#include "onnx/tensor_proto.h"

#include <cstring>
#include <limits>

namespace sparkle {
namespace {
using ::onnx::TensorProto;

constexpr struct {
  int onnx;
  DType type;
} kTypes[] = {
    {TensorProto::FLOAT, DType::f32},     {TensorProto::UINT8, DType::u8},     {TensorProto::INT8, DType::i8},
    {TensorProto::UINT16, DType::u16},    {TensorProto::INT16, DType::i16},    {TensorProto::INT32, DType::i32},
    {TensorProto::INT64, DType::i64},     {TensorProto::BOOL, DType::boolean}, {TensorProto::FLOAT16, DType::f16},
    {TensorProto::DOUBLE, DType::f64},    {TensorProto::UINT32, DType::u32},   {TensorProto::UINT64, DType::u64},
    {TensorProto::BFLOAT16, DType::bf16},
};
constexpr const char* kNames[] = {"UNDEFINED",      "FLOAT",      "UINT8",          "INT8",       "UINT16",   "INT16",
                                  "INT32",          "INT64",      "STRING",         "BOOL",       "FLOAT16",  "DOUBLE",
                                  "UINT32",         "UINT64",     "COMPLEX64",      "COMPLEX128", "BFLOAT16", "FLOAT8E4M3FN",
                                  "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "UINT4",      "INT4",     "FLOAT4E2M1"};

Error wrong_count(const std::string& what, int64_t found, const HostTensor& tensor) {
  return {Reason::bad_model, what + " holds " + std::to_string(found) + " elements where its shape " +
                                 tensor.shape.to_string() + " needs " + std::to_string(tensor.elements()) + "."};
}

// Typed storage: `To` is the tensor's element, each stored as one (wider) value of the field.
template <class To, class Field>
bool copy_values(const Field& field, HostTensor& tensor) {
  if (field.size() != tensor.elements()) return false;
  To* to = tensor.data<To>();
  for (int i = 0; i < field.size(); ++i) to[i] = static_cast<To>(field.Get(i));
  return true;
}

// Counts before allocating: a shape must not make a small file claim memory.
int64_t stored_count(const TensorProto& proto, DType type) {
  switch (type) {
    case DType::f32: return proto.float_data_size();
    case DType::f64: return proto.double_data_size();
    case DType::i64: return proto.int64_data_size();
    case DType::u32:
    case DType::u64: return proto.uint64_data_size();
    default: return proto.int32_data_size();
  }
}

bool copy_typed(const TensorProto& proto, HostTensor& tensor) {
  switch (tensor.dtype) {
    case DType::f32: return copy_values<float>(proto.float_data(), tensor);
    case DType::f64: return copy_values<double>(proto.double_data(), tensor);
    case DType::i64: return copy_values<int64_t>(proto.int64_data(), tensor);
    case DType::u32: return copy_values<uint32_t>(proto.uint64_data(), tensor);
    case DType::u64: return copy_values<uint64_t>(proto.uint64_data(), tensor);
    case DType::i32: return copy_values<int32_t>(proto.int32_data(), tensor);
    case DType::f16:
    case DType::bf16:
    case DType::u16: return copy_values<uint16_t>(proto.int32_data(), tensor);
    case DType::i16: return copy_values<int16_t>(proto.int32_data(), tensor);
    case DType::i8: return copy_values<int8_t>(proto.int32_data(), tensor);
    case DType::u8: return copy_values<uint8_t>(proto.int32_data(), tensor);
    case DType::boolean: return copy_values<uint8_t>(proto.int32_data(), tensor);
  }
  return false;
}

// Bytes that are moved instead of copied; smaller tensors get aligned memory of their own.
constexpr size_t kMoveFrom = 4096;

HostTensor take_raw(TensorProto& proto, DType type, const Dims& shape) {
  if (proto.raw_data().size() < kMoveFrom) {
    HostTensor tensor = HostTensor::zeros(type, shape);
    std::memcpy(tensor.bytes.get(), proto.raw_data().data(), proto.raw_data().size());
    return tensor;
  }
  const auto owner = std::make_shared<std::string>(std::move(*proto.mutable_raw_data()));
  HostTensor tensor;
  tensor.dtype = type;
  tensor.shape = shape;
  tensor.bytes = std::shared_ptr<std::byte[]>(owner, reinterpret_cast<std::byte*>(owner->data()));
  return tensor;
}
}  // namespace

std::optional<DType> dtype_from_onnx(int onnx_type) {
  for (const auto& row : kTypes)
    if (row.onnx == onnx_type) return row.type;
  return std::nullopt;
}

int onnx_type_of(DType type) {
  for (const auto& row : kTypes)
    if (row.type == type) return row.onnx;
  return TensorProto::UNDEFINED;
}

std::string onnx_type_name(int onnx_type) {
  const bool named = onnx_type >= 0 && onnx_type < static_cast<int>(std::size(kNames));
  return std::string(named ? kNames[onnx_type] : "unknown") + " (" + std::to_string(onnx_type) + ")";
}

Result<Dims> checked_shape(const std::string& what, const int64_t* sizes, int count) {
  if (count > kMaxRank)
    return Error{Reason::bad_shape,
                 what + " has " + std::to_string(count) + " axes; at most " + std::to_string(kMaxRank) + " are served."};
  Dims shape;
  int64_t elements = 1;
  for (int i = 0; i < count; ++i) {
    if (sizes[i] < 0) return Error{Reason::bad_shape, what + " has the negative size " + std::to_string(sizes[i]) + "."};
    // Eight bytes are the widest element: the product of bytes fits too.
    if (sizes[i] != 0 && elements > std::numeric_limits<int64_t>::max() / 8 / sizes[i])
      return Error{Reason::size_overflow, what + " has more elements than can be addressed."};
    elements *= sizes[i];
    shape.push_back(sizes[i]);
  }
  return shape;
}

Result<HostTensor> take_tensor(TensorProto& proto, const std::string& what, const std::string& folder) {
  const auto type = dtype_from_onnx(proto.data_type());
  if (!type)
    return Error{Reason::type_not_served,
                 what + " has element type " + onnx_type_name(proto.data_type()) + ", which is not served."};
  if (proto.has_segment()) return Error{Reason::bad_model, what + " is stored in segments, which is not served."};
  SPARKLE_TRY(shape, checked_shape(what, proto.dims().data(), proto.dims_size()));
  if (proto.data_location() == TensorProto::EXTERNAL) return read_external(proto, *type, shape, what, folder);

  HostTensor tensor;
  tensor.dtype = *type;
  tensor.shape = shape;
  if (proto.has_raw_data() && !proto.raw_data().empty()) {
    const size_t bytes = static_cast<size_t>(tensor.size_bytes());
    if (proto.raw_data().size() != bytes)
      return Error{Reason::bad_model, what + " holds " + std::to_string(proto.raw_data().size()) + " bytes where its shape " +
                                          shape.to_string() + " of " + std::string(name_of(*type)) + " needs " +
                                          std::to_string(bytes) + "."};
    tensor = take_raw(proto, *type, shape);
  } else {
    if (stored_count(proto, *type) != tensor.elements()) return wrong_count(what, stored_count(proto, *type), tensor);
    tensor = HostTensor::zeros(*type, shape);
    if (!copy_typed(proto, tensor)) return wrong_count(what, stored_count(proto, *type), tensor);
  }
  if (*type == DType::boolean)  // any byte but 0 means true: a bool object must hold 0 or 1
    for (int64_t i = 0; i < tensor.elements(); ++i) tensor.data<uint8_t>()[i] = tensor.data<uint8_t>()[i] != 0;
  return tensor;
}

void put_tensor(const HostTensor& tensor, const std::string& name, TensorProto& proto) {
  proto.set_name(name);
  proto.set_data_type(onnx_type_of(tensor.dtype));
  for (int64_t size : tensor.shape) proto.add_dims(size);
  proto.set_raw_data(tensor.bytes.get(), static_cast<size_t>(tensor.size_bytes()));
}

}  // namespace sparkle
