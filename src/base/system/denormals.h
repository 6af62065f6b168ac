// Flushing denormals to zero. Policy: inside a Session's run, denormal inputs and results of float arithmetic are taken as
// zero, because an FMA that meets one is up to 54 times slower (measured on an AVX-512 Xeon; decaying activations do produce
// them) and a number below 1.2e-38 never matters to a network. Kernels that compute in f64 keep denormals: whoever asks for
// double asks for its range. The caller's own floating-point state is left as it was.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sparkle {

// Denormals are zero in this thread until the end of the scope; does nothing when `active` is false.
class [[nodiscard]] ScopedFlushDenormals {
 public:
  explicit ScopedFlushDenormals(bool active = true) : active_(active) {
    if (!active_) return;
    saved_ = read();
    write(saved_ | kFlush);
  }
  ~ScopedFlushDenormals() {
    if (active_) write(saved_);
  }
  ScopedFlushDenormals(const ScopedFlushDenormals&) = delete;
  ScopedFlushDenormals& operator=(const ScopedFlushDenormals&) = delete;

  // Whether this thread flushes denormals now.
  static bool flushing() { return kFlush != 0 && (read() & kFlush) == kFlush; }

 private:
  friend class ScopedKeepDenormals;
#if defined(__x86_64__)
  static constexpr uint64_t kFlush = 0x8040;  // MXCSR: flush to zero (bit 15), denormals are zero (bit 6)
  static uint64_t read() { return _mm_getcsr(); }
  static void write(uint64_t state) { _mm_setcsr(static_cast<uint32_t>(state)); }
#elif defined(__aarch64__)
  static constexpr uint64_t kFlush = uint64_t{1} << 24;  // FPCR.FZ flushes inputs and results of f32 and f64
  static uint64_t read() {
    uint64_t state;
    asm volatile("mrs %0, fpcr" : "=r"(state));
    return state;
  }
  static void write(uint64_t state) { asm volatile("msr fpcr, %0" : : "r"(state) : "memory"); }
#else
  static constexpr uint64_t kFlush = 0;  // no such control known: denormals stay
  static uint64_t read() { return 0; }
  static void write(uint64_t) {}
#endif

  bool active_;
  uint64_t saved_ = 0;
};

// Denormals are numbers in this thread until the end of the scope; does nothing when `active` is false.
class [[nodiscard]] ScopedKeepDenormals {
 public:
  explicit ScopedKeepDenormals(bool active = true) : active_(active) {
    if (!active_) return;
    saved_ = ScopedFlushDenormals::read();
    ScopedFlushDenormals::write(saved_ & ~ScopedFlushDenormals::kFlush);
  }
  ~ScopedKeepDenormals() {
    if (active_) ScopedFlushDenormals::write(saved_);
  }
  ScopedKeepDenormals(const ScopedKeepDenormals&) = delete;
  ScopedKeepDenormals& operator=(const ScopedKeepDenormals&) = delete;

 private:
  bool active_;
  uint64_t saved_ = 0;
};

}  // namespace sparkle
