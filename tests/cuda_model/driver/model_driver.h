// The stand-in for libcuda.so.1: what a driver keeps - contexts, memory, streams, graphs - over kernels that the functional
// model runs on the host. Work waits in its streams until somebody waits for it, so what is read too early is not there yet;
// device memory can be touched while kernels and copies run, and by nobody else. One lock guards all of it.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "backends/cuda/driver/cu.h"
#include "cuda_model/model.h"

namespace cuda_model::driver {

using namespace sparkle::cuda;

struct KernelLaunch {
  const Kernel* kernel = nullptr;
  Launch how;
  std::shared_ptr<std::byte> record;
};

struct Context;

struct Allocation {
  Context* owner = nullptr;
  std::byte* mapping = nullptr;  // guard pages around the bytes
  size_t mapped = 0;
  size_t bytes = 0;
  bool pinned = false;
};

struct Stream;

// What an event was last recorded as: done when its stream has come so far.
struct Mark {
  bool done = false;
  double seconds = 0;
  Stream* stream = nullptr;
};
struct Event {
  Context* owner = nullptr;
  bool timed = true;
  std::shared_ptr<Mark> mark;  // nullptr: never recorded
};

struct Function;
struct GraphNode {
  const Function* function = nullptr;
  KernelLaunch launch;
  std::vector<size_t> after;
  bool early = false;  // by a programmatic edge
};
struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;
};

struct Work {
  enum class Kind { launch, copy, record, wait, graph } kind;
  explicit Work(Kind k) : kind(k) {}
  KernelLaunch launch;
  CuAddress to = 0, from = 0;
  size_t bytes = 0;
  std::shared_ptr<Mark> mark;
  std::shared_ptr<const std::vector<GraphNode>> graph;
};
struct Stream {
  Context* owner = nullptr;
  std::deque<Work> waiting;
};

struct Function {
  Context* owner = nullptr;
  const Kernel* kernel = nullptr;
  int most_shared = 48 << 10;
  bool large_clusters = false;
};
struct Module {
  Context* owner = nullptr;
  std::vector<const Kernel*> compiled;  // that it brought along; empty: it has the model's own
  std::map<std::string, std::unique_ptr<Function>> functions;
};

// Attributes of a device as its driver tells them.
struct DeviceModel {
  std::string name;
  size_t memory = 0;
  std::map<CuDeviceAttribute, int> attributes;
};

struct Context {
  int device = 0;
  int retained = 0;
  std::vector<std::unique_ptr<Stream>> streams;
  Stream* default_stream = nullptr;  // one of them, once it is used
  std::vector<std::unique_ptr<Event>> events;
  std::vector<std::unique_ptr<Module>> modules;
  std::vector<std::shared_ptr<Graph>> graphs;
  std::vector<std::shared_ptr<std::vector<GraphNode>>> execs;
  CuResult lost = CuResult::success;  // no call succeeds any more once something failed
};

// What was done so far, for tests.
struct Counts {
  unsigned long long launches = 0, graph_launches = 0, copies = 0, graphs = 0, allocations = 0, early_launches = 0;
};

class Driver {
 public:
  static Driver& get();
  std::mutex mutex;
  std::vector<DeviceModel> devices;
  std::vector<std::unique_ptr<Context>> contexts;  // one for each device
  std::map<std::byte*, Allocation> allocations;    // by first byte
  std::mt19937 random{7};
  Counts counts;
  bool initialized = false;
  std::string fail_symbol;  // the next call of it fails with fail_result
  CuResult fail_result = CuResult::success;

  // The calling thread's context; nullptr: none.
  Context* current();
  // Memory that holds the bytes; nullptr: nobody's, or not all of them.
  const Allocation* holder(CuAddress address, size_t bytes);
  CuResult allocate(Context& context, size_t bytes, bool pinned, std::byte** memory);
  CuResult release(std::byte* memory, bool pinned);
  // Does what waits in a stream, up to a mark where one is given, and before it what that waits for.
  CuResult advance(Stream& stream, const Mark* until);
  CuResult advance_all(Context& context);
  // Does one piece of work of the stream.
  CuResult step(Stream& stream);

 private:
  Driver();
  void open_device_memory(bool open);
  std::string run(const KernelLaunch& launch);
  // In any order that edges allow; nodes that none orders may not touch the same bytes where one of them writes.
  std::string run_graph(const std::vector<GraphNode>& nodes);
  std::string place_of(uintptr_t byte) const;
};

// The calling thread's contexts, the last one current.
std::vector<Context*>& context_stack();

// What a module of libnvrtc_model.so holds; nothing of any other.
CuResult load_compiled(const char* image, int capability, std::vector<const Kernel*>& kernels);

// Tells what went wrong on the standard error, since a CUresult is all that a caller gets.
void tell(const std::string& what);

}  // namespace cuda_model::driver
