// Fibers in an order drawn by the seed: a warp at a time, a few steps of each of its threads, then another. Copies of the
// engine land at random moments, the last one when nothing else can go on; where nothing can and none is under way, the launch
// hangs, and says so.
#include "cuda_model/machine.h"

#include <boost/context/pooled_fixedsize_stack.hpp>

#include <algorithm>
#include <mutex>

#include "cuda_model/accesses.h"

namespace cuda_model {
namespace {

struct CopyFault {};  // of a copy that lands: no thread's

std::vector<const Kernel*>& registry() {
  static std::vector<const Kernel*> kernels;
  return kernels;
}
std::map<const unsigned char*, size_t>& allowed() {
  static std::map<const unsigned char*, size_t> ranges;
  return ranges;
}
std::mutex& one_at_a_time() {
  static std::mutex mutex;
  return mutex;
}
boost::context::pooled_fixedsize_stack& stacks() {
  static boost::context::pooled_fixedsize_stack pool(256 * 1024);
  return pool;
}

void start(Thread& thread) {
  thread.run = boost::context::fiber(std::allocator_arg, stacks(), [&thread](boost::context::fiber&& back) {
    thread.back = std::move(back);
    machine().kernel->run(machine().record);
    if (machine().early && !thread.waited) fault("ends without griddepcontrol.wait, while what it follows may still run");
    thread.finished = true;
    return std::move(thread.back);
  });
}

// A step of each thread of the warp that can go on: whether any could.
bool step(Warp& warp) {
  Machine& m = machine();
  bool any = false;
  const uint32_t first = static_cast<uint32_t>(m.next_random() % kWarp);
  for (uint32_t i = 0; i < warp.threads.size(); ++i) {
    Thread& thread = *warp.threads[(first + i) % warp.threads.size()];
    if (thread.finished || (thread.ready && !thread.ready())) continue;
    thread.ready = nullptr;
    m.current = &thread;
    thread.run = std::move(thread.run).resume();
    m.current = nullptr;
    if (!m.error.empty()) return true;
    any = true;
  }
  return any;
}

void land_one(Cluster& cluster) {
  const size_t which = machine().next_random() % cluster.pending.size();
  const auto land = std::move(cluster.pending[which].land);
  cluster.pending.erase(cluster.pending.begin() + static_cast<std::ptrdiff_t>(which));
  try {
    land();
  } catch (const CopyFault&) {  // what it says is kept
  }
}

std::string where(const Thread& thread) {
  const Size3 b = thread.warp->block->id;
  return "thread " + std::to_string(thread.id) + " of block " + std::to_string(b.x) + "," + std::to_string(b.y) + "," +
         std::to_string(b.z);
}

void run_cluster(Cluster& cluster) {
  Machine& m = machine();
  std::vector<Warp*> warps;
  for (auto& block : cluster.blocks) {
    for (auto& warp : block->warps) warps.push_back(warp.get());
    for (auto& thread : block->threads) start(*thread);
  }
  const auto done = [](const Warp* warp) {
    return std::all_of(warp->threads.begin(), warp->threads.end(), [](const Thread* t) { return t->finished; });
  };
  while (!warps.empty() && m.error.empty()) {
    const size_t first = m.next_random() % warps.size();
    bool any = false;
    for (size_t i = 0; i < warps.size() && !any && m.error.empty(); ++i) {
      Warp& warp = *warps[(first + i) % warps.size()];
      for (uint64_t left = 1 + m.next_random() % 64; left > 0 && m.error.empty() && step(warp); --left) any = true;
    }
    std::erase_if(warps, done);
    if (!m.error.empty()) break;
    if (!cluster.pending.empty() && (!any || m.next_random() % 8 == 0)) {
      land_one(cluster);
    } else if (!any && !warps.empty()) {
      std::string who;
      for (const Warp* warp : warps) {
        for (const Thread* t : warp->threads) {
          if (!t->finished && who.size() < 400) {
            who += (who.empty() ? "" : "; ") + where(*t) + " waits for " + t->waits_for;
            break;
          }
        }
      }
      m.error = "the launch hangs: " + who;
    }
  }
  while (m.error.empty() && !cluster.pending.empty()) land_one(cluster);
  for (auto& [thread, groups] : cluster.stores) {
    for (const auto& group : groups) {
      if (!group.empty() && m.error.empty()) m.error = where(*thread) + " ends before its stores have read shared memory";
    }
  }
  for (auto& block : cluster.blocks) {
    for (auto& thread : block->threads) {
      for (const auto& group : thread->copies) {
        if (!group.empty() && m.error.empty()) m.error = where(*thread) + " ends with copies that it never waited for";
      }
      thread->run = {};  // unwinds what a fault has left in the middle
    }
    m.without_leave += !block->gave_leave;
  }
}

std::unique_ptr<Cluster> make_cluster(const Launch& launch, Size3 first) {
  auto cluster = std::make_unique<Cluster>();
  const uint32_t threads = launch.block.x * launch.block.y * launch.block.z, warps = (threads + kWarp - 1) / kWarp;
  const uint32_t blocks = launch.cluster.x * launch.cluster.y * launch.cluster.z;
  cluster->warps = warps * blocks;
  for (uint32_t rank = 0; rank < blocks; ++rank) {
    auto block = std::make_unique<Block>();
    block->cluster = cluster.get();
    block->rank = rank;
    const uint32_t x = rank % launch.cluster.x, y = rank / launch.cluster.x % launch.cluster.y;
    block->id = {first.x + x, first.y + y, first.z + rank / launch.cluster.x / launch.cluster.y};
    block->shared.assign(launch.shared_bytes + 15, kPoison);
    block->words.resize((launch.shared_bytes + 3) / 4);
    block->reads.resize(block->words.size() * cluster->warps);
    for (uint32_t w = 0; w < warps; ++w) {
      auto warp = std::make_unique<Warp>();
      warp->block = block.get();
      warp->number = rank * warps + w;
      warp->clock.assign(cluster->warps + 1, 0);
      warp->clock[warp->number] = 1;
      for (uint32_t i = w * kWarp; i < std::min((w + 1) * kWarp, threads); ++i) {
        auto thread = std::make_unique<Thread>();
        thread->warp = warp.get();
        thread->id = i, thread->lane = i % kWarp;
        warp->threads.push_back(thread.get());
        block->threads.push_back(std::move(thread));
      }
      if (w % 4 == 0) block->warpgroups.push_back(std::make_unique<Warpgroup>());
      block->warps.push_back(std::move(warp));
    }
    cluster->blocks.push_back(std::move(block));
  }
  return cluster;
}

}  // namespace

Registered::Registered(const Kernel& kernel) { registry().push_back(new Kernel(kernel)); }
std::vector<const Kernel*> all_kernels() { return registry(); }
const Kernel* find_kernel(std::string_view name) {
  for (const Kernel* kernel : registry()) {
    if (name == kernel->name) return kernel;
  }
  return nullptr;
}

Machine& machine() {
  static Machine m;
  return m;
}

std::string launch(const Kernel& kernel, const Launch& launch, const void* record) {
  const std::lock_guard lock(one_at_a_time());
  const uint32_t threads = launch.block.x * launch.block.y * launch.block.z;
  const std::string name = kernel.name;
  if (threads == 0 || threads > static_cast<uint32_t>(kernel.threads)) {
    return name + " is launched with " + std::to_string(threads) + " threads a block; it is compiled for " +
           std::to_string(kernel.threads);
  }
  if (launch.grid.x % launch.cluster.x || launch.grid.y % launch.cluster.y || launch.grid.z % launch.cluster.z) {
    return name + " is launched on a grid that its cluster does not divide";
  }
  if (launch.grid.y > 65535 || launch.grid.z > 65535)
    return name + " is launched on a grid of more than 65535 blocks along y or z";
  if (launch.shared_bytes > 232448) return name + " is launched with more shared memory than any core has";
  Machine& m = machine();
  m = {};
  m.kernel = &kernel, m.record = record, m.random = launch.seed * 0x9e3779b97f4a7c15u | 1;
  m.launched = {launch.grid, launch.block, launch.cluster}, m.early = launch.early;
  for (uint32_t z = 0; z < launch.grid.z; z += launch.cluster.z) {
    for (uint32_t y = 0; y < launch.grid.y; y += launch.cluster.y) {
      for (uint32_t x = 0; x < launch.grid.x; x += launch.cluster.x) {
        const auto cluster = make_cluster(launch, {x, y, z});
        m.cluster = cluster.get();
        run_cluster(*cluster);
        if (!m.error.empty()) return name + ": " + m.error;
      }
    }
  }
  return {};
}

void fault(const std::string& sentence) {
  Machine& m = machine();
  if (m.current == nullptr) {  // a copy that lands
    if (m.error.empty()) m.error = sentence;
    throw CopyFault{};
  }
  m.error = where(*m.current) + ": " + sentence;
  for (;;) m.current->back = std::move(m.current->back).resume();
}

void wait_until(const char* what, std::function<bool()> ready) {
  Thread& thread = self();
  thread.waits_for = what;
  thread.ready = std::move(ready);
  thread.back = std::move(thread.back).resume();
}

void meet(Meeting& meeting, uint32_t threads, uint32_t place, const char* what, void* operand,
          void (*act)(void* const* operands)) {
  if (meeting.arrived == 0) {
    meeting.what = what;
    meeting.operands.assign(threads, nullptr);
  } else if (std::string_view(what) != meeting.what) {
    fault(std::string("meets in ") + what + " while others of its warp are in " + meeting.what);
  }
  meeting.operands[place] = operand;
  if (++meeting.arrived < threads) {
    wait_until(what, [&meeting, generation = meeting.generation] { return meeting.generation != generation; });
    return;
  }
  act(meeting.operands.data());
  meeting.arrived = 0;
  ++meeting.generation;
}

void release(Clock& to) {
  Warp& warp = *self().warp;
  join(to, warp.clock);
  ++warp.clock[warp.number];
}
void acquire(const Clock& from) { join(self().warp->clock, from); }

void meet_named(NamedBarrier& barrier, uint32_t threads, bool wait, const char* what) {
  if (threads % kWarp != 0) fault(std::string(what) + " with a number of threads that is no multiple of 32");
  if (barrier.arrived == 0) {
    barrier.expected = threads;
    barrier.open.clear();
  } else if (barrier.expected != threads) {
    fault(std::string(what) + " with " + std::to_string(threads) + " threads, others with " + std::to_string(barrier.expected));
  }
  release(barrier.open);
  if (++barrier.arrived == threads) {
    barrier.arrived = 0;
    barrier.clock = barrier.open;
    ++barrier.generation;
  } else if (wait) {
    wait_until(what, [&barrier, generation = barrier.generation] { return barrier.generation != generation; });
  }
  if (wait) acquire(barrier.clock);
}

const Launched& launched() { return machine().launched; }
uint32_t thread_id() { return self().id; }
Size3 block_id() { return self().warp->block->id; }
uint32_t cluster_rank() { return self().warp->block->rank; }

void sync_threads(uint32_t number, uint32_t threads) {
  if (number >= 16) fault("bar.sync of a number beyond 15");
  meet_named(self().warp->block->barriers[number], threads, true, "bar.sync");
}
void arrive_threads(uint32_t number, uint32_t threads) {
  meet_named(self().warp->block->barriers[number], threads, false, "bar.arrive");
}
void sync_cluster() {
  const Size3 b = launched().block;
  meet_named(machine().cluster->barrier, static_cast<uint32_t>(b.x * b.y * b.z * machine().cluster->blocks.size()), true,
             "barrier.cluster");
}
void sync_warp() {
  meet_warp("bar.warp.sync", nullptr, [](void* const*) {});
}

namespace {
struct Shuffle {
  uint32_t value, from, result;
};
}  // namespace
uint32_t shuffle(uint32_t value, uint32_t lane, uint32_t exclusive_or) {
  Shuffle s{value, exclusive_or ? self().lane ^ exclusive_or : lane & 31u, 0};
  meet_warp("shfl.sync", &s, [](void* const* all) {
    for (uint32_t i = 0; i < kWarp; ++i) {
      auto* mine = static_cast<Shuffle*>(all[i]);
      mine->result = static_cast<Shuffle*>(all[mine->from & 31u])->value;
    }
  });
  return s.result;
}
uint32_t ballot(bool vote) {
  Shuffle s{vote, 0, 0};
  meet_warp("vote.sync", &s, [](void* const* all) {
    uint32_t votes = 0;
    for (uint32_t i = 0; i < kWarp; ++i) votes |= static_cast<Shuffle*>(all[i])->value << i;
    for (uint32_t i = 0; i < kWarp; ++i) static_cast<Shuffle*>(all[i])->result = votes;
  });
  return s.result;
}
uint64_t blocks_without_leave() {
  const std::lock_guard lock(one_at_a_time());
  return machine().without_leave;
}
void wait_for_prerequisites() { self().waited = true; }
void launch_dependents() { self().warp->block->gave_leave = true; }
uint32_t atomic_add(uint32_t* at, uint32_t value) {
  check_global(at, 4, "atom.add");
  const uint32_t before = *at;
  *at += value;
  return before;
}
void wait_for_word(const uint32_t* at, uint32_t value) {
  check_global(at, 4, "ld.acquire");
  wait_until("a word of memory", [at, value] { return *at == value; });
}
uint32_t atomic_min(uint32_t* at, uint32_t value) {
  check_global(at, 4, "atom.min");
  const uint32_t before = *at;
  if (value < before) *at = value;
  return before;
}

void allow_memory(const void* begin, size_t bytes) { allowed()[static_cast<const unsigned char*>(begin)] = bytes; }
void forget_memory(const void* begin) { allowed().erase(static_cast<const unsigned char*>(begin)); }
void check_waited(const char* what) {
  if (machine().early && machine().current && !self().waited)
    fault(std::string(what) + " before griddepcontrol.wait, while what it follows may still run");
}
void check_global(const void* at, uint32_t bytes, const char* what) {
  check_waited(what);
  if (reinterpret_cast<uintptr_t>(at) % bytes)
    fault(std::string(what) + " of " + std::to_string(bytes) + " bytes at an address that is no multiple of it");
  noted(at, bytes, what);
  const auto& ranges = allowed();
  if (ranges.empty()) return;
  const auto* p = static_cast<const unsigned char*>(at);
  auto next = ranges.upper_bound(p);
  if (next != ranges.begin()) {
    --next;
    if (p + bytes <= next->first + next->second) return;
    fault(std::string(what) + " " + std::to_string(p + bytes - next->first - next->second) + " bytes behind the end of memory");
  }
  fault(std::string(what) + " outside of all memory");
}
void load_global(void* to, const void* from, uint32_t bytes) {
  check_global(from, bytes, "ld.global");
  __builtin_memcpy(to, from, bytes);
}
void store_global(void* to, const void* from, uint32_t bytes) {
  check_global(to, bytes, "st.global");
  __builtin_memcpy(to, from, bytes);
}

}  // namespace cuda_model
