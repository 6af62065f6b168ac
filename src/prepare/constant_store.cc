#include "prepare/constant_store.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/system/out_of_memory.h"

namespace sparkle {

// Plain constants are used where they are if the host's memory is the device's, else uploaded through staging memory.
Result<std::shared_ptr<Buffer>> ConstantStore::upload(const std::byte* bytes, int64_t size) {
  SPARKLE_TRY(buffer, backend_.allocate(size, MemoryKind::weights));
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
  entry.source_bytes = constant.value.size_bytes();
  if (packed > 0) {
    SPARKLE_TRY(buffer, backend_.allocate(packed, MemoryKind::weights));
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

Result<std::shared_ptr<Buffer>> ConstantStore::place(std::span<const std::byte> bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  // Kernels do not write into constants; an import for reading alone is no kind of its own.
  SPARKLE_TRY(own, backend_.import(const_cast<std::byte*>(bytes.data()), size));
  if (own) return own;
  return upload(bytes.data(), size);
}

int64_t ConstantStore::bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t total = 0;
  for (const auto& [key, entry] : entries_)
    if (entry.buffer && !entry.imported) total += entry.buffer->bytes();
  return total;
}

void add_original(Originals& originals, const HostTensor& value) {
  if (!value.bytes) return;
  int64_t& bytes = originals[value.bytes.get()];
  bytes = std::max(bytes, value.size_bytes());
}

void ConstantStore::add_originals(Originals& originals) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, entry] : entries_) {
    if (!entry.source) continue;
    int64_t& bytes = originals[entry.source.get()];
    bytes = std::max(bytes, entry.source_bytes);
  }
}

Result<ConstantMemory> ConstantStore::foresee(std::span<const PlanConstant> constants, std::span<const ConstantUse> uses,
                                              const Originals& originals, bool release) const {
  std::map<const std::byte*, int> left;  // uses to come per original
  for (const ConstantUse& use : uses) ++left[constants[use.constant].value.bytes.get()];
  int64_t held = bytes(), all = held;
  std::set<const std::byte*> in_place;
  for (const auto& [address, size] : originals) {
    all += size;
    if (!release || left.count(address) > 0) held += size;
  }
  ConstantMemory memory{held, all};
  const std::lock_guard lock(mutex_);
  std::set<Key> added;
  for (const ConstantUse& use : uses) {
    const HostTensor& value = constants[use.constant].value;
    const Key key = key_of(constants[use.constant], *use.kernel, use.input);
    const auto found = entries_.find(key);
    const bool here = found != entries_.end() && found->second.buffer;
    if (use.kernel->packed_bytes(use.input) > 0) {
      if (!here && added.insert(key).second) held += use.kernel->packed_bytes(use.input);
    } else {
      SPARKLE_TRY(own, backend_.import(value.bytes.get(), value.size_bytes()));
      if (own) in_place.insert(value.bytes.get());
      else if (!here && added.insert(key).second) held += value.size_bytes();
    }
    memory.peak = std::max(memory.peak, held);
    const auto original = originals.find(value.bytes.get());
    if (release && --left[value.bytes.get()] == 0 && !in_place.count(value.bytes.get()) && original != originals.end())
      held -= original->second;
  }
  memory.resident = held;
  return memory;
}

int64_t ConstantStore::collect() {
  const std::lock_guard lock(mutex_);
  int64_t bytes = 0;
  for (auto at = entries_.begin(); at != entries_.end();) {
    const Entry& entry = at->second;
    if (entry.buffer && entry.buffer.use_count() > 1) {
      ++at;
      continue;
    }
    if (entry.buffer && !entry.imported) bytes += entry.buffer->bytes();
    if (entry.source && entry.source.use_count() == 1) bytes += entry.source_bytes;
    at = entries_.erase(at);
  }
  return bytes;
}

void ConstantStore::release(const PlanConstant& constant) {
  const std::lock_guard lock(mutex_);
  for (auto& [key, entry] : entries_)
    if (key.first == constant.value.bytes.get() && !entry.imported) entry.source.reset(), entry.source_bytes = 0;
}

}  // namespace sparkle
