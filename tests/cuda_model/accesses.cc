// By the byte: neighbouring launches may write neighbouring elements of any size.
#include "cuda_model/accesses.h"

#include <string_view>

namespace cuda_model {
namespace {

Accesses*& target() {
  static Accesses* to = nullptr;
  return to;
}

}  // namespace

void Accesses::note(const void* at, uint32_t bytes, bool writes) {
  const auto first = reinterpret_cast<uintptr_t>(at);
  for (uintptr_t byte = first; byte < first + bytes; ++byte) {
    if (!page_ || byte / kPage != last_) last_ = byte / kPage, page_ = &pages_[last_];
    (writes ? page_->written : page_->read)[byte % kPage] = true;
  }
}

uintptr_t Accesses::conflict(const Accesses& other) const {
  if (other.pages_.size() < pages_.size()) return other.conflict(*this);
  for (const auto& [number, mine] : pages_) {
    const auto at = other.pages_.find(number);
    if (at == other.pages_.end()) continue;
    const Page& theirs = at->second;
    const auto both = (mine.written & (theirs.read | theirs.written)) | (mine.read & theirs.written);
    if (const size_t byte = both._Find_first(); byte < kPage) return number * kPage + byte;
  }
  return 0;
}

void note_accesses(Accesses* to) { target() = to; }
void noted(const void* at, uint32_t bytes, const char* what) {
  if (!target()) return;
  const std::string_view name = what;
  target()->note(at, bytes, name != "ld.global" && name != "cp.async" && name != "a tensor copy");
}

}  // namespace cuda_model
