// Devices of sparkle.h: options, pools and allocators of the caller's, logging, waiting.
#include "api/handles.h"
#include "base/system/denormals.h"
#include "base/log.h"
#include "device/device_json.h"
#include "run/opening/open_backend.h"

namespace sparkle::api {
namespace {

class CallersPool final : public Executor {
 public:
  explicit CallersPool(const sparkle_thread_pool& pool) : pool_(pool) {}
  int width() const override { return pool_.width; }
  // The pool's threads take denormals for zero while they work for us, like our own.
  void run(int tasks, Work work, void* context) override {
    struct Call {
      Work work;
      void* context;
    } call{work, context};
    const auto task = [](void* c, int32_t index, int32_t worker) {
      const ScopedFlushDenormals flush;
      const auto* given = static_cast<Call*>(c);
      given->work(given->context, index, worker);
    };
    pool_.run(pool_.user, tasks, task, &call);
  }

 private:
  sparkle_thread_pool pool_;
};

}  // namespace

Status check_size(const char* structure, size_t given, size_t wanted) {
  if (given == wanted) return ok();
  return Error{Reason::bad_usage, std::string(structure) + ".size is " + std::to_string(given) + ", not " +
                                      std::to_string(wanted) + "; set it to sizeof the structure."};
}

Result<Fallback> fallback_of(const char* text) {
  Fallback fallback = Fallback::warn;
  if (!text || parse_name(text, fallback)) return fallback;
  return Error{Reason::bad_usage, "fallback is 'forbid', 'warn' or 'allow', not '" + std::string(text) + "'."};
}

Result<BackendOptions> backend_options(const sparkle_device_options* given) {
  BackendOptions options;
  if (!given) return options;
  if (given->size != offsetof(sparkle_device_options, fallback))
    SPARKLE_CHECK(check_size("sparkle_device_options", given->size, sizeof *given));
  if (given->name) options.name = given->name;
  if (given->threads < 0 || given->threads > 1024)
    return Error{Reason::bad_usage,
                 "sparkle_device_options.threads is " + std::to_string(given->threads) + "; 0 to 1024 can be."};
  options.threads = given->threads;
  if (given->calibrate != 0) options.roofs = Roofs::measured;
  if (given->pool.width < 0 || given->pool.width > 1024)
    return Error{Reason::bad_usage, "sparkle_thread_pool.width is " + std::to_string(given->pool.width) +
                                        "; 0 (threads of Sparkle's own) to 1024 can be."};
  if (given->pool.width > 0) {
    if (!given->pool.run) return Error{Reason::bad_usage, "sparkle_thread_pool.run is NULL though its width is not 0."};
    options.executor = std::make_shared<CallersPool>(given->pool);
  }
  if (given->allocator.allocate) {
    if (!given->allocator.release) return Error{Reason::bad_usage, "sparkle_allocator.release is NULL though allocate is not."};
    options.allocator = {given->allocator.user, given->allocator.allocate, given->allocator.release};
  }
  return options;
}

}  // namespace sparkle::api

using sparkle::Error;
using sparkle::Reason;
using sparkle::Status;
using sparkle::api::guarded;

void sparkle_set_log(sparkle_log_function function, void* user) {
  static_assert(SPARKLE_LOG_INFO == static_cast<int>(sparkle::LogLevel::info) &&
                SPARKLE_LOG_WARNING == static_cast<int>(sparkle::LogLevel::warning));
  struct Target {
    sparkle_log_function function;
    void* user;
  };
  static Target target;
  // Off first: nobody reads the target while it changes.
  sparkle::set_log(nullptr, nullptr);
  target = {function, user};
  if (!function) return;
  sparkle::set_log([](void*, sparkle::LogLevel level,
                      const char* message) { target.function(target.user, static_cast<sparkle_log_level>(level), message); },
                   nullptr);
}

sparkle_status sparkle_device_open(const sparkle_device_options* options, sparkle_device** device) {
  return guarded([&]() -> Status {
    if (!device) return Error{Reason::bad_usage, "sparkle_device_open needs a place for the device."};
    SPARKLE_TRY(wanted, sparkle::api::backend_options(options));
    const bool has_fallback = options && options->size == sizeof *options;
    SPARKLE_TRY(fallback, sparkle::api::fallback_of(has_fallback ? options->fallback : nullptr));
    const bool or_cpu = fallback == sparkle::Fallback::allow;
    SPARKLE_TRY(open, or_cpu ? sparkle::open_backend_or_cpu(wanted) : sparkle::open_backend(wanted));
    sparkle::log(sparkle::LogLevel::info, "device " + open.note + ": " + open.backend->device().name);
    *device = new sparkle_device(std::move(open.backend), std::move(wanted), std::move(open.events));
    return sparkle::ok();
  });
}

sparkle_status sparkle_device_describe(const sparkle_device* device, char** json) {
  return guarded([&]() -> Status {
    if (!device || !json) return Error{Reason::bad_usage, "sparkle_device_describe needs a device and a place for the text."};
    *json = sparkle::api::new_text(sparkle::device_to_json(device->backend->device()));
    return sparkle::ok();
  });
}

sparkle_status sparkle_device_traffic(const sparkle_device* device, sparkle_traffic* traffic) {
  return guarded([&]() -> Status {
    if (!device || !traffic) return Error{Reason::bad_usage, "sparkle_device_traffic needs a device and a place."};
    SPARKLE_CHECK(sparkle::api::check_size("sparkle_traffic", traffic->size, sizeof *traffic));
    const sparkle::Traffic moved = device->backend->traffic();
    traffic->copies = moved.copies;
    traffic->host_transfers = moved.host_transfers;
    return sparkle::ok();
  });
}

void sparkle_device_release(sparkle_device* device) { delete device; }

int32_t sparkle_device_done(sparkle_device* device, uint64_t token) {
  return device && device->backend->done(sparkle::Token{token});
}

sparkle_status sparkle_device_wait(sparkle_device* device, uint64_t token, int64_t nanoseconds) {
  bool late = false;
  const sparkle_status status = guarded([&]() -> Status {
    if (!device || nanoseconds < 0)
      return Error{Reason::bad_usage, "sparkle_device_wait needs a device and a time of 0 or more."};
    Status done = device->backend->wait(sparkle::Token{token}, std::chrono::nanoseconds(nanoseconds));
    late = !done.ok() && nanoseconds > 0 && !device->backend->done(sparkle::Token{token});
    return done;
  });
  return late ? SPARKLE_TIMEOUT : status;
}
