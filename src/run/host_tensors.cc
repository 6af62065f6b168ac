#include "run/host_tensors.h"

#include <algorithm>
#include <cstring>

namespace sparkle {

Result<std::shared_ptr<Buffer>> input_buffer(Backend& backend, const HostTensor& tensor) {
  SPARKLE_TRY(own, backend.import(tensor.bytes.get(), std::max<int64_t>(tensor.size_bytes(), 1)));
  if (own) return own;
  SPARKLE_TRY(buffer, backend.allocate(std::max<int64_t>(tensor.size_bytes(), 1), MemoryKind::device));
  backend.count_host_transfer();
  if (std::byte* host = buffer->host()) {
    std::memcpy(host, tensor.bytes.get(), static_cast<size_t>(tensor.size_bytes()));
    return buffer;
  }
  SPARKLE_TRY(staging, backend.allocate(std::max<int64_t>(tensor.size_bytes(), 1), MemoryKind::staging));
  std::memcpy(staging->host(), tensor.bytes.get(), static_cast<size_t>(tensor.size_bytes()));
  const CopyRegion region{staging.get(), 0, buffer.get(), 0, tensor.size_bytes()};
  SPARKLE_TRY(token, backend.copy({&region, 1}, {}));
  SPARKLE_CHECK(backend.wait(token));
  return buffer;
}

void end_after_found_rows(HostTensor& tensor) {
  const int64_t columns = tensor.elements() / std::max<int64_t>(1, tensor.shape[0]);
  const auto* values = tensor.data<int64_t>();
  int64_t rows = 0;
  while (rows < tensor.shape[0] && values[rows * columns] >= 0) ++rows;
  tensor.shape[0] = rows;
}

bool same_bytes(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto bytes = static_cast<size_t>(a[i].size_bytes());
    if (!(a[i].shape == b[i].shape) || (bytes > 0 && std::memcmp(a[i].bytes.get(), b[i].bytes.get(), bytes) != 0)) return false;
  }
  return true;
}

}  // namespace sparkle
