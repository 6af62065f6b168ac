#include "backends/cuda/driver/context.h"

#include <cstdlib>

namespace sparkle::cuda {
namespace {

constexpr int kLeastForEarly = 90, kDriverForEarly = 12030;

Result<std::string> why_full_edges(const Driver& driver, const DeviceInfo& device) {
  const char* asked = std::getenv("SPARKLE_CUDA_EDGES");
  const std::string edges = asked && *asked ? asked : "programmatic";
  if (edges == "full") return std::string("SPARKLE_CUDA_EDGES asks for it");
  if (edges != "programmatic")
    return Error{Reason::bad_usage,
                 "The environment's SPARKLE_CUDA_EDGES is '" + edges + "'; it may be 'full' or 'programmatic'."};
  if (device.capability < kLeastForEarly)
    return "compute capability " + std::to_string(device.capability / 10) + "." + std::to_string(device.capability % 10) +
           " has no others";
  if (driver.version() < kDriverForEarly || !driver.graph_dependencies)
    return std::string("the driver is older than CUDA 12.3");
  return std::string();
}

}  // namespace

Result<std::shared_ptr<Context>> Context::open(std::shared_ptr<Driver> driver, size_t index) {
  const DeviceInfo& device = driver->devices()[index];
  if (!device.unusable.empty())
    return Error{Reason::device_unusable,
                 "The CUDA device '" + device.name + "' cannot be used: " + device.unusable + "; use --device cpu."};
  std::shared_ptr<Context> context(new Context);
  context->driver_ = std::move(driver);
  context->index_ = index;
  const Driver& d = *context->driver_;
  SPARKLE_TRY(full_edges, why_full_edges(d, device));
  context->full_edges_ = std::move(full_edges);
  SPARKLE_CU(d, d.primary_retain(&context->context_, device.handle), "cuDevicePrimaryCtxRetain");
  const Current current(*context);
  for (CuStream& stream : context->streams_) SPARKLE_CU(d, d.stream_create(&stream, kStreamNonBlocking), "cuStreamCreate");
  return context;
}

std::shared_ptr<Context> Context::described(Device description) {
  std::shared_ptr<Context> context(new Context);
  context->described_ = DeviceInfo{};
  context->described_->name = description.name;
  context->described_->description = std::move(description);
  return context;
}

std::string Context::full_edges() const {
  const std::lock_guard lock(mutex_);
  return full_edges_;
}
bool Context::use_full_edges(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (!full_edges_.empty()) return false;
  full_edges_ = why;
  return true;
}

Context::~Context() {
  if (!context_) return;
  {
    const Current current(*this);
    for (const CuStream stream : streams_)
      if (stream) driver_->stream_destroy(stream);
  }
  driver_->primary_release(device().handle);
}

Result<std::shared_ptr<Event>> Event::make(std::shared_ptr<Context> context, bool timed) {
  const Driver& d = context->driver();
  const Current current(*context);
  CuEvent handle = nullptr;
  SPARKLE_CU(d, d.event_create(&handle, timed ? 0 : kEventNoTiming), "cuEventCreate");
  return std::shared_ptr<Event>(new Event(std::move(context), handle));
}

Status Event::put(CuStream stream) const {
  const Driver& d = context_->driver();
  const Current current(*context_);
  SPARKLE_CU(d, d.event_record(event_, stream), "cuEventRecord");
  return ok();
}

Result<std::shared_ptr<Event>> Event::record(std::shared_ptr<Context> context, CuStream stream, bool timed) {
  SPARKLE_TRY(event, make(std::move(context), timed));
  SPARKLE_CHECK(event->put(stream));
  return event;
}

Event::~Event() {
  const Current current(*context_);
  context_->driver().event_destroy(event_);
}

}  // namespace sparkle::cuda
