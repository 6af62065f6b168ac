// Memory of the stand-in: each allocation lies between pages that nobody may touch and ends at the last of its own, and its
// addresses never come again. Device memory is closed to the host but while kernels and copies run.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "model_driver.h"

namespace cuda_model::driver {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kAlign = 256;           // of device memory, as drivers give it
constexpr unsigned char kPoison = 0xff;  // fresh memory: NaN in any float

// What the addresses were of, for the handler of faults, which may take no lock.
constexpr size_t kMostNoted = 1 << 16;
struct Noted {
  std::byte *begin, *end, *first;
  size_t bytes;
  bool pinned, freed;
};
Noted noted[kMostNoted];
size_t noted_count = 0;

struct sigaction before;

void on_fault(int signal, siginfo_t* info, void* more) {
  const auto* at = static_cast<std::byte*>(info->si_addr);
  for (size_t i = 0; i < noted_count; ++i) {
    const Noted& n = noted[i];
    if (at < n.begin || at >= n.end) continue;
    char text[256];
    const long place = static_cast<long>(at - n.first);
    const char* what = n.freed                                            ? "was freed"
                       : place < 0 || place >= static_cast<long>(n.bytes) ? "does not reach so far"
                                                                          : "is the device's, and the host touched it";
    const int length = std::snprintf(text, sizeof text, "cuda_model: byte %ld of an allocation of %zu bytes, which %s\n", place,
                                     n.bytes, what);
    (void)!::write(2, text, static_cast<size_t>(length));
    ::_exit(134);
  }
  // Not ours.
  if (before.sa_flags & SA_SIGINFO && before.sa_sigaction) return before.sa_sigaction(signal, info, more);
  ::signal(SIGSEGV, SIG_DFL);
}

void watch() {
  static const bool watching = [] {
    struct sigaction action{};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSEGV, &action, &before);
    return true;
  }();
  (void)watching;
}

}  // namespace

CuResult Driver::allocate(Context& context, size_t bytes, bool pinned, std::byte** memory) {
  if (bytes == 0) return CuResult::invalid_value;
  size_t used = 0;
  for (const auto& [first, a] : allocations)
    if (!a.pinned) used += a.bytes;
  if (!pinned && used + bytes > devices[static_cast<size_t>(context.device)].memory) return CuResult::out_of_memory;
  watch();
  const size_t own = (bytes + kAlign - 1) / kAlign * kAlign, pages = (own + kPage - 1) / kPage * kPage;
  const size_t mapped = pages + 2 * kPage;
  void* mapping = ::mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return CuResult::out_of_memory;
  auto* begin = static_cast<std::byte*>(mapping);
  ::mprotect(begin + kPage, pages, PROT_READ | PROT_WRITE);
  std::memset(begin + kPage, kPoison, pages);
  if (!pinned) ::mprotect(begin + kPage, pages, PROT_NONE);
  std::byte* first = begin + kPage + pages - own;
  allocations[first] = {&context, begin, mapped, bytes, pinned};
  if (noted_count < kMostNoted) noted[noted_count++] = {begin, begin + mapped, first, bytes, pinned, false};
  ++counts.allocations;
  allow_memory(first, bytes);
  *memory = first;
  return CuResult::success;
}

CuResult Driver::release(std::byte* memory, bool pinned) {
  const auto at = allocations.find(memory);
  if (at == allocations.end() || at->second.pinned != pinned) {
    tell("freed what is no allocation");
    return CuResult::invalid_value;
  }
  // Freeing waits for all that runs.
  const CuResult done = advance_all(*at->second.owner);
  const Allocation a = at->second;
  // What lies between the last byte and the end of the page is nobody's.
  if (!pinned) ::mprotect(a.mapping + kPage, a.mapped - 2 * kPage, PROT_READ);
  for (std::byte* p = memory + a.bytes; p < a.mapping + a.mapped - kPage; ++p)
    if (static_cast<unsigned char>(*p) != kPoison) {
      tell("something was written behind an allocation of " + std::to_string(a.bytes) + " bytes");
      ::_exit(134);
    }
  forget_memory(memory);
  // The addresses stay taken, the pages go.
  ::madvise(a.mapping + kPage, a.mapped - 2 * kPage, MADV_DONTNEED);
  ::mprotect(a.mapping, a.mapped, PROT_NONE);
  for (size_t i = 0; i < noted_count; ++i)
    if (noted[i].first == memory) noted[i].freed = true;
  allocations.erase(at);
  return done;
}

const Allocation* Driver::holder(CuAddress address, size_t bytes) {
  auto* first = reinterpret_cast<std::byte*>(address);
  auto at = allocations.upper_bound(first);
  if (at == allocations.begin()) return nullptr;
  --at;
  const auto from = static_cast<size_t>(first - at->first);
  return from < at->second.bytes && bytes <= at->second.bytes - from ? &at->second : nullptr;
}

void Driver::open_device_memory(bool open) {
  for (const auto& [first, a] : allocations)
    if (!a.pinned) ::mprotect(a.mapping + kPage, a.mapped - 2 * kPage, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

}  // namespace cuda_model::driver
