// Tensors and values of sparkle.h, and memory of the device.
#include <cstring>

#include "api/handles.h"

namespace sparkle::api {

static_assert(SPARKLE_MAX_RANK == kMaxRank);
static_assert(SPARKLE_F32 == static_cast<int>(DType::f32) && SPARKLE_BF16 == static_cast<int>(DType::bf16) &&
              SPARKLE_U8 == static_cast<int>(DType::u8) && SPARKLE_I64 == static_cast<int>(DType::i64) &&
              SPARKLE_BOOL == static_cast<int>(DType::boolean) && SPARKLE_F8E4M3FN == static_cast<int>(DType::f8e4m3fn) &&
              SPARKLE_F8E8M0 == static_cast<int>(DType::f8e8m0) && SPARKLE_I4 == static_cast<int>(DType::i4) &&
              SPARKLE_U2 == static_cast<int>(DType::u2) && SPARKLE_U2 + 1 == kDTypes);

namespace {

bool is_type(sparkle_type type) { return type >= SPARKLE_F32 && type <= SPARKLE_U2; }

Error not_a_tensor(const char* what, size_t index, const std::string& why) {
  return {Reason::bad_usage, std::string(what) + " " + std::to_string(index) + " " + why + "."};
}

}  // namespace

Result<std::vector<HostTensor>> borrow(const sparkle_tensor* tensors, size_t count, const char* what) {
  std::vector<HostTensor> list;
  if (!tensors && count > 0) return Error{Reason::bad_usage, std::string("The list of ") + what + "s is NULL."};
  for (size_t i = 0; i < count; ++i) {
    const sparkle_tensor& t = tensors[i];
    if (!is_type(t.type)) return not_a_tensor(what, i, "has the type " + std::to_string(t.type) + ", which does not exist");
    if (t.rank < 0 || t.rank > SPARKLE_MAX_RANK)
      return not_a_tensor(what, i, "has " + std::to_string(t.rank) + " axes; there may be 0 to 8");
    HostTensor tensor;
    tensor.dtype = static_cast<DType>(t.type);
    int64_t elements = 1;
    for (int32_t a = 0; a < t.rank; ++a) {
      if (t.shape[a] < 0 || __builtin_mul_overflow(elements, t.shape[a], &elements) || elements > INT64_MAX / 8)
        return not_a_tensor(what, i, "has a size that is negative or too large along axis " + std::to_string(a));
      tensor.shape.push_back(t.shape[a]);
    }
    tensor.bytes = std::shared_ptr<std::byte[]>(static_cast<std::byte*>(t.data), [](std::byte*) {});
    list.push_back(std::move(tensor));
  }
  return list;
}

Result<std::vector<std::pair<std::string, Dims>>> named_shapes(const char* const* names, const sparkle_tensor* shapes,
                                                               size_t count) {
  if (count > 0 && !names) return Error{Reason::bad_usage, "The list of the names of shapes is NULL."};
  SPARKLE_TRY(borrowed, borrow(shapes, count, "shape"));
  std::vector<std::pair<std::string, Dims>> named;
  for (size_t i = 0; i < count; ++i) {
    if (!names[i]) return Error{Reason::bad_usage, "The name of shape " + std::to_string(i) + " is NULL."};
    named.emplace_back(names[i], borrowed[i].shape);
  }
  return named;
}

sparkle_tensor describe(const TensorDesc& desc, void* data) {
  sparkle_tensor t{};
  t.type = static_cast<sparkle_type>(desc.dtype);
  t.rank = desc.shape.size();
  for (int a = 0; a < desc.shape.size(); ++a) t.shape[a] = desc.shape[a];
  t.data = data;
  return t;
}

namespace {

// Moves bytes between the host and a part of a buffer, by way of staging memory where the host cannot see the buffer.
Status move_bytes(sparkle_buffer& b, int64_t offset, std::byte* host, int64_t bytes, bool into_buffer) {
  if (offset < 0 || bytes < 0 || offset > b.buffer->bytes() - bytes)
    return Error{Reason::bad_usage, "The buffer has " + std::to_string(b.buffer->bytes()) + " bytes; " + std::to_string(bytes) +
                                        " from byte " + std::to_string(offset) + " on are not inside."};
  if (bytes == 0) return ok();
  b.backend->count_host_transfer();
  SPARKLE_TRY(staging, b.backend->allocate(bytes, MemoryKind::staging));
  if (into_buffer) std::memcpy(staging->host(), host, static_cast<size_t>(bytes));
  const CopyRegion in{staging.get(), 0, b.buffer.get(), offset, bytes}, out{b.buffer.get(), offset, staging.get(), 0, bytes};
  SPARKLE_TRY(token, b.backend->copy({into_buffer ? &in : &out, 1}, Token{b.last_token}));
  SPARKLE_CHECK(b.backend->wait(token));
  if (!into_buffer) std::memcpy(host, staging->host(), static_cast<size_t>(bytes));
  return ok();
}

}  // namespace
}  // namespace sparkle::api

using sparkle::Error;
using sparkle::Reason;
using sparkle::Status;
using sparkle::api::guarded;

size_t sparkle_type_size(sparkle_type type) {
  return sparkle::api::is_type(type) ? static_cast<size_t>(sparkle::size_of(static_cast<sparkle::DType>(type))) : 0;
}

sparkle_tensor sparkle_value_tensor(const sparkle_value* value) {
  if (!value) return {};
  return sparkle::api::describe(sparkle::dense_desc(value->tensor.dtype, value->tensor.shape), value->tensor.bytes.get());
}
void sparkle_value_release(sparkle_value* value) { delete value; }

sparkle_status sparkle_buffer_allocate(sparkle_device* device, int64_t bytes, sparkle_buffer** buffer) {
  return guarded([&]() -> Status {
    if (!device || !buffer || bytes < 0)
      return Error{Reason::bad_usage, "sparkle_buffer_allocate needs a device, a size and a place."};
    SPARKLE_TRY(made, device->backend->allocate(bytes, sparkle::MemoryKind::device));
    *buffer = new sparkle_buffer{device->backend, std::move(made)};
    return sparkle::ok();
  });
}

sparkle_status sparkle_buffer_import(sparkle_device* device, void* memory, int64_t bytes, sparkle_buffer** buffer) {
  return guarded([&]() -> Status {
    if (!device || !buffer || !memory || bytes < 0)
      return Error{Reason::bad_usage, "sparkle_buffer_import needs a device, memory, its size and a place."};
    SPARKLE_TRY(made, device->backend->import(memory, bytes));
    if (!made)
      return Error{Reason::device_unusable, "The device '" + device->backend->device().name +
                                                "' cannot work on host memory; use sparkle_buffer_allocate."};
    *buffer = new sparkle_buffer{device->backend, std::move(made)};
    return sparkle::ok();
  });
}

void sparkle_buffer_release(sparkle_buffer* buffer) { delete buffer; }
int64_t sparkle_buffer_bytes(const sparkle_buffer* buffer) { return buffer ? buffer->buffer->bytes() : 0; }
void* sparkle_buffer_host(sparkle_buffer* buffer) { return buffer ? buffer->buffer->host() : nullptr; }

sparkle_status sparkle_buffer_write(sparkle_buffer* buffer, int64_t offset, const void* from, int64_t bytes) {
  return guarded([&]() -> Status {
    if (!buffer || (!from && bytes != 0))
      return Error{Reason::bad_usage, "sparkle_buffer_write needs a buffer and memory to read."};
    return sparkle::api::move_bytes(*buffer, offset, static_cast<std::byte*>(const_cast<void*>(from)), bytes, true);
  });
}

sparkle_status sparkle_buffer_read(sparkle_buffer* buffer, int64_t offset, void* to, int64_t bytes) {
  return guarded([&]() -> Status {
    if (!buffer || (!to && bytes != 0))
      return Error{Reason::bad_usage, "sparkle_buffer_read needs a buffer and memory to write."};
    return sparkle::api::move_bytes(*buffer, offset, static_cast<std::byte*>(to), bytes, false);
  });
}
