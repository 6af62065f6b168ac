#include "run/constant_store.h"

#include <cstring>

namespace sparkle {

// Plain constants are used where they are if the host's memory is the device's, else uploaded through staging memory.
Result<std::shared_ptr<Buffer>> ConstantStore::upload(const std::byte* bytes, int64_t size) {
  SPARKLE_TRY(buffer, backend_.allocate(size, MemoryKind::device));
  if (std::byte* host = buffer->host()) {
    std::memcpy(host, bytes, static_cast<size_t>(size));
    return buffer;
  }
  SPARKLE_TRY(staging, backend_.allocate(size, MemoryKind::staging));
  std::memcpy(staging->host(), bytes, static_cast<size_t>(size));
  const CopyRegion region{staging.get(), 0, buffer.get(), 0, size};
  SPARKLE_TRY(token, backend_.copy({&region, 1}, {}));
  SPARKLE_CHECK(backend_.wait(token));
  return buffer;
}

Result<std::shared_ptr<Buffer>> ConstantStore::get(const PlanConstant& constant, const Kernel& kernel, int input) {
  const int64_t packed = kernel.packed_bytes(input);
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[{constant.value.bytes.get(), packed > 0 ? kernel.packed_key(input) : std::string()}];
  if (entry.buffer) return entry.buffer;
  entry.source = constant.value.bytes;
  if (packed > 0) {
    SPARKLE_TRY(buffer, backend_.allocate(packed, MemoryKind::device));
    if (std::byte* host = buffer->host()) {
      kernel.pack(input, constant.value.bytes.get(), host, backend_.executor());
      entry.buffer = std::move(buffer);
    } else {
      const auto image = HostTensor::zeros(DType::u8, {packed});
      kernel.pack(input, constant.value.bytes.get(), image.bytes.get(), backend_.executor());
      SPARKLE_TRY(uploaded, upload(image.bytes.get(), packed));
      entry.buffer = std::move(uploaded);
    }
    return entry.buffer;
  }
  SPARKLE_TRY(own, backend_.import(constant.value.bytes.get(), constant.value.size_bytes()));
  if (own) {
    entry.buffer = std::move(own);
    entry.imported = true;
  } else {
    SPARKLE_TRY(uploaded, upload(constant.value.bytes.get(), constant.value.size_bytes()));
    entry.buffer = std::move(uploaded);
  }
  return entry.buffer;
}

int64_t ConstantStore::bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t total = 0;
  for (const auto& [key, entry] : entries_)
    if (entry.buffer) total += entry.buffer->bytes();
  return total;
}

}  // namespace sparkle
