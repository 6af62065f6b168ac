// mbarrier and the copying engine (PTX ISA, "mbarrier" and "cp.async.bulk.tensor"): a copy poisons where it goes when it is
// issued, lands when the launch's seed says so, and counts its bytes on a barrier then.
#include <algorithm>
#include <cstring>

#include "cuda_model/machine.h"
#include "cuda_model/tensor_map.h"

namespace cuda_model {
namespace {

Mbarrier& barrier_at(SharedAddress address) {
  auto& all = block_of(address).mbarriers;
  const auto found = all.find(address);
  if (found == all.end()) fault("an mbarrier that was never initialised");
  return found->second;
}
// Shared memory lives as long as its block.
void check_alive(SharedAddress address, const char* what) {
  const Block& block = block_of(address);
  const auto& threads = block.threads;
  if (std::all_of(threads.begin(), threads.end(), [](const auto& t) { return t->finished; })) {
    fault(std::string(what) + " at a block that has ended");
  }
}
void end_phase(Mbarrier& barrier) {
  if (barrier.pending > 0 || barrier.bytes != 0) return;
  barrier.pending = barrier.count;
  ++barrier.phase;
  join(barrier.clock, barrier.open);
  barrier.open.clear();
}
void land(SharedAddress to, const std::vector<unsigned char>& bytes, uint32_t swizzle) {
  for (uint32_t i = 0; i < bytes.size(); i += 16) {
    const SharedAddress at = swizzled(to + i, swizzle);
    std::memcpy(shared_bytes(at, 16, 1, "a tensor copy"), bytes.data() + i, 16);
  }
}
// From here on a copy has written these bytes: who has not heard of it by its barrier may not read them.
void written_by_engine(SharedAddress to, uint32_t bytes) {
  Cluster& cluster = *machine().cluster;
  Block& block = block_of(to);
  const uint32_t offset = (to & ((1u << kRankShift) - 1)) - kFirstOffset;
  for (uint32_t i = offset / 4; i < (offset + bytes) / 4; ++i) {
    block.words[i] = {static_cast<int32_t>(cluster.warps), cluster.engine, false};
  }
}

}  // namespace

void barrier_init(SharedAddress barrier, uint32_t count) {
  shared_bytes(barrier, 8, 8, "mbarrier.init");
  touch(barrier, 8, *self().warp, Access::write, "mbarrier.init");
  block_of(barrier).mbarriers[barrier] = {count, count, 0, 0, {}, {}};
}
void barrier_expect(SharedAddress barrier, uint32_t bytes) { barrier_at(barrier).bytes += bytes; }
void barrier_arrive(SharedAddress barrier, uint32_t expect_bytes) {
  Mbarrier& b = barrier_at(barrier);
  check_alive(barrier, "an arrival");
  touch(barrier, 8, *self().warp, Access::read, "mbarrier.arrive");
  if (b.pending == 0) fault("more arrivals at an mbarrier than it counts");
  b.bytes += expect_bytes;
  for (Word* word : self().warp->unfenced) word->given_unfenced = true;
  release(b.open);
  --b.pending;
  end_phase(b);
}
void barrier_wait(SharedAddress barrier, uint32_t parity) {
  if (barrier >> kRankShift != cluster_rank()) fault("waits at an mbarrier of another block");
  Mbarrier& b = barrier_at(barrier);
  touch(barrier, 8, *self().warp, Access::read, "mbarrier.try_wait");
  if ((b.phase & 1) == parity) {
    wait_until("an mbarrier", [&b, parity] { return (b.phase & 1) != parity; });
  }
  acquire(b.clock);
}

void tma_load(SharedAddress to, const void* map, const int32_t* at, int rank, SharedAddress barrier, const uint16_t* offsets,
              uint16_t blocks) {
  check_waited("a tensor copy");
  const MapShape shape = decode(map);
  if (static_cast<int>(shape.rank) != rank) fault("a tensor map of another rank");
  if (shape.im2col != (offsets != nullptr)) fault("a tensor map of the other mode");
  const uint32_t bytes = box_bytes(shape);
  const uint16_t targets = blocks ? blocks : static_cast<uint16_t>(1u << cluster_rank());
  std::array<int32_t, 5> place{};
  std::copy(at, at + rank, place.begin());
  std::array<uint16_t, 3> tap{};
  if (offsets) std::copy(offsets, offsets + rank - 2, tap.begin());
  for (uint32_t block = 0; block < machine().cluster->blocks.size(); ++block) {
    if (!(targets >> block & 1)) continue;
    const SharedAddress own = map_shared(to, block), own_barrier = map_shared(barrier, block);
    shared_bytes(own, bytes, 128, "cp.async.bulk.tensor");
    if (shape.swizzle && own % (shape.swizzle * 8))
      fault("cp.async.bulk.tensor to an address that its swizzle does not begin at");
    touch(own, bytes, *self().warp, Access::async_write, "cp.async.bulk.tensor");
    poison(own, bytes);
    Mbarrier& b = barrier_at(own_barrier);
    machine().cluster->pending.push_back({[=, &b] {
      Cluster& cluster = *machine().cluster;
      check_alive(own, "a copy lands");
      ++cluster.engine;
      land(own, read_box(shape, place, tap), shape.swizzle);
      written_by_engine(own, bytes);
      b.open.resize(cluster.warps + 1);
      b.open[cluster.warps] = cluster.engine;
      b.bytes -= bytes;
      end_phase(b);
    }});
  }
}

void tma_store(const void* map, const int32_t* at, int rank, SharedAddress from) {
  check_waited("a tensor store");
  const MapShape shape = decode(map);
  if (static_cast<int>(shape.rank) != rank || shape.im2col)
    fault("stores by a tensor map that is not tiled, or of another rank");
  const uint32_t bytes = box_bytes(shape);
  shared_bytes(from, bytes, 128, "a tensor store");
  touch(from, bytes, *self().warp, Access::async_read, "a tensor store");
  std::array<int32_t, 5> place{};
  std::copy(at, at + rank, place.begin());
  auto& groups = machine().cluster->stores[&self()];
  if (groups.empty()) groups.emplace_back();
  Warp* warp = self().warp;
  groups.back().push_back({[=] {
                             touch(from, bytes, *warp, Access::async_read, "a tensor store");
                             std::vector<unsigned char> box(bytes);
                             for (uint32_t i = 0; i < bytes; i += 16) {
                               std::memcpy(box.data() + i,
                                           shared_bytes(swizzled(from + i, shape.swizzle), 16, 1, "a tensor store"), 16);
                             }
                             write_box(shape, place, box);
                           },
                           {}});
}
void commit_stores() {
  auto& groups = machine().cluster->stores[&self()];
  if (groups.empty()) groups.emplace_back();
  groups.emplace_back();
}
void wait_stores(uint32_t left, bool) {
  auto& groups = machine().cluster->stores[&self()];
  while (groups.size() > left + 1) {
    for (const Store& store : groups.front()) store.read();
    groups.pop_front();
  }
}

uint32_t swizzled(uint32_t address, uint32_t swizzle) {
  if (swizzle == 0) return address;
  const uint32_t bits = swizzle / 16 - 1;  // of the chunk's number: 7, 3 or 1
  return address ^ ((address >> 7 & bits) << 4);
}

}  // namespace cuda_model
