#include "base/system/out_of_memory.h"

namespace sparkle {

std::optional<int64_t> tensor_bytes(DType dtype, const Dims& shape) {
  int64_t bytes = size_of(dtype);
  bool empty = false, fits = true;
  for (const int64_t size : shape) {
    if (size < 0) return std::nullopt;
    empty |= size == 0;
    if (size > 0) fits &= !__builtin_mul_overflow(bytes, size, &bytes);
  }
  if (empty) return 0;
  return fits ? std::optional(bytes) : std::nullopt;
}

Result<HostTensor> allocate_tensor(DType dtype, const Dims& shape, const std::string& what) {
  const auto bytes = tensor_bytes(dtype, shape);
  if (!bytes) return Error{Reason::size_overflow, what + " of shape " + shape.to_string() + " is more than can be addressed."};
  try {
    return HostTensor::uninitialized(dtype, shape);
  } catch (const std::bad_alloc&) {
    return Error{Reason::out_of_memory, what + " of shape " + shape.to_string() + " needs " + std::to_string(*bytes) +
                                            " bytes, more than there is memory for; give smaller inputs."};
  }
}

Error out_of_memory(const char* what) {
  return {Reason::out_of_memory, std::string(what) + " needs more memory than there is; give smaller inputs."};
}

}  // namespace sparkle
