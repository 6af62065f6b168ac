#include "onnx/tensor_proto.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace sparkle {
namespace {
using ::onnx::TensorProto;

// FLOAT8E4M3FN and those after it; the format's description here may be older than some of them.
constexpr int kFirstNarrow = 17;

constexpr struct {
  int onnx;
  DType type;
} kTypes[] = {
    {TensorProto::FLOAT, DType::f32},     {TensorProto::UINT8, DType::u8},       {TensorProto::INT8, DType::i8},
    {TensorProto::UINT16, DType::u16},    {TensorProto::INT16, DType::i16},      {TensorProto::INT32, DType::i32},
    {TensorProto::INT64, DType::i64},     {TensorProto::BOOL, DType::boolean},   {TensorProto::FLOAT16, DType::f16},
    {TensorProto::DOUBLE, DType::f64},    {TensorProto::UINT32, DType::u32},     {TensorProto::UINT64, DType::u64},
    {TensorProto::BFLOAT16, DType::bf16}, {kFirstNarrow, DType::f8e4m3fn},       {kFirstNarrow + 1, DType::f8e4m3fnuz},
    {kFirstNarrow + 2, DType::f8e5m2},    {kFirstNarrow + 3, DType::f8e5m2fnuz}, {kFirstNarrow + 4, DType::u4},
    {kFirstNarrow + 5, DType::i4},        {kFirstNarrow + 6, DType::f4e2m1},     {kFirstNarrow + 7, DType::f8e8m0},
    {kFirstNarrow + 8, DType::u2},        {kFirstNarrow + 9, DType::i2},
};
constexpr const char* kNames[] = {"UNDEFINED",      "FLOAT",      "UINT8",          "INT8",       "UINT16",    "INT16",
                                  "INT32",          "INT64",      "STRING",         "BOOL",       "FLOAT16",   "DOUBLE",
                                  "UINT32",         "UINT64",     "COMPLEX64",      "COMPLEX128", "BFLOAT16",  "FLOAT8E4M3FN",
                                  "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "UINT4",      "INT4",      "FLOAT4E2M1",
                                  "FLOAT8E8M0",     "UINT2",      "INT2",           "FLOAT6E2M3", "FLOAT6E3M2"};

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
    default: break;
  }
  // The narrow types: a byte of the packed form in each value.
  std::string bytes;
  for (const int32_t value : proto.int32_data()) bytes.push_back(static_cast<char>(value));
  if (static_cast<int64_t>(bytes.size()) != stored_bytes(tensor.dtype, tensor.elements())) return false;
  unpack(tensor.dtype, reinterpret_cast<const std::byte*>(bytes.data()), tensor.elements(), tensor.bytes.get());
  return true;
}

// Bytes that are moved instead of copied; smaller tensors get aligned memory of their own.
constexpr size_t kMoveFrom = 4096;

HostTensor take_raw(TensorProto& proto, DType type, const Dims& shape) {
  if (proto.raw_data().size() < kMoveFrom || stored_bits(type) < 8) {
    HostTensor tensor = HostTensor::zeros(type, shape);
    unpack(type, reinterpret_cast<const std::byte*>(proto.raw_data().data()), tensor.elements(), tensor.bytes.get());
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

int64_t stored_bytes(DType type, int64_t elements) {
  const int64_t per_byte = std::max<int64_t>(1, 8 / stored_bits(type));
  return per_byte > 1 ? elements / per_byte + (elements % per_byte != 0) : elements * size_of(type);
}

void unpack(DType type, const std::byte* from, int64_t elements, std::byte* to) {
  const int64_t bits = stored_bits(type), per_byte = 8 / bits;
  if (bits >= 8) {
    if (elements > 0) std::memcpy(to, from, static_cast<size_t>(elements * size_of(type)));
    return;
  }
  for (int64_t i = 0; i < elements; ++i)
    to[i] = (from[i / per_byte] >> (i % per_byte * bits)) & static_cast<std::byte>((1 << bits) - 1);
}

std::string onnx_type_name(int onnx_type) {
  const bool named = onnx_type >= 0 && onnx_type < static_cast<int>(std::size(kNames));
  return std::string(named ? kNames[onnx_type] : "unknown") + " (" + std::to_string(onnx_type) + ")";
}

Result<Dims> checked_shape(const std::string& what, const int64_t* sizes, int count) {
  if (count > kMaxRank)
    return Error{Reason::operator_not_served,
                 what + " has " + std::to_string(count) + " axes; at most " + std::to_string(kMaxRank) + " are supported."};
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

Result<HostTensor> take_tensor(TensorProto& proto, const std::string& what, const std::string& folder, ExternalMaps* maps) {
  const auto type = dtype_from_onnx(proto.data_type());
  if (!type)
    return Error{Reason::type_not_served,
                 what + " has element type " + onnx_type_name(proto.data_type()) + ", which is not supported."};
  if (proto.has_segment()) return Error{Reason::bad_model, what + " is stored in segments, which is not supported."};
  SPARKLE_TRY(shape, checked_shape(what, proto.dims().data(), proto.dims_size()));
  if (proto.data_location() == TensorProto::EXTERNAL) return read_external(proto, *type, shape, what, folder, maps);

  HostTensor tensor;
  tensor.dtype = *type;
  tensor.shape = shape;
  if (proto.has_raw_data() && !proto.raw_data().empty()) {
    const auto bytes = static_cast<size_t>(stored_bytes(*type, tensor.elements()));
    if (proto.raw_data().size() != bytes)
      return Error{Reason::bad_model, what + " holds " + std::to_string(proto.raw_data().size()) + " bytes where its shape " +
                                          shape.to_string() + " of " + std::string(name_of(*type)) + " needs " +
                                          std::to_string(bytes) + "."};
    tensor = take_raw(proto, *type, shape);
  } else {
    const int64_t wanted = stored_bits(*type) < 8 ? stored_bytes(*type, tensor.elements()) : tensor.elements();
    if (stored_count(proto, *type) != wanted) return wrong_count(what, stored_count(proto, *type), tensor);
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
  const int64_t bits = stored_bits(tensor.dtype);
  if (bits >= 8) {
    proto.set_raw_data(tensor.bytes.get(), static_cast<size_t>(tensor.size_bytes()));
    return;
  }
  std::string packed(static_cast<size_t>(stored_bytes(tensor.dtype, tensor.elements())), '\0');
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const auto element = static_cast<unsigned>(tensor.bytes[i]) & ((1u << bits) - 1);
    char& byte = packed[static_cast<size_t>(i * bits / 8)];
    byte = static_cast<char>(static_cast<unsigned char>(byte) | element << (i * bits % 8));
  }
  proto.set_raw_data(packed);
}

}  // namespace sparkle
