// The backend "cuda" beside its opener: the devices that there are, and kernels tried in a process of their own.
#pragma once

#include "run/opening/open_backend.h"

namespace sparkle {

Result<OpenBackend> open_cuda(const BackendOptions& options);

// The CUDA devices here, a line each: "cuda:0  NAME, DRIVER", with the reason where one cannot be used; one line that says why
// where there are none.
std::vector<std::string> cuda_devices();

// As try_listed_kernels.
Status try_cuda_kernels(const BackendOptions& options, const std::string& lines);

}  // namespace sparkle
