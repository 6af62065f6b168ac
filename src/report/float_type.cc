#include "report/float_type.h"

#include <algorithm>

#include "base/system/out_of_memory.h"
#include "families/values/convert.h"

namespace sparkle {

Result<HostTensor> in_float_type(const HostTensor& tensor, DType type) {
  if (tensor.dtype == type || !is_float(tensor.dtype)) return tensor;
  SPARKLE_TRY(result, allocate_tensor(type, tensor.shape, "The tensor in another type"));
  // By way of double, which holds every value of the others: rounded once.
  constexpr int64_t kStep = 1024;
  double row[kStep];
  for (int64_t at = 0, count = tensor.elements(); at < count; at += kStep) {
    const int64_t some = std::min(kStep, count - at);
    load_row(tensor.dtype, tensor.bytes.get() + at * size_of(tensor.dtype), 1, some, row);
    store_row(type, row, some, result.bytes.get() + at * size_of(type), 1);
  }
  return result;
}

}  // namespace sparkle
