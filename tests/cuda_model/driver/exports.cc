// The functions of CUDA's driver interface that Sparkle calls, as libcuda.so.1 exports them; and a few of the stand-in's own,
// by which tests ask what was done and plant failures.
#include <algorithm>
#include <cstring>

#include "model_driver.h"

namespace cuda_model::driver {
namespace {

// Every call: one at a time, failing where a test has asked for it, and where the context is lost. `context`: needs one.
struct Call {
  Driver& driver = Driver::get();
  std::lock_guard<std::mutex> lock{driver.mutex};
  Context* context = nullptr;
  CuResult result = CuResult::success;

  Call(const char* symbol, bool needs_context) {
    if (!driver.fail_symbol.empty() && driver.fail_symbol == symbol) {
      driver.fail_symbol.clear();
      result = driver.fail_result;
      return;
    }
    if (!driver.initialized) {
      result = CuResult::not_initialized;
      return;
    }
    context = driver.current();
    if (!needs_context) return;
    if (!context) {
      tell(std::string(symbol) + " without a context");
      result = CuResult::invalid_context;
    } else {
      result = context->lost;
    }
  }
  bool failed() const { return result != CuResult::success; }
};

bool owns(const Context& context, const Stream* stream) {
  const bool own =
      std::any_of(context.streams.begin(), context.streams.end(), [&](const auto& s) { return s.get() == stream; });
  if (!own) tell("a stream of another context, or one that is gone");
  return own;
}
bool owns(const Context& context, const Event* event) {
  const bool own = std::any_of(context.events.begin(), context.events.end(), [&](const auto& e) { return e.get() == event; });
  if (!own) tell("an event of another context, or one that is gone");
  return own;
}
template <class T>
T* real(void* handle) {
  return static_cast<T*>(handle);
}
// 0: the context's default stream.
Stream* of(Context& context, CuStream stream) {
  if (stream) return real<Stream>(stream);
  if (!context.default_stream) {
    context.default_stream = context.streams.emplace_back(std::make_unique<Stream>()).get();
    context.default_stream->owner = &context;
  }
  return context.default_stream;
}
#define MODEL_CALL(symbol, needs_context) \
  Call call(symbol, needs_context);       \
  if (call.failed()) return call.result
#define MODEL_NEEDS(condition, result_otherwise) \
  do {                                           \
    if (!(condition)) return result_otherwise;   \
  } while (false)

// What a launch asks for, checked against the device and the kernel.
CuResult prepare(Driver& driver, Context& context, Function* function, const unsigned* grid, const unsigned* block,
                 unsigned shared, void** params, KernelLaunch& launch) {
  if (!function || function->owner != &context) {
    tell("a function of another context");
    return CuResult::invalid_handle;
  }
  const Kernel& kernel = *function->kernel;
  const std::string name = kernel.name;
  const auto refused = [&](const std::string& why) {
    tell(name + ": " + why);
    return CuResult::invalid_value;
  };
  for (int i = 0; i < 3; ++i)
    if (grid[i] == 0 || block[i] == 0) return refused("a launch of no blocks or no threads");
  if (grid[0] > 0x7fffffffu || grid[1] > 65535 || grid[2] > 65535) return refused("a grid that is too large");
  const unsigned threads = block[0] * block[1] * block[2];
  if (threads > static_cast<unsigned>(kernel.threads))
    return refused(std::to_string(threads) + " threads, and it is bound to " + std::to_string(kernel.threads));
  if (shared > static_cast<unsigned>(function->most_shared))
    return refused(std::to_string(shared) + " bytes of shared memory that it was not given");
  (void)driver;
  if (!params || !params[0]) return refused("no record");
  launch.kernel = &kernel;
  launch.how.grid = {grid[0], grid[1], grid[2]};
  launch.how.block = {block[0], block[1], block[2]};
  launch.how.shared_bytes = shared;
  const size_t align = std::max<size_t>(64, kernel.record_alignment), bytes = (kernel.record_bytes + align - 1) / align * align;
  launch.record = std::shared_ptr<std::byte>(static_cast<std::byte*>(std::aligned_alloc(align, bytes)), std::free);
  std::memcpy(launch.record.get(), params[0], kernel.record_bytes);
  return CuResult::success;
}

CuResult set_cluster(const Function& function, const CuLaunchAttributeValue& value, KernelLaunch& launch) {
  const unsigned size[3] = {value.cluster.x, value.cluster.y, value.cluster.z};
  const unsigned grid[3] = {launch.how.grid.x, launch.how.grid.y, launch.how.grid.z};
  unsigned blocks = 1;
  for (int i = 0; i < 3; ++i) {
    if (size[i] == 0 || grid[i] % size[i] != 0) {
      tell(std::string(launch.kernel->name) + ": clusters that do not divide its grid");
      return CuResult::invalid_value;
    }
    blocks *= size[i];
  }
  if (blocks > (function.large_clusters ? 16u : 8u)) return CuResult::invalid_value;
  launch.how.cluster = {size[0], size[1], size[2]};
  return CuResult::success;
}

}  // namespace
}  // namespace cuda_model::driver

using namespace cuda_model::driver;

#define EXPORT extern "C" __attribute__((visibility("default"))) CuResult

EXPORT cuInit(unsigned flags) {
  Driver& driver = Driver::get();
  const std::lock_guard lock(driver.mutex);
  if (driver.devices.empty()) return CuResult::no_device;
  driver.initialized = true;
  return flags == 0 ? CuResult::success : CuResult::invalid_value;
}
EXPORT cuDriverGetVersion(int* version) {
  const char* other = std::getenv("SPARKLE_CUDA_MODEL_VERSION");
  *version = other ? std::atoi(other) : 13020;
  return CuResult::success;
}
EXPORT cuGetErrorName(CuResult result, const char** name) {
  switch (result) {
    case CuResult::success: *name = "CUDA_SUCCESS"; break;
    case CuResult::invalid_value: *name = "CUDA_ERROR_INVALID_VALUE"; break;
    case CuResult::out_of_memory: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case CuResult::invalid_context: *name = "CUDA_ERROR_INVALID_CONTEXT"; break;
    case CuResult::invalid_handle: *name = "CUDA_ERROR_INVALID_HANDLE"; break;
    case CuResult::launch_failed: *name = "CUDA_ERROR_LAUNCH_FAILED"; break;
    default: *name = "CUDA_ERROR"; break;
  }
  return CuResult::success;
}
EXPORT cuGetErrorString(CuResult, const char** text) {
  *text = "said by the functional model";
  return CuResult::success;
}

EXPORT cuDeviceGetCount(int* count) {
  MODEL_CALL("cuDeviceGetCount", false);
  *count = static_cast<int>(call.driver.devices.size());
  return CuResult::success;
}
EXPORT cuDeviceGet(CuDevice* device, int ordinal) {
  MODEL_CALL("cuDeviceGet", false);
  MODEL_NEEDS(ordinal >= 0 && ordinal < static_cast<int>(call.driver.devices.size()), CuResult::invalid_value);
  *device = ordinal;
  return CuResult::success;
}
EXPORT cuDeviceGetName(char* name, int length, CuDevice device) {
  MODEL_CALL("cuDeviceGetName", false);
  std::strncpy(name, call.driver.devices[static_cast<size_t>(device)].name.c_str(), static_cast<size_t>(length));
  return CuResult::success;
}
EXPORT cuDeviceGetUuid_v2(CuUuid* uuid, CuDevice device) {
  MODEL_CALL("cuDeviceGetUuid_v2", false);
  std::memset(uuid->bytes, 0x40 + device, sizeof uuid->bytes);
  return CuResult::success;
}
EXPORT cuDeviceTotalMem_v2(size_t* bytes, CuDevice device) {
  MODEL_CALL("cuDeviceTotalMem_v2", false);
  *bytes = call.driver.devices[static_cast<size_t>(device)].memory;
  return CuResult::success;
}
EXPORT cuDeviceGetAttribute(int* value, CuDeviceAttribute attribute, CuDevice device) {
  MODEL_CALL("cuDeviceGetAttribute", false);
  const auto& all = call.driver.devices[static_cast<size_t>(device)].attributes;
  const auto at = all.find(attribute);
  MODEL_NEEDS(at != all.end(), CuResult::invalid_value);
  *value = at->second;
  return CuResult::success;
}

EXPORT cuDevicePrimaryCtxRetain(CuContext* context, CuDevice device) {
  MODEL_CALL("cuDevicePrimaryCtxRetain", false);
  Context& c = *call.driver.contexts[static_cast<size_t>(device)];
  ++c.retained;
  *context = reinterpret_cast<CuContext>(&c);
  return CuResult::success;
}
EXPORT cuDevicePrimaryCtxRelease_v2(CuDevice device) {
  MODEL_CALL("cuDevicePrimaryCtxRelease_v2", false);
  Context& c = *call.driver.contexts[static_cast<size_t>(device)];
  MODEL_NEEDS(c.retained > 0, CuResult::invalid_context);
  if (--c.retained > 0) return CuResult::success;
  // The last one takes all that it holds with it, and what is still waiting.
  (void)call.driver.advance_all(c);
  std::vector<std::byte*> left;
  for (const auto& [first, a] : call.driver.allocations)
    if (a.owner == &c) left.push_back(first);
  for (std::byte* first : left) (void)call.driver.release(first, call.driver.allocations[first].pinned);
  c.streams.clear(), c.events.clear(), c.modules.clear(), c.graphs.clear(), c.execs.clear();
  c.lost = CuResult::success;
  return CuResult::success;
}
EXPORT cuCtxPushCurrent_v2(CuContext context) {
  MODEL_CALL("cuCtxPushCurrent_v2", false);
  context_stack().push_back(reinterpret_cast<Context*>(context));
  return CuResult::success;
}
EXPORT cuCtxPopCurrent_v2(CuContext* context) {
  MODEL_CALL("cuCtxPopCurrent_v2", false);
  MODEL_NEEDS(!context_stack().empty(), CuResult::invalid_context);
  *context = reinterpret_cast<CuContext>(context_stack().back());
  context_stack().pop_back();
  return CuResult::success;
}

EXPORT cuMemAlloc_v2(CuAddress* address, size_t bytes) {
  MODEL_CALL("cuMemAlloc_v2", true);
  std::byte* memory = nullptr;
  const CuResult r = call.driver.allocate(*call.context, bytes, false, &memory);
  *address = reinterpret_cast<CuAddress>(memory);
  return r;
}
EXPORT cuMemFree_v2(CuAddress address) {
  MODEL_CALL("cuMemFree_v2", true);
  return call.driver.release(reinterpret_cast<std::byte*>(address), false);
}
EXPORT cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  MODEL_CALL("cuMemHostAlloc", true);
  std::byte* host = nullptr;
  const CuResult r = call.driver.allocate(*call.context, bytes, true, &host);
  *memory = host;
  return r;
}
EXPORT cuMemFreeHost(void* memory) {
  MODEL_CALL("cuMemFreeHost", true);
  return call.driver.release(static_cast<std::byte*>(memory), true);
}
EXPORT cuMemHostGetDevicePointer_v2(CuAddress* address, void* memory, unsigned) {
  MODEL_CALL("cuMemHostGetDevicePointer_v2", true);
  *address = reinterpret_cast<CuAddress>(memory);
  const Allocation* a = call.driver.holder(*address, 1);
  return a && a->pinned ? CuResult::success : CuResult::invalid_value;
}
EXPORT cuPointerGetAttribute(void* value, CuPointerAttribute attribute, CuAddress address) {
  MODEL_CALL("cuPointerGetAttribute", false);
  const Allocation* a = call.driver.holder(address, 1);
  MODEL_NEEDS(a, CuResult::invalid_value);
  switch (attribute) {
    case CuPointerAttribute::context: *static_cast<CuContext*>(value) = reinterpret_cast<CuContext>(a->owner); break;
    case CuPointerAttribute::memory_type: *static_cast<unsigned*>(value) = a->pinned ? 1 : kMemoryOfDevice; break;
    case CuPointerAttribute::device_ordinal: *static_cast<int*>(value) = a->owner->device; break;
  }
  return CuResult::success;
}
EXPORT cuMemGetAddressRange_v2(CuAddress* base, size_t* bytes, CuAddress address) {
  MODEL_CALL("cuMemGetAddressRange_v2", true);
  const Allocation* a = call.driver.holder(address, 1);
  MODEL_NEEDS(a && !a->pinned, CuResult::invalid_value);
  *base = reinterpret_cast<CuAddress>(a->mapping), *bytes = a->bytes;
  for (const auto& [first, other] : call.driver.allocations)
    if (&other == a) *base = reinterpret_cast<CuAddress>(first);
  return CuResult::success;
}

EXPORT cuMemcpyAsync(CuAddress to, CuAddress from, size_t bytes, CuStream stream) {
  MODEL_CALL("cuMemcpyAsync", true);
  MODEL_NEEDS(owns(*call.context, of(*call.context, stream)), CuResult::invalid_handle);
  if (!call.driver.holder(to, bytes) || !call.driver.holder(from, bytes)) {
    tell("a copy of " + std::to_string(bytes) + " bytes that are not all inside of memory of the device's or pinned memory");
    return CuResult::invalid_value;
  }
  Work work(Work::Kind::copy);
  work.to = to, work.from = from, work.bytes = bytes;
  of(*call.context, stream)->waiting.push_back(std::move(work));
  return CuResult::success;
}

EXPORT cuStreamCreate(CuStream* stream, unsigned) {
  MODEL_CALL("cuStreamCreate", true);
  auto& s = call.context->streams.emplace_back(std::make_unique<Stream>());
  s->owner = call.context;
  *stream = reinterpret_cast<CuStream>(s.get());
  return CuResult::success;
}
EXPORT cuStreamDestroy_v2(CuStream stream) {
  MODEL_CALL("cuStreamDestroy_v2", true);
  MODEL_NEEDS(owns(*call.context, of(*call.context, stream)), CuResult::invalid_handle);
  const CuResult r = call.driver.advance(*of(*call.context, stream), nullptr);
  std::erase_if(call.context->streams, [&](const auto& s) { return s.get() == of(*call.context, stream); });
  return r;
}
EXPORT cuStreamGetCtx(CuStream stream, CuContext* context) {
  MODEL_CALL("cuStreamGetCtx", false);
  if (!stream) {  // the default stream is the current context's
    if (!call.context) return CuResult::invalid_context;
    *context = reinterpret_cast<CuContext>(call.context);
    return CuResult::success;
  }
  for (const auto& c : call.driver.contexts)
    for (const auto& s : c->streams)
      if (s.get() == real<Stream>(stream)) {
        *context = reinterpret_cast<CuContext>(c.get());
        return CuResult::success;
      }
  return CuResult::invalid_handle;
}
EXPORT cuStreamWaitEvent(CuStream stream, CuEvent event, unsigned) {
  MODEL_CALL("cuStreamWaitEvent", true);
  MODEL_NEEDS(owns(*call.context, of(*call.context, stream)) && owns(*call.context, real<Event>(event)),
              CuResult::invalid_handle);
  if (!real<Event>(event)->mark) return CuResult::success;
  Work work(Work::Kind::wait);
  work.mark = real<Event>(event)->mark;
  of(*call.context, stream)->waiting.push_back(std::move(work));
  return CuResult::success;
}
EXPORT cuEventCreate(CuEvent* event, unsigned flags) {
  MODEL_CALL("cuEventCreate", true);
  auto& e = call.context->events.emplace_back(std::make_unique<Event>());
  e->owner = call.context, e->timed = !(flags & kEventNoTiming);
  *event = reinterpret_cast<CuEvent>(e.get());
  return CuResult::success;
}
EXPORT cuEventDestroy_v2(CuEvent event) {
  MODEL_CALL("cuEventDestroy_v2", true);
  MODEL_NEEDS(owns(*call.context, real<Event>(event)), CuResult::invalid_handle);
  std::erase_if(call.context->events, [&](const auto& e) { return e.get() == real<Event>(event); });
  return CuResult::success;
}
EXPORT cuEventRecord(CuEvent event, CuStream stream) {
  MODEL_CALL("cuEventRecord", true);
  MODEL_NEEDS(owns(*call.context, of(*call.context, stream)) && owns(*call.context, real<Event>(event)),
              CuResult::invalid_handle);
  auto mark = std::make_shared<Mark>();
  mark->stream = of(*call.context, stream);
  real<Event>(event)->mark = mark;
  Work work(Work::Kind::record);
  work.mark = std::move(mark);
  of(*call.context, stream)->waiting.push_back(std::move(work));
  return CuResult::success;
}
EXPORT cuEventQuery(CuEvent event) {
  MODEL_CALL("cuEventQuery", true);
  MODEL_NEEDS(owns(*call.context, real<Event>(event)), CuResult::invalid_handle);
  const auto mark = real<Event>(event)->mark;
  if (!mark || mark->done) return CuResult::success;
  // Time passes: who asks often enough gets there.
  if (mark->stream->waiting.empty()) return CuResult::unknown;
  if (const CuResult r = call.driver.step(*mark->stream); r != CuResult::success) return r;
  return mark->done ? CuResult::success : CuResult::not_ready;
}
EXPORT cuEventSynchronize(CuEvent event) {
  MODEL_CALL("cuEventSynchronize", true);
  MODEL_NEEDS(owns(*call.context, real<Event>(event)), CuResult::invalid_handle);
  const auto mark = real<Event>(event)->mark;
  return !mark || mark->done ? CuResult::success : call.driver.advance(*mark->stream, mark.get());
}
EXPORT cuEventElapsedTime(float* milliseconds, CuEvent begin, CuEvent end) {
  MODEL_CALL("cuEventElapsedTime", true);
  const Event &b = *real<Event>(begin), &e = *real<Event>(end);
  MODEL_NEEDS(b.timed && e.timed && b.mark && e.mark, CuResult::invalid_handle);
  MODEL_NEEDS(b.mark->done && e.mark->done, CuResult::not_ready);
  *milliseconds = static_cast<float>((e.mark->seconds - b.mark->seconds) * 1e3);
  return CuResult::success;
}

EXPORT cuModuleLoadData(CuModule* module, const void* image) {
  MODEL_CALL("cuModuleLoadData", true);
  MODEL_NEEDS(image, CuResult::invalid_value);
  const auto& device = call.driver.devices[static_cast<size_t>(call.context->device)].attributes;
  const int capability =
      10 * device.at(CuDeviceAttribute::compute_capability_major) + device.at(CuDeviceAttribute::compute_capability_minor);
  std::vector<const cuda_model::Kernel*> compiled;
  if (const CuResult r = load_compiled(static_cast<const char*>(image), capability, compiled); r != CuResult::success) return r;
  auto& m = call.context->modules.emplace_back(std::make_unique<Module>());
  m->owner = call.context, m->compiled = std::move(compiled);
  *module = reinterpret_cast<CuModule>(m.get());
  return CuResult::success;
}
EXPORT cuModuleUnload(CuModule module) {
  MODEL_CALL("cuModuleUnload", true);
  std::erase_if(call.context->modules, [&](const auto& m) { return m.get() == real<Module>(module); });
  return CuResult::success;
}
EXPORT cuModuleGetFunction(CuFunction* function, CuModule module, const char* name) {
  MODEL_CALL("cuModuleGetFunction", true);
  const auto& own = real<Module>(module)->compiled;
  const auto is_it = [&](const cuda_model::Kernel* k) { return std::string_view(k->name) == name; };
  const auto at = std::find_if(own.begin(), own.end(), is_it);
  const cuda_model::Kernel* kernel = at != own.end() ? *at : own.empty() ? cuda_model::find_kernel(name) : nullptr;
  MODEL_NEEDS(kernel, CuResult::not_found);
  auto& f = real<Module>(module)->functions[name];
  if (!f) {
    f = std::make_unique<Function>();
    f->owner = call.context, f->kernel = kernel;
  }
  *function = reinterpret_cast<CuFunction>(f.get());
  return CuResult::success;
}
EXPORT cuFuncGetAttribute(int* value, CuFunctionAttribute attribute, CuFunction function) {
  MODEL_CALL("cuFuncGetAttribute", true);
  const Function& f = *real<Function>(function);
  *value = attribute == CuFunctionAttribute::max_threads_per_block           ? f.kernel->threads
           : attribute == CuFunctionAttribute::max_dynamic_shared_size_bytes ? f.most_shared
                                                                             : 0;
  return CuResult::success;
}
EXPORT cuFuncSetAttribute(CuFunction function, CuFunctionAttribute attribute, int value) {
  MODEL_CALL("cuFuncSetAttribute", true);
  Function& f = *real<Function>(function);
  if (attribute == CuFunctionAttribute::max_dynamic_shared_size_bytes) {
    const auto& device = call.driver.devices[static_cast<size_t>(f.owner->device)];
    MODEL_NEEDS(value <= device.attributes.at(CuDeviceAttribute::max_shared_memory_per_block_optin), CuResult::invalid_value);
    f.most_shared = value;
  } else if (attribute == CuFunctionAttribute::non_portable_cluster_size_allowed) {
    f.large_clusters = value != 0;
  } else {
    return CuResult::invalid_value;
  }
  return CuResult::success;
}

EXPORT cuLaunchKernelEx(const CuLaunchConfig* config, CuFunction function, void** params, void**) {
  MODEL_CALL("cuLaunchKernelEx", true);
  MODEL_NEEDS(owns(*call.context, real<Stream>(config->stream)), CuResult::invalid_handle);
  Work work(Work::Kind::launch);
  auto* f = real<Function>(function);
  CuResult r = prepare(call.driver, *call.context, f, config->grid, config->block, config->shared_bytes, params, work.launch);
  for (unsigned i = 0; i < config->attribute_count && r == CuResult::success; ++i)
    if (config->attributes[i].id == CuLaunchAttributeId::cluster_dimension)
      r = set_cluster(*f, config->attributes[i].value, work.launch);
  if (r == CuResult::success) real<Stream>(config->stream)->waiting.push_back(std::move(work));
  return r;
}

EXPORT cuGraphCreate(CuGraph* graph, unsigned) {
  MODEL_CALL("cuGraphCreate", true);
  auto& g = call.context->graphs.emplace_back(std::make_shared<Graph>());
  *graph = reinterpret_cast<CuGraph>(g.get());
  return CuResult::success;
}
EXPORT cuGraphDestroy(CuGraph graph) {
  MODEL_CALL("cuGraphDestroy", true);
  std::erase_if(call.context->graphs, [&](const auto& g) { return g.get() == real<Graph>(graph); });
  return CuResult::success;
}
EXPORT cuGraphAddKernelNode_v2(CuGraphNode* node, CuGraph graph, const CuGraphNode* after, size_t count,
                               const CuKernelNodeParams* params) {
  MODEL_CALL("cuGraphAddKernelNode_v2", true);
  Graph& g = *real<Graph>(graph);
  auto fresh = std::make_unique<GraphNode>();
  const CuResult r = prepare(call.driver, *call.context, real<Function>(params->function), params->grid, params->block,
                             params->shared_bytes, params->params, fresh->launch);
  MODEL_NEEDS(r == CuResult::success, r);
  fresh->function = real<Function>(params->function);
  for (size_t i = 0; i < count; ++i) {
    const auto at =
        std::find_if(g.nodes.begin(), g.nodes.end(), [&](const auto& n) { return n.get() == real<GraphNode>(after[i]); });
    MODEL_NEEDS(at != g.nodes.end(), CuResult::invalid_value);
    fresh->after.push_back(static_cast<size_t>(at - g.nodes.begin()));
  }
  *node = reinterpret_cast<CuGraphNode>(fresh.get());
  g.nodes.push_back(std::move(fresh));
  return CuResult::success;
}
EXPORT cuGraphKernelNodeSetAttribute(CuGraphNode node, CuLaunchAttributeId attribute, const CuLaunchAttributeValue* value) {
  MODEL_CALL("cuGraphKernelNodeSetAttribute", true);
  MODEL_NEEDS(attribute == CuLaunchAttributeId::cluster_dimension, CuResult::invalid_value);
  GraphNode& n = *real<GraphNode>(node);
  return set_cluster(*n.function, *value, n.launch);
}
EXPORT cuGraphAddDependencies_v2(CuGraph graph, const CuGraphNode* from, const CuGraphNode* to, const CuGraphEdge* edges,
                                 size_t count) {
  MODEL_CALL("cuGraphAddDependencies_v2", true);
  Graph& g = *real<Graph>(graph);
  const auto place_of = [&](CuGraphNode node) {
    return static_cast<size_t>(
        std::find_if(g.nodes.begin(), g.nodes.end(), [&](const auto& n) { return n.get() == real<GraphNode>(node); }) -
        g.nodes.begin());
  };
  const auto& device = call.driver.devices[static_cast<size_t>(call.context->device)];
  for (size_t i = 0; i < count; ++i) {
    const CuGraphEdge edge = edges ? edges[i] : CuGraphEdge{};
    const bool early = edge.type == kEdgeProgrammatic;
    MODEL_NEEDS(place_of(from[i]) < place_of(to[i]) && place_of(to[i]) < g.nodes.size(), CuResult::invalid_value);
    MODEL_NEEDS(edge.to_port == 0 && edge.type <= kEdgeProgrammatic, CuResult::invalid_value);
    MODEL_NEEDS(edge.from_port <= kPortLaunchOrder && early == (edge.from_port != 0), CuResult::invalid_value);
    for (const unsigned char byte : edge.reserved) MODEL_NEEDS(byte == 0, CuResult::invalid_value);
    MODEL_NEEDS(!early || device.attributes.at(CuDeviceAttribute::compute_capability_major) >= 9, CuResult::not_supported);
    GraphNode& node = *real<GraphNode>(to[i]);
    MODEL_NEEDS(std::count(node.after.begin(), node.after.end(), place_of(from[i])) == 0, CuResult::invalid_value);
    node.after.push_back(place_of(from[i]));
    node.early = node.early || early;
  }
  return CuResult::success;
}
EXPORT cuGraphInstantiateWithFlags(CuGraphExec* exec, CuGraph graph, unsigned long long) {
  MODEL_CALL("cuGraphInstantiateWithFlags", true);
  auto nodes = std::make_shared<std::vector<GraphNode>>();
  for (const auto& n : real<Graph>(graph)->nodes) nodes->push_back(*n);
  ++call.driver.counts.graphs;
  *exec = reinterpret_cast<CuGraphExec>(nodes.get());
  call.context->execs.push_back(std::move(nodes));
  return CuResult::success;
}
EXPORT cuGraphLaunch(CuGraphExec exec, CuStream stream) {
  MODEL_CALL("cuGraphLaunch", true);
  MODEL_NEEDS(owns(*call.context, of(*call.context, stream)), CuResult::invalid_handle);
  for (const auto& e : call.context->execs)
    if (e.get() == real<std::vector<GraphNode>>(exec)) {
      Work work(Work::Kind::graph);
      work.graph = e;
      of(*call.context, stream)->waiting.push_back(std::move(work));
      return CuResult::success;
    }
  tell("a graph that is gone");
  return CuResult::invalid_handle;
}
EXPORT cuGraphExecDestroy(CuGraphExec exec) {
  MODEL_CALL("cuGraphExecDestroy", true);
  std::erase_if(call.context->execs, [&](const auto& e) { return e.get() == real<std::vector<GraphNode>>(exec); });
  return CuResult::success;
}

namespace {

cuda_model::MapShape map_shape(CuTensorType type, uint32_t rank, void* address, const uint64_t* sizes, const uint64_t* strides,
                               const uint32_t* element_strides, CuTensorSwizzle swizzle) {
  cuda_model::MapShape shape;
  shape.type = type == CuTensorType::f16    ? cuda_model::MapType::f16
               : type == CuTensorType::bf16 ? cuda_model::MapType::bf16
               : type == CuTensorType::f32  ? cuda_model::MapType::f32
               : type == CuTensorType::tf32 ? cuda_model::MapType::tf32
                                            : cuda_model::MapType::u8;
  const uint64_t element = type == CuTensorType::u8 ? 1 : type == CuTensorType::f32 || type == CuTensorType::tf32 ? 4 : 2;
  shape.rank = rank, shape.address = address;
  shape.swizzle = swizzle == CuTensorSwizzle::bytes_128 ? 128 : 0;
  for (uint32_t i = 0; i < rank && i < 5; ++i) {
    shape.size[i] = sizes[i], shape.element_strides[i] = element_strides[i];
    shape.strides[i] = i == 0 ? element : strides[i - 1];
  }
  return shape;
}
CuResult encode(const cuda_model::MapShape& shape, CuTensorMap* map) {
  const std::string refused = cuda_model::encode(shape, *reinterpret_cast<cuda_model::TensorMap*>(map));
  if (!refused.empty()) tell(refused);
  return refused.empty() ? CuResult::success : CuResult::invalid_value;
}

}  // namespace
EXPORT cuTensorMapEncodeTiled(CuTensorMap* map, CuTensorType type, uint32_t rank, void* address, const uint64_t* sizes,
                              const uint64_t* strides, const uint32_t* box, const uint32_t* element_strides, int,
                              CuTensorSwizzle swizzle, CuTensorPromotion, int) {
  MODEL_CALL("cuTensorMapEncodeTiled", false);
  auto shape = map_shape(type, rank, address, sizes, strides, element_strides, swizzle);
  for (uint32_t i = 0; i < rank && i < 5; ++i) shape.box[i] = box[i];
  return encode(shape, map);
}
EXPORT cuTensorMapEncodeIm2col(CuTensorMap* map, CuTensorType type, uint32_t rank, void* address, const uint64_t* sizes,
                               const uint64_t* strides, const int* lower, const int* upper, uint32_t channels, uint32_t pixels,
                               const uint32_t* element_strides, int, CuTensorSwizzle swizzle, CuTensorPromotion, int) {
  MODEL_CALL("cuTensorMapEncodeIm2col", false);
  auto shape = map_shape(type, rank, address, sizes, strides, element_strides, swizzle);
  shape.im2col = true, shape.channels = channels, shape.pixels = pixels;
  for (uint32_t i = 0; i + 2 < rank && i < 3; ++i) shape.lower[i] = lower[i], shape.upper[i] = upper[i];
  return encode(shape, map);
}

// The next call of `symbol` fails with `result`.
extern "C" __attribute__((visibility("default"))) void cuda_model_fail_next(const char* symbol, int result) {
  Driver& driver = Driver::get();
  const std::lock_guard lock(driver.mutex);
  driver.fail_symbol = symbol, driver.fail_result = static_cast<CuResult>(result);
}
// What was done so far: launches of kernels, of graphs, copies, graphs made, allocations, launches behind programmatic edges.
extern "C" __attribute__((visibility("default"))) void cuda_model_counts(unsigned long long* counts) {
  Driver& driver = Driver::get();
  const std::lock_guard lock(driver.mutex);
  const Counts& c = driver.counts;
  const unsigned long long all[] = {c.launches, c.graph_launches, c.copies, c.graphs, c.allocations, c.early_launches};
  std::copy(std::begin(all), std::end(all), counts);
}
