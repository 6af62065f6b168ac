// Barriers in shared memory (mbarrier) and the copying engine (TMA): sm_90.
#pragma once

#include "backends/cuda/ptx/memory.cuh"
#include "backends/cuda/ptx/operand.h"

namespace sparkle::cuda {

SPARKLE_DEVICE void barrier_init(SharedAddress barrier, uint32_t count) {
#ifdef __CUDACC__
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
#else
  cuda_model::barrier_init(barrier, count);
#endif
}
// Behind the last barrier_init, before the block or the cluster is synchronised: the engine and other blocks see them.
SPARKLE_DEVICE void fence_barrier_init() {
#ifdef __CUDACC__
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
SPARKLE_DEVICE void barrier_arrive_expecting(SharedAddress barrier, uint32_t bytes) {
#ifdef __CUDACC__
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
#else
  cuda_model::barrier_arrive(barrier, bytes);
#endif
}
// At the same place in block `rank` of the cluster. What this block's threads wrote is not released to the other one: its
// engine writes where they read. A release for the cluster made each warp wait for all of its accesses, each step.
SPARKLE_DEVICE void barrier_arrive_at(SharedAddress barrier, uint32_t rank) {
#ifdef __CUDACC__
  asm volatile(
      "{\n.reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(barrier),
      "r"(rank)
      : "memory");
#else
  cuda_model::barrier_arrive(cuda_model::map_shared(barrier, rank), 0);
#endif
}
SPARKLE_DEVICE void barrier_arrive(SharedAddress barrier) {
#ifdef __CUDACC__
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
#else
  cuda_model::barrier_arrive(barrier, 0);
#endif
}
// Until the phase of this parity has ended: a barrier begins in phase 0, and the phase before it, of parity 1, counts as ended.
SPARKLE_DEVICE void barrier_wait(SharedAddress barrier, uint32_t parity) {
#ifdef __CUDACC__
  asm volatile(
      "{\n.reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
#else
  cuda_model::barrier_wait(barrier, parity);
#endif
}

SPARKLE_DEVICE void prefetch_map(const TensorMap& map) {
#ifdef __CUDACC__
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
#else
  static_cast<void>(map);
#endif
}
// `channels` from c of the pixels from w,h,n on, seen through the filter's tap; zeros outside of the image.
SPARKLE_DEVICE void load_pixels(SharedAddress to, const TensorMap& map, SharedAddress barrier, int32_t c, int32_t w, int32_t h,
                                int32_t n, uint16_t tap_w, uint16_t tap_h) {
#ifdef __CUDACC__
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2], "
      "{%7, %8};" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(c), "r"(w), "r"(h), "r"(n), "h"(tap_w), "h"(tap_h)
      : "memory");
#else
  const int32_t at[] = {c, w, h, n};
  const uint16_t tap[] = {tap_w, tap_h};
  cuda_model::tma_load(to, &map, at, 4, barrier, tap, 0);
#endif
}
// A box of a tensor of three axes; `blocks` of the cluster get it (a bit each), or, with 0, this one.
SPARKLE_DEVICE void load_box(SharedAddress to, const TensorMap& map, SharedAddress barrier, int32_t x, int32_t y, int32_t z,
                             uint16_t blocks) {
#ifdef __CUDACC__
  if (blocks != 0) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, "
        "%4, "
        "%5}], [%2], %6;" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(blocks)
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::
            "r"(to),
        "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z)
        : "memory");
  }
#else
  const int32_t at[] = {x, y, z};
  cuda_model::tma_load(to, &map, at, 3, barrier, nullptr, blocks);
#endif
}
// A box of a tensor of four axes.
SPARKLE_DEVICE void load_image(SharedAddress to, const TensorMap& map, SharedAddress barrier, int32_t c, int32_t w, int32_t h,
                               int32_t n) {
#ifdef __CUDACC__
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::
          "r"(to),
      "l"(&map), "r"(barrier), "r"(c), "r"(w), "r"(h), "r"(n)
      : "memory");
#else
  const int32_t at[] = {c, w, h, n};
  cuda_model::tma_load(to, &map, at, 4, barrier, nullptr, 0);
#endif
}
// What this thread wrote to shared memory is the engine's to read.
SPARKLE_DEVICE void fence_async_proxy() {
#ifdef __CUDACC__
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#else
  cuda_model::fence_async_proxy();
#endif
}
// A box goes to memory; the group of stores that it is in ends with commit_stores.
SPARKLE_DEVICE void store_box(const TensorMap& map, int32_t x, int32_t y, SharedAddress from) {
#ifdef __CUDACC__
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map), "r"(from),
               "r"(x), "r"(y)
               : "memory");
#else
  const int32_t at[] = {x, y};
  cuda_model::tma_store(&map, at, 2, from);
#endif
}
SPARKLE_DEVICE void commit_stores() {
#ifdef __CUDACC__
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#else
  cuda_model::commit_stores();
#endif
}
// Until all but the last `kGroups` groups have read shared memory.
template <int kGroups>
SPARKLE_DEVICE void wait_stores_read() {
#ifdef __CUDACC__
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kGroups) : "memory");
#else
  cuda_model::wait_stores(kGroups, true);
#endif
}

}  // namespace sparkle::cuda
