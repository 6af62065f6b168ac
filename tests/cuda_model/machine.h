// The model's inside: threads, warps, blocks and clusters of a launch, shared memory with what is known of each word, and what
// is under way.
#pragma once

#include <boost/context/fiber.hpp>

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuda_model/model.h"

namespace cuda_model {

inline constexpr uint32_t kWarp = 32, kFirstOffset = 1024, kRankShift = 24;
inline constexpr unsigned char kPoison = 0xff;

// How far each warp of a cluster (and, last, the copying engine) had come when something was last heard of it. Two accesses of
// which at least one writes are a race unless one's warp has heard of the other.
using Clock = std::vector<uint32_t>;
inline void join(Clock& to, const Clock& from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
}

struct Block;
struct Warp;
struct Word;
struct Cluster;

// What several threads come to, and the last one does for all.
struct Meeting {
  const char* what = nullptr;
  std::vector<void*> operands;
  uint32_t arrived = 0;
  uint64_t generation = 0;
};
struct NamedBarrier {
  uint32_t arrived = 0, expected = 0;
  uint64_t generation = 0;
  Clock clock, open;  // of the generation that is done, and of the one that gathers
};
struct Mbarrier {
  uint32_t count = 0, pending = 0;
  int64_t bytes = 0;
  uint32_t phase = 0;
  Clock clock, open;
};
struct Copy {
  SharedAddress to = 0;
  const void* from = nullptr;
  uint32_t bytes = 0, given = 0;
};

struct Thread {
  boost::context::fiber run, back;
  Warp* warp = nullptr;
  uint32_t id = 0, lane = 0;
  bool finished = false, waited = false;  // waited: for what the launch follows
  std::function<bool()> ready;            // empty: it is
  const char* waits_for = "";
  std::deque<std::vector<Copy>> copies{1};  // the last group is the open one
};

struct Wgmma {
  Product a_type = Product::f16, b_type = Product::f16;
  int n = 0;
  uint64_t a = 0, b = 0;
  bool keep = false;
  void* sums[128] = {};
};
struct Warp {
  Block* block = nullptr;
  uint32_t number = 0;  // in the cluster
  std::vector<Thread*> threads;
  Meeting meeting;
  Clock clock;
  std::vector<Word*> unfenced;  // words that it read, with no proxy fence since
};
// Four warps that multiply together.
struct Warpgroup {
  Meeting meeting;
  std::deque<std::vector<Wgmma>> groups{1};     // the last is the open one
  std::map<void*, std::vector<uint32_t>> sums;  // of lanes whose registers are poison meanwhile, by their address
  bool fenced = false;
};

// What is known of a word (4 bytes) of shared memory.
struct Word {
  int32_t writer = -1;
  uint32_t written = 0;
  bool generic = false;          // written by a thread, and no proxy fence since
  uint64_t generic_readers = 0;  // warps that read it, and had no proxy fence since: a bit each
  bool given_unfenced = false;   // one of them has arrived at an mbarrier since: a fence comes too late
};

struct Block {
  Cluster* cluster = nullptr;
  Size3 id;
  uint32_t rank = 0;
  bool gave_leave = false;
  std::vector<unsigned char> shared;
  std::vector<Word> words;
  std::vector<uint32_t> reads;  // [word][warp of the cluster]
  std::array<NamedBarrier, 16> barriers;
  std::map<SharedAddress, Mbarrier> mbarriers;
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<std::unique_ptr<Warpgroup>> warpgroups;
  std::vector<std::unique_ptr<Thread>> threads;
};

struct Pending {  // a copy of the engine's
  std::function<void()> land;
};
// A TMA store: groups of a thread.
struct Store {
  std::function<void()> read, write;
};

struct Cluster {
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<Pending> pending;
  uint32_t warps = 0;  // the engine's place in clocks
  uint32_t engine = 0;
  NamedBarrier barrier;
  std::map<Thread*, std::deque<std::vector<Store>>> stores;
};

struct Machine {
  const Kernel* kernel = nullptr;
  const void* record = nullptr;
  Launched launched;
  Cluster* cluster = nullptr;
  Thread* current = nullptr;
  std::string error;
  bool early = false;
  uint64_t without_leave = 0;  // blocks
  uint64_t random = 1;
  uint64_t next_random() {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    return random;
  }
};
Machine& machine();
inline Thread& self() { return *machine().current; }

// Lets others run until `ready` says so.
void wait_until(const char* what, std::function<bool()> ready);
// The last of `threads` does `act` for all.
void meet(Meeting& meeting, uint32_t threads, uint32_t place, const char* what, void* operand,
          void (*act)(void* const* operands));
inline void meet_warp(const char* what, void* operand, void (*act)(void* const* operands)) {
  meet(self().warp->meeting, kWarp, self().lane, what, operand, act);
}
void meet_named(NamedBarrier& barrier, uint32_t threads, bool wait, const char* what);

// Clocks: what a warp has done is known to whom takes `to` later.
void release(Clock& to);
void acquire(const Clock& from);

// Shared memory, checked: bounds, and races of warp `warp`.
Block& block_of(SharedAddress address);
enum class Access { read, write, async_write, async_read };
unsigned char* shared_bytes(SharedAddress address, uint32_t bytes, uint32_t alignment, const char* what);
void touch(SharedAddress address, uint32_t bytes, Warp& warp, Access access, const char* what);
void poison(SharedAddress address, uint32_t bytes);
void check_waited(const char* what);  // before device memory is touched
void check_global(const void* at, uint32_t bytes, const char* what);
uint32_t swizzled(uint32_t address, uint32_t swizzle);

}  // namespace cuda_model
