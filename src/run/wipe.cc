#include "run/wipe.h"

#include <algorithm>
#include <cstring>

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

}  // namespace sparkle
