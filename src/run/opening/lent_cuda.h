// Memory and streams of the caller's on a CUDA device, by numbers without CUDA's types.
#pragma once

#include "run/opening/open_backend.h"

namespace sparkle {

// The caller's memory as a buffer. Errors: bad_usage, device_unusable for a backend that is not CUDA's.
Result<std::shared_ptr<Buffer>> wrap_cuda_memory(Backend& backend, uint64_t address, int64_t bytes);
// The device's number as CUDA counts them.
Result<int> cuda_ordinal(Backend& backend);
// Work that is submitted from now on begins when what the stream holds now is done.
Status follow_cuda_stream(Backend& backend, uint64_t stream);
// What the caller puts into the stream from now on begins when the work is complete.
Status lead_cuda_stream(Backend& backend, uint64_t stream, Token token);

}  // namespace sparkle
