// The functions of CUDA's driver interface that Sparkle calls, as libcuda.so.1 exports them: devices, contexts, memory, streams
// and events; and a few of the stand-in's own, by which tests ask what was done and plant failures.
#include "calls.h"

#include <cstdlib>
#include <cstring>

namespace cuda_model::driver {

int driver_version() {
  const char* other = std::getenv("SPARKLE_CUDA_MODEL_VERSION");
  return other ? std::atoi(other) : 13000;
}

}  // namespace cuda_model::driver

using namespace cuda_model::driver;

EXPORT cuInit(unsigned flags) {
  Driver& driver = Driver::get();
  const std::lock_guard lock(driver.mutex);
  if (driver.devices.empty()) return CuResult::no_device;
  driver.initialized = true;
  return flags == 0 ? CuResult::success : CuResult::invalid_value;
}
EXPORT cuDriverGetVersion(int* version) {
  *version = driver_version();
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

// The next call of `symbol` fails with `result`.
extern "C" __attribute__((visibility("default"))) void cuda_model_fail_next(const char* symbol, int result) {
  Driver& driver = Driver::get();
  const std::lock_guard lock(driver.mutex);
  driver.fail_symbol = symbol, driver.fail_result = static_cast<CuResult>(result);
}
// Another context of a device, beside its primary one: as cuCtxCreate makes them.
extern "C" __attribute__((visibility("default"))) CuContext cuda_model_other_context(CuDevice device) {
  Driver& driver = Driver::get();
  const std::lock_guard lock(driver.mutex);
  auto& context = driver.contexts.emplace_back(std::make_unique<Context>());
  context->device = device, context->retained = 1;
  return reinterpret_cast<CuContext>(context.get());
}
// What was done so far: launches of kernels, of graphs, copies, graphs made, allocations, launches behind programmatic edges.
extern "C" __attribute__((visibility("default"))) void cuda_model_counts(unsigned long long* counts) {
  Driver& driver = Driver::get();
  const std::lock_guard lock(driver.mutex);
  const Counts& c = driver.counts;
  const unsigned long long all[] = {c.launches, c.graph_launches, c.copies, c.graphs, c.allocations, c.early_launches};
  std::copy(std::begin(all), std::end(all), counts);
}
