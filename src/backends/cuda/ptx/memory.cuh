// Loads and stores. Shared memory is named by 32-bit addresses, as PTX's shared::cta and shared::cluster spaces are.
#pragma once

#include "backends/cuda/ptx/target.cuh"

namespace sparkle::cuda {

using SharedAddress = uint32_t;

#ifdef __CUDACC__
extern __shared__ __align__(1024) unsigned char sparkle_shared_memory[];
#endif

// Where the block's shared memory begins, at a multiple of 1024.
SPARKLE_DEVICE SharedAddress shared_base() {
#ifdef __CUDACC__
  return static_cast<SharedAddress>(__cvta_generic_to_shared(sparkle_shared_memory));
#else
  return cuda_model::shared_base();
#endif
}

// T of 2, 4, 8 or 16 bytes that nobody writes while the kernel runs.
template <class T>
SPARKLE_DEVICE T load_global(const T* from) {
#ifdef __CUDACC__
  if constexpr (sizeof(T) == 16) {
    T value;
    const uint4 words = __ldg(reinterpret_cast<const uint4*>(from));
    value = reinterpret_cast<const T&>(words);
    return value;
  } else {
    return __ldg(from);
  }
#else
  T value;
  cuda_model::load_global(&value, from, sizeof(T));
  return value;
#endif
}
// What this thread itself, and no other, writes while the kernel runs.
template <class T>
SPARKLE_DEVICE T load_own(const T* from) {
#ifdef __CUDACC__
  return *from;
#else
  return load_global(from);
#endif
}
// 16 bytes that other blocks have written, past the L1.
SPARKLE_DEVICE Words4 load_coherent(const Words4* from) {
#ifdef __CUDACC__
  const uint4 words = __ldcg(reinterpret_cast<const uint4*>(from));
  return reinterpret_cast<const Words4&>(words);
#else
  return load_global(from);
#endif
}
template <class T>
SPARKLE_DEVICE void store_global(T* to, const T& value) {
#ifdef __CUDACC__
  if constexpr (sizeof(T) == 16) {
    *reinterpret_cast<uint4*>(to) = reinterpret_cast<const uint4&>(value);
  } else {
    *to = value;
  }
#else
  cuda_model::store_global(to, &value, sizeof(T));
#endif
}

SPARKLE_DEVICE Words4 load_shared_16(SharedAddress from) {
  Words4 w;
#ifdef __CUDACC__
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w.v[0]), "=r"(w.v[1]), "=r"(w.v[2]), "=r"(w.v[3])
               : "r"(from)
               : "memory");
#else
  cuda_model::load_shared(&w, from, 16);
#endif
  return w;
}
SPARKLE_DEVICE void store_shared_16(SharedAddress to, const Words4& w) {
#ifdef __CUDACC__
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(w.v[0]), "r"(w.v[1]), "r"(w.v[2]), "r"(w.v[3])
               : "memory");
#else
  cuda_model::store_shared(to, &w, 16);
#endif
}
SPARKLE_DEVICE void store_shared_8(SharedAddress to, uint32_t a, uint32_t b) {
#ifdef __CUDACC__
  asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(to), "r"(a), "r"(b) : "memory");
#else
  const uint32_t w[2] = {a, b};
  cuda_model::store_shared(to, w, 8);
#endif
}
struct Words2 {
  uint32_t v[2];
};
SPARKLE_DEVICE Words2 load_shared_8(SharedAddress from) {
  Words2 w;
#ifdef __CUDACC__
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(w.v[0]), "=r"(w.v[1]) : "r"(from) : "memory");
#else
  cuda_model::load_shared(&w, from, 8);
#endif
  return w;
}
SPARKLE_DEVICE uint32_t load_shared_4(SharedAddress from) {
  uint32_t w;
#ifdef __CUDACC__
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(w) : "r"(from) : "memory");
#else
  cuda_model::load_shared(&w, from, 4);
#endif
  return w;
}
SPARKLE_DEVICE void store_shared_4(SharedAddress to, uint32_t w) {
#ifdef __CUDACC__
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(w) : "memory");
#else
  cuda_model::store_shared(to, &w, 4);
#endif
}
SPARKLE_DEVICE void store_shared_2(SharedAddress to, uint16_t w) {
#ifdef __CUDACC__
  asm volatile("st.shared.u16 [%0], %1;" ::"r"(to), "h"(w) : "memory");
#else
  cuda_model::store_shared(to, &w, 2);
#endif
}

// Copies of sm_80 that a thread waits for by groups: 16 bytes past the L1, of which the first `given` (0 or 16) come, the
// others zero.
SPARKLE_DEVICE void copy_async_16(SharedAddress to, const void* from, uint32_t given) {
#ifdef __CUDACC__
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(given) : "memory");
#else
  cuda_model::copy_async(to, from, 16, given);
#endif
}
SPARKLE_DEVICE void commit_copies() {
#ifdef __CUDACC__
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  cuda_model::commit_copies();
#endif
}
// All but the last `kGroups` groups of this thread's.
template <int kGroups>
SPARKLE_DEVICE void wait_copies() {
#ifdef __CUDACC__
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
#else
  cuda_model::wait_copies(kGroups);
#endif
}

}  // namespace sparkle::cuda
