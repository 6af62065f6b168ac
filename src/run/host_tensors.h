// Tensors of the host on their way into a run and out of it.
#pragma once

#include "backends/backend.h"

namespace sparkle {

// A host tensor as a buffer of the backend: its own memory where the device can see it, else an upload.
Result<std::shared_ptr<Buffer>> input_buffer(Backend& backend, const HostTensor& tensor);

// Whether two lists of tensors have the same shapes and bytes.
bool same_bytes(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b);

// Rows of an open output: those before the first that begins with -1.
void end_after_found_rows(HostTensor& tensor);

}  // namespace sparkle
