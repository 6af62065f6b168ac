#include "backends/cpu/weight_slabs.h"

#include <new>

#include "base/system/huge_pages.h"

namespace sparkle::cpu {
namespace {
constexpr size_t kPage = size_t{2} << 20, kSlab = 8 * kPage, kLine = 64;
constexpr size_t rounded_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }
}  // namespace

struct WeightSlabs::Slab {
  explicit Slab(size_t size)
      : memory(static_cast<std::byte*>(::operator new(size, std::align_val_t{kPage}, std::nothrow))), capacity(size) {
    if (memory) prefer_huge_pages(memory, capacity);
  }
  ~Slab() { ::operator delete(memory, std::align_val_t{kPage}); }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  std::byte* memory;
  size_t capacity, used = 0;
};

class WeightSlabs::Part final : public Buffer {
 public:
  Part(std::shared_ptr<Slab> slab, std::byte* memory, int64_t bytes) : slab_(std::move(slab)), memory_(memory), bytes_(bytes) {}
  int64_t bytes() const override { return bytes_; }
  std::byte* host() override { return memory_; }

 private:
  std::shared_ptr<Slab> slab_;
  std::byte* memory_;
  int64_t bytes_;
};

std::shared_ptr<Buffer> WeightSlabs::allocate(int64_t bytes) {
  // A line more: whole-vector readers may look behind the end.
  const size_t size = rounded_up(static_cast<size_t>(bytes), kLine) + kLine;
  const auto part_of = [&](std::shared_ptr<Slab> slab) {
    std::byte* memory = slab->memory + slab->used;
    slab->used += size;
    return std::make_shared<Part>(std::move(slab), memory, bytes);
  };
  if (size >= kSlab / 2) {
    auto own = std::make_shared<Slab>(size);
    return own->memory ? part_of(std::move(own)) : nullptr;
  }
  const std::lock_guard lock(mutex_);
  auto slab = open_.lock();
  if (!slab || slab->used + size > slab->capacity) {
    slab = std::make_shared<Slab>(kSlab);
    if (!slab->memory) return nullptr;
    open_ = slab;
  }
  return part_of(std::move(slab));
}

}  // namespace sparkle::cpu
