// The caller's own CUDA memory and streams in sparkle.h.
#include "api/handles.h"
#include "run/opening/lent_cuda.h"

using sparkle::Error;
using sparkle::Reason;
using sparkle::Status;
using sparkle::api::guarded;

sparkle_status sparkle_buffer_wrap_cuda(sparkle_device* device, uint64_t address, int64_t bytes, sparkle_buffer** buffer) {
  return guarded([&]() -> Status {
    if (!device || !buffer)
      return Error{Reason::bad_usage, "sparkle_buffer_wrap_cuda needs a device and a place for the buffer."};
    SPARKLE_TRY(made, sparkle::wrap_cuda_memory(*device->backend, address, bytes));
    *buffer = new sparkle_buffer{device->backend, std::move(made)};
    return sparkle::ok();
  });
}

sparkle_status sparkle_buffer_cuda(const sparkle_buffer* buffer, uint64_t* address) {
  return guarded([&]() -> Status {
    if (!buffer || !address) return Error{Reason::bad_usage, "sparkle_buffer_cuda needs a buffer and a place."};
    *address = buffer->buffer->address();
    return sparkle::ok();
  });
}

sparkle_status sparkle_device_cuda(sparkle_device* device, int32_t* ordinal) {
  return guarded([&]() -> Status {
    if (!device || !ordinal) return Error{Reason::bad_usage, "sparkle_device_cuda needs a device and a place."};
    SPARKLE_TRY(number, sparkle::cuda_ordinal(*device->backend));
    *ordinal = number;
    return sparkle::ok();
  });
}

sparkle_status sparkle_device_follow_cuda_stream(sparkle_device* device, uint64_t stream) {
  return guarded([&]() -> Status {
    if (!device) return Error{Reason::bad_usage, "sparkle_device_follow_cuda_stream needs a device."};
    return sparkle::follow_cuda_stream(*device->backend, stream);
  });
}

sparkle_status sparkle_device_lead_cuda_stream(sparkle_device* device, uint64_t stream, uint64_t token) {
  return guarded([&]() -> Status {
    if (!device) return Error{Reason::bad_usage, "sparkle_device_lead_cuda_stream needs a device."};
    return sparkle::lead_cuda_stream(*device->backend, stream, sparkle::Token{token});
  });
}
