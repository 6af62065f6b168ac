// Copies and barriers: what is seen when, boxes of tensors, and the faults of who does not wait.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "cuda_model/instructions.h"

namespace cuda_model {
namespace {

TEST(CudaModelAsync, CopiesLandWhenTheirGroupIsWaitedFor) {
  alignas(16) uint32_t from[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::string error = run_body({{}, {1}, {}, 64, 1}, [&] {
    const SharedAddress to = shared_base();
    copy_async(to, from, 16, 16);
    commit_copies();
    copy_async(to + 16, from + 4, 16, 0);
    commit_copies();
    uint32_t v = 0;
    load_shared(&v, to, 4);
    if (v != 0xffffffffu) fault("seen before it was waited for");
    wait_copies(1);
    load_shared(&v, to + 4, 4);
    if (v != 2) fault("not seen");
    load_shared(&v, to + 16, 4);
    if (v != 0xffffffffu) fault("the second group was not waited for");
    wait_copies(0);
    load_shared(&v, to + 16, 4);
    if (v != 0) fault("a copy of nothing is zeros");
  });
  EXPECT_EQ(error, "");
}

TEST(CudaModelAsync, CopiesOfNothingComeFromAnAlignedAddressToo) {
  alignas(16) uint32_t from[8] = {};
  const auto run = [&](uint32_t words, uint32_t given) {
    return run_body({{}, {1}, {}, 64, 1}, [&] {
      copy_async(shared_base(), from + words, 16, given);
      commit_copies();
      wait_copies(0);
    });
  };
  EXPECT_EQ(run(4, 0), "");
  EXPECT_NE(run(1, 0).find("cp.async of nothing at an address that is no multiple of its size"), std::string::npos);
  EXPECT_NE(run(4, 20).find("cp.async of 20 of 16 bytes"), std::string::npos);
}

TEST(CudaModelAsync, ReadingWhatAnotherWarpWritesIsARace) {
  for (uint64_t seed = 1; seed < 9; ++seed) {
    const std::string error = run_body({{}, {64}, {}, 64, seed}, [&] {
      uint32_t v = 1;
      if (thread_id() == 0) store_shared(shared_base(), &v, 4);
      if (thread_id() == 32) load_shared(&v, shared_base(), 4);
    });
    EXPECT_NE(error.find("race: "), std::string::npos) << error;
  }
}

TEST(CudaModelAsync, BarriersHavePhasesArrivalsAndBytes) {
  const std::string error = run_body({{}, {64}, {}, 64, 4}, [&] {
    const SharedAddress barrier = shared_base(), word = barrier + 16;
    if (thread_id() == 0) barrier_init(barrier, 2);
    sync_threads(0, 64);
    barrier_wait(barrier, 1);  // the phase before the first one
    sync_threads(0, 64);
    for (uint32_t phase = 0; phase < 5; ++phase) {
      if (thread_id() == 0) {
        store_shared(word, &phase, 4);
        barrier_arrive(barrier, 0);
      }
      if (thread_id() == 32) {
        barrier_arrive(barrier, 0);
        barrier_wait(barrier, phase & 1);
        uint32_t v = 0;
        load_shared(&v, word, 4);
        if (v != phase) fault("not what was written before the phase ended");
      }
      sync_threads(0, 64);
    }
  });
  EXPECT_EQ(error, "");
  EXPECT_NE(run_body({{}, {1}, {}, 64, 1},
                     [] {
                       barrier_init(shared_base(), 1);
                       barrier_wait(shared_base(), 0);
                     })
                .find("the launch hangs: thread 0 of block 0,0,0 waits for an mbarrier"),
            std::string::npos);
}

// The tensor's element [y][x] is 64 y + x; a box goes to shared memory with 16-byte chunks exchanged within 128 bytes.
TEST(CudaModelAsync, TiledBoxesAreSwizzledAndZeroOutside) {
  alignas(16) uint16_t tensor[10][64];
  for (uint16_t i = 0; i < 640; ++i) tensor[i / 64][i % 64] = i;
  MapShape shape;
  shape.type = MapType::u16, shape.rank = 2, shape.address = tensor;
  shape.size[0] = 64, shape.size[1] = 10, shape.strides[0] = 2, shape.strides[1] = 128;
  shape.box[0] = 64, shape.box[1] = 8, shape.swizzle = 128;
  TensorMap map;
  ASSERT_EQ(encode(shape, map), "");
  for (uint64_t seed = 1; seed < 9; ++seed) {
    const std::string error = run_body({{}, {32}, {}, 2048, seed}, [&] {
      const SharedAddress box = shared_base(), barrier = box + 1024;
      if (thread_id() == 0) {
        barrier_init(barrier, 1);
        const int32_t at[] = {8, 5};
        barrier_arrive(barrier, 1024);
        tma_load(box, &map, at, 2, barrier, nullptr, 0);
      }
      sync_warp();
      barrier_wait(barrier, 0);
      for (uint32_t i = thread_id(); i < 512; i += 32) {
        uint16_t v = 0;
        const uint32_t y = i / 64, x = i % 64;
        load_shared(&v, box + y * 128 + ((x / 8) ^ y) * 16 + x % 8 * 2, 2);
        if (v != (y + 5 < 10 && x + 8 < 64 ? (y + 5) * 64 + x + 8 : 0)) fault("another element");
      }
    });
    EXPECT_EQ(error, "");
  }
}

// Pixels of a 3x3 window of stride 2 and padding 1 over an image of 7x5, from the third output on across the image's end.
TEST(CudaModelAsync, Im2colWalksOutputsOverRowsAndImages) {
  constexpr int kW = 7, kH = 5, kC = 8, kQ = 4, kP = 3, kFirst = 2, kPixels = 16;
  std::vector<uint16_t> tensor(2 * kH * kW * kC);
  std::iota(tensor.begin(), tensor.end(), uint16_t{1});
  MapShape shape;
  shape.type = MapType::u16, shape.rank = 4, shape.address = tensor.data(), shape.im2col = true;
  const uint64_t sizes[] = {kC, kW, kH, 2}, strides[] = {2, kC * 2, kW * kC * 2, kH * kW * kC * 2};
  for (int i = 0; i < 4; ++i) shape.size[i] = sizes[i], shape.strides[i] = strides[i];
  shape.element_strides[1] = shape.element_strides[2] = 2;
  shape.lower[0] = shape.lower[1] = -1;
  shape.upper[0] = (kQ - 1) * 2 + 1 - kW - 1, shape.upper[1] = (kP - 1) * 2 + 1 - kH - 1;
  shape.channels = kC, shape.pixels = kPixels;
  TensorMap map;
  ASSERT_EQ(encode(shape, map), "");
  for (uint16_t r = 0; r < 3; ++r) {
    for (uint16_t s = 0; s < 3; ++s) {
      const std::string error = run_body({{}, {1}, {}, 1024, 1}, [&] {
        const SharedAddress box = shared_base(), barrier = box + 512;
        barrier_init(barrier, 1);
        barrier_arrive(barrier, kPixels * kC * 2);
        const int32_t at[] = {0, kFirst * 2 - 1, -1, 0};
        const uint16_t tap[] = {s, r};
        tma_load(box, &map, at, 4, barrier, tap, 0);
        barrier_wait(barrier, 0);
        for (int i = 0; i < kPixels; ++i) {
          const int out = kFirst + i, n = out / (kP * kQ), h = out / kQ % kP * 2 - 1 + r, w = out % kQ * 2 - 1 + s;
          uint16_t v = 0;
          load_shared(&v, box + static_cast<uint32_t>(i * kC * 2), 2);
          const bool is_inside = h >= 0 && h < kH && w >= 0 && w < kW && n < 2;
          if (v != (is_inside ? tensor[static_cast<size_t>(((n * kH + h) * kW + w) * kC)] : 0))
            fault("pixel " + std::to_string(i));
        }
      });
      EXPECT_EQ(error, "");
    }
  }
}

TEST(CudaModelAsync, ClustersShareCopiesAndReachEachOthersBarriers) {
  alignas(16) uint32_t tensor[32];
  for (uint32_t i = 0; i < 32; ++i) tensor[i] = i;
  MapShape shape;
  shape.type = MapType::u32, shape.rank = 1, shape.address = tensor, shape.size[0] = 32, shape.box[0] = 32;
  TensorMap map;
  ASSERT_EQ(encode(shape, map), "");
  const std::string error = run_body({{2}, {32}, {2}, 1024, 4}, [&] {
    const SharedAddress box = shared_base(), barrier = box + 512;
    if (thread_id() == 0) barrier_init(barrier, 1);
    sync_cluster();
    if (thread_id() == 0) barrier_arrive(barrier, 128);
    if (thread_id() == 0 && cluster_rank() == 1) {
      const int32_t at[] = {0};
      tma_load(box, &map, at, 1, barrier, nullptr, 3);
    }
    sync_warp();
    barrier_wait(barrier, 0);
    uint32_t v = 0;
    load_shared(&v, box + thread_id() * 4, 4);
    if (v != thread_id()) fault("the copy for both did not come");
    sync_cluster();
  });
  EXPECT_EQ(error, "");
}

TEST(CudaModelAsync, StoresNeedTheProxyFence) {
  alignas(16) uint32_t tensor[32] = {};
  MapShape shape;
  shape.type = MapType::u32, shape.rank = 1, shape.address = tensor, shape.size[0] = 32, shape.box[0] = 32;
  TensorMap map;
  ASSERT_EQ(encode(shape, map), "");
  for (const bool is_fenced : {true, false}) {
    const std::string error = run_body({{}, {32}, {}, 1024, 4}, [&] {
      const uint32_t v = thread_id() + 1;
      store_shared(shared_base() + thread_id() * 4, &v, 4);
      if (is_fenced) fence_async_proxy();
      sync_warp();
      if (thread_id() == 0) {
        const int32_t at[] = {0};
        tma_store(&map, at, 1, shared_base());
        commit_stores();
        wait_stores(0, true);
      }
    });
    if (is_fenced) {
      EXPECT_EQ(error, "");
      EXPECT_EQ(tensor[31], 32u);
    } else {
      EXPECT_NE(error.find("no fence.proxy.async"), std::string::npos) << error;
    }
  }
}

TEST(CudaModelAsync, MapsOfSmallTensorsAreClearedOfTheBitThatDriversSetWrongly) {
  alignas(16) uint32_t tensor[32] = {};
  MapShape shape;
  shape.type = MapType::u32, shape.rank = 1, shape.address = tensor, shape.size[0] = 32, shape.box[0] = 32;
  TensorMap map;
  ASSERT_EQ(encode(shape, map), "");
  const auto run = [&] {
    return run_body({{}, {1}, {}, 1024, 1}, [&] {
      const SharedAddress barrier = shared_base() + 512;
      const int32_t at[] = {0};
      barrier_init(barrier, 1);
      barrier_arrive(barrier, 128);
      tma_load(shared_base(), &map, at, 1, barrier, nullptr, 0);
      barrier_wait(barrier, 0);
    });
  };
  EXPECT_EQ(run(), "");
  map.words[1] |= kWrongBit;
  const std::string error = run();
  EXPECT_NE(error.find("the bit that drivers up to CUDA 13.1 set wrongly"), std::string::npos) << error;
}

TEST(CudaModelAsync, MapsThatTheDriverRefusesAreRefused) {
  alignas(16) static uint16_t tensor[4096];
  MapShape good;
  good.type = MapType::f16, good.rank = 4, good.address = tensor, good.im2col = true, good.channels = 64, good.pixels = 128;
  good.swizzle = 128;
  const uint64_t sizes[] = {64, 4, 4, 2}, strides[] = {2, 128, 512, 2048};
  for (int i = 0; i < 4; ++i) good.size[i] = sizes[i], good.strides[i] = strides[i];
  TensorMap map;
  EXPECT_EQ(encode(good, map), "");
  const auto refused = [&](auto change) {
    MapShape shape = good;
    change(shape);
    return encode(shape, map);
  };
  EXPECT_EQ(refused([](MapShape& m) { m.strides[1] = 120; }), "the stride of axis 1, 120, is no positive multiple of 16");
  EXPECT_EQ(refused([](MapShape& m) { m.strides[3] = 0; }), "the stride of axis 3, 0, is no positive multiple of 16");
  EXPECT_EQ(refused([](MapShape& m) { m.strides[2] = uint64_t{1} << 40; }),
            "the stride of axis 2, 1099511627776, is 2^40 or more");
  EXPECT_EQ(refused([](MapShape& m) { m.strides[2] = 496; }),
            "the stride of axis 2, 496, is less than what the axis before it takes");
  EXPECT_EQ(refused([](MapShape& m) { m.strides[2] = 496, m.size[2] = 1; }), "");  // of one element: no matter
  EXPECT_EQ(refused([](MapShape& m) { m.upper[0] = -3, m.lower[0] = 0; }), "");
  EXPECT_EQ(refused([](MapShape& m) { m.upper[0] = -3, m.lower[0] = 1; }), "the box of axis 1 has no pixels");
  EXPECT_EQ(refused([](MapShape& m) { m.im2col = false, m.box[0] = 64, m.box[1] = m.box[2] = m.box[3] = 1; }), "");
  EXPECT_EQ(refused([](MapShape& m) {
              m.im2col = false, m.box[0] = 64, m.box[1] = m.box[2] = m.box[3] = 1, m.element_strides[1] = 2;
            }),
            "the model has no tiled maps by steps");
  EXPECT_NE(refused([](MapShape& m) { m.lower[0] = -129; }), "");
  EXPECT_NE(refused([](MapShape& m) { m.channels = 128; }), "");
  EXPECT_NE(refused([](MapShape& m) { m.pixels = 1025; }), "");
  EXPECT_NE(refused([](MapShape& m) { m.element_strides[1] = 9; }), "");
  EXPECT_NE(refused([](MapShape& m) { m.address = tensor + 1; }), "");
}

}  // namespace
}  // namespace cuda_model
