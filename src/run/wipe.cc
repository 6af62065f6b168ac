#include "run/wipe.h"

#include <algorithm>
#include <cstring>

#include "families/loops/walk.h"

namespace sparkle {

constexpr int64_t kWipedAtOnce = int64_t{16} << 20;

Status wipe(Backend& backend, Buffer& buffer, std::byte to) {
  if (std::byte* host = buffer.host()) {
    std::memset(host, std::to_integer<int>(to), static_cast<size_t>(buffer.bytes()));
    return ok();
  }
  const int64_t size = std::min(buffer.bytes(), kWipedAtOnce);
  SPARKLE_TRY(staging, backend.allocate(size, MemoryKind::staging));
  std::memset(staging->host(), std::to_integer<int>(to), static_cast<size_t>(size));
  std::vector<CopyRegion> regions;
  for (int64_t at = 0; at < buffer.bytes(); at += size)
    regions.push_back({staging.get(), 0, &buffer, at, std::min(size, buffer.bytes() - at)});
  SPARKLE_TRY(token, backend.copy(regions, {}));
  return backend.wait(token);
}

Status wipe_elements(Backend& backend, Buffer& buffer, int64_t offset, const TensorDesc& desc, std::byte to) {
  if (desc.elements() == 0) return ok();
  int64_t first = desc.layout.offset, last = first;
  for (int i = 0; i < desc.shape.size(); ++i) {
    const int64_t across = (desc.shape[i] - 1) * desc.layout.strides[i];
    (across < 0 ? first : last) += across;
  }
  const int64_t size = size_of(desc.dtype), begin = offset + first * size, bytes = (last - first + 1) * size;
  SPARKLE_TRY(staging, backend.allocate(bytes, MemoryKind::staging));
  const CopyRegion down{&buffer, begin, staging.get(), 0, bytes}, up{staging.get(), 0, &buffer, begin, bytes};
  SPARKLE_TRY(here, backend.copy({&down, 1}, {}));
  SPARKLE_CHECK(backend.wait(here));
  TensorView view{staging->host(), desc};
  view.desc.layout.offset -= first;
  for_each_index(desc.shape, [&](const Dims& at) {
    std::memset(element_at(view, at), std::to_integer<int>(to), static_cast<size_t>(size));
  });
  SPARKLE_TRY(there, backend.copy({&up, 1}, {}));
  return backend.wait(there);
}

}  // namespace sparkle
