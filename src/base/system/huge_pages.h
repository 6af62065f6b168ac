// Large pages for large memory: with pages of 4 KB a matrix of tens of megabytes misses the translation cache at every row.
#pragma once

#include <cstddef>

namespace sparkle {

// Asks the system for large pages in the whole ones of [memory, memory + bytes), before they are touched. A wish: where the
// system has none or is set never to give any, nothing changes.
void prefer_huge_pages(void* memory, size_t bytes) noexcept;

}  // namespace sparkle
