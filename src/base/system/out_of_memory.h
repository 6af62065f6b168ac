// Memory that runs out is an Error. Where a size comes from outside (a shape, a model, a picture) allocate_tensor() says so at
// once; the library's borders run their work behind guard_memory(), so that no std::bad_alloc of a container leaves them.
#pragma once

#include <new>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/result.h"
#include "base/tensor.h"

namespace sparkle {

// Bytes of a tensor; nothing where a size is negative or the product overflows.
std::optional<int64_t> tensor_bytes(DType dtype, const Dims& shape);

// Uninitialised memory for a tensor that errors call `what` ("Input 'x'"). Errors: out_of_memory, size_overflow.
Result<HostTensor> allocate_tensor(DType dtype, const Dims& shape, const std::string& what);

// `what`: the work as the start of a sentence ("Planning the model 'm'").
Error out_of_memory(const char* what);

// The result of `work`, or out_of_memory if an allocation in it failed.
template <class Work>
auto guard_memory(const char* what, Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return out_of_memory(what);
  } catch (const std::length_error&) {  // a container asked for more than there can be
    return out_of_memory(what);
  }
}

}  // namespace sparkle
