#include "run/constant_store.h"

#include <cstring>
#include <set>

#include "base/out_of_memory.h"

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

ConstantStore::Key ConstantStore::key_of(const PlanConstant& constant, const Kernel& kernel, int input) {
  return {constant.value.bytes.get(), kernel.packed_bytes(input) > 0 ? kernel.packed_key(input) : std::string()};
}

Result<std::shared_ptr<Buffer>> ConstantStore::get(const PlanConstant& constant, const Kernel& kernel, int input) {
  const int64_t packed = kernel.packed_bytes(input);
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[key_of(constant, kernel, input)];
  if (entry.buffer) return entry.buffer;
  entry.source = constant.value.bytes;
  if (packed > 0) {
    SPARKLE_TRY(buffer, backend_.allocate(packed, MemoryKind::device));
    if (std::byte* host = buffer->host()) {
      kernel.pack(input, constant.value.bytes.get(), host, backend_.executor());
      entry.buffer = std::move(buffer);
    } else {
      SPARKLE_TRY(image, allocate_tensor(DType::u8, {packed}, "The constant '" + constant.name + "'"));
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

int64_t ConstantStore::bytes_with(std::span<const PlanConstant> constants, std::span<const ConstantUse> uses) const {
  int64_t total = bytes();
  const std::lock_guard lock(mutex_);
  std::set<Key> added;
  for (const ConstantUse& use : uses) {
    const PlanConstant& constant = constants[use.constant];
    const Key key = key_of(constant, *use.kernel, use.input);
    const auto found = entries_.find(key);
    if ((found != entries_.end() && found->second.buffer) || !added.insert(key).second) continue;
    const int64_t packed = use.kernel->packed_bytes(use.input);
    total += packed > 0 ? packed : constant.value.size_bytes();
  }
  return total;
}

}  // namespace sparkle
