// Shared memory: every access is within bounds, aligned, and no race; copies that have not landed are poison.
#include <cstring>

#include "cuda_model/machine.h"

namespace cuda_model {

SharedAddress shared_base() { return cluster_rank() << kRankShift | kFirstOffset; }
SharedAddress map_shared(SharedAddress own, uint32_t rank) {
  if (rank >= machine().cluster->blocks.size()) fault("mapa to a block that the cluster does not have");
  return (own & ((1u << kRankShift) - 1)) | rank << kRankShift;
}

Block& block_of(SharedAddress address) {
  const uint32_t rank = address >> kRankShift;
  if (rank >= machine().cluster->blocks.size()) fault("an address of no block of the cluster");
  return *machine().cluster->blocks[rank];
}

unsigned char* shared_bytes(SharedAddress address, uint32_t bytes, uint32_t alignment, const char* what) {
  Block& block = block_of(address);
  const uint32_t offset = (address & ((1u << kRankShift) - 1)) - kFirstOffset;
  if (offset + uint64_t{bytes} > block.words.size() * 4) {
    fault(std::string(what) + " beyond shared memory: byte " + std::to_string(offset) + " of " +
          std::to_string(block.words.size() * 4));
  }
  if (address % alignment) fault(std::string(what) + " at an address that is no multiple of " + std::to_string(alignment));
  return block.shared.data() + offset;
}

void touch(SharedAddress address, uint32_t bytes, Warp& warp, Access access, const char* what) {
  Cluster& cluster = *machine().cluster;
  Block& block = block_of(address);
  const uint32_t offset = (address & ((1u << kRankShift) - 1)) - kFirstOffset, me = warp.number;
  const auto race = [&](uint32_t word, uint32_t other, const char* did) {
    const std::string who = other == cluster.warps ? "a copy" : "warp " + std::to_string(other);
    fault("race: " + std::string(what) + " by warp " + std::to_string(me) + " of byte " + std::to_string(word * 4) +
          " of shared memory, which " + who + " " + did + " with no barrier between");
  };
  for (uint32_t i = offset / 4; i < (offset + bytes + 3) / 4; ++i) {
    Word& word = block.words[i];
    uint32_t* reads = block.reads.data() + size_t{i} * cluster.warps;
    if (word.writer >= 0 && static_cast<uint32_t>(word.writer) != me) {
      const auto writer = static_cast<uint32_t>(word.writer);
      if (warp.clock[writer] < word.written) race(i, writer, "writes");
    }
    if (access == Access::async_read && word.generic) {
      fault(std::string(what) + " of byte " + std::to_string(i * 4) + " that threads wrote with no fence.proxy.async behind");
    }
    if (access == Access::async_write && (word.generic_readers != 0 || word.given_unfenced)) {
      fault(std::string(what) + " to byte " + std::to_string(i * 4) + " that threads read with no fence.proxy.async behind");
    }
    if (access == Access::read && (word.generic_readers >> me % 64 & 1) == 0) {
      word.generic_readers |= uint64_t{1} << me % 64;
      warp.unfenced.push_back(&word);
    }
    if (access == Access::read || access == Access::async_read) {
      reads[me] = warp.clock[me];
      continue;
    }
    for (uint32_t w = 0; w < cluster.warps; ++w) {
      if (w != me && reads[w] > warp.clock[w]) race(i, w, "reads");
    }
    word.generic = access == Access::write;
    word.writer = static_cast<int32_t>(me);
    word.written = warp.clock[me];
  }
}

void poison(SharedAddress address, uint32_t bytes) { std::memset(shared_bytes(address, bytes, 1, "a copy"), kPoison, bytes); }

void load_shared(void* to, SharedAddress from, uint32_t bytes) {
  const unsigned char* p = shared_bytes(from, bytes, bytes, "ld.shared");
  touch(from, bytes, *self().warp, Access::read, "ld.shared");
  std::memcpy(to, p, bytes);
}
void store_shared(SharedAddress to, const void* from, uint32_t bytes) {
  unsigned char* p = shared_bytes(to, bytes, bytes, "st.shared");
  touch(to, bytes, *self().warp, Access::write, "st.shared");
  std::memcpy(p, from, bytes);
}

void copy_async(SharedAddress to, const void* from, uint32_t bytes, uint32_t given) {
  if (bytes != 4 && bytes != 8 && bytes != 16) fault("cp.async of " + std::to_string(bytes) + " bytes");
  shared_bytes(to, bytes, bytes, "cp.async");
  if (given > bytes) fault("cp.async of " + std::to_string(given) + " of " + std::to_string(bytes) + " bytes");
  if (given > 0) check_global(from, bytes, "cp.async");
  if (reinterpret_cast<uintptr_t>(from) % bytes) fault("cp.async of nothing at an address that is no multiple of its size");
  touch(to, bytes, *self().warp, Access::write, "cp.async");
  poison(to, bytes);
  self().copies.back().push_back({to, from, bytes, given});
}
void commit_copies() { self().copies.emplace_back(); }
void wait_copies(uint32_t groups) {
  auto& copies = self().copies;
  while (copies.size() - 1 > groups) {
    for (const Copy& copy : copies.front()) {
      touch(copy.to, copy.bytes, *self().warp, Access::write, "a landing cp.async");
      unsigned char* p = shared_bytes(copy.to, copy.bytes, 1, "cp.async");
      std::memset(p, 0, copy.bytes);
      if (copy.given > 0) std::memcpy(p, copy.from, copy.given);
    }
    copies.pop_front();
  }
}

void fence_async_proxy() {
  Warp& warp = *self().warp;
  for (Word& word : warp.block->words) {
    if (word.writer == static_cast<int32_t>(warp.number)) word.generic = false;
  }
  for (Word* word : warp.unfenced) word->generic_readers &= ~(uint64_t{1} << warp.number % 64);
  warp.unfenced.clear();
}

}  // namespace cuda_model
