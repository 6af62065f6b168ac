#include "run/opening/open_host.h"

#include "run/opening/open_backend.h"

namespace sparkle {

Result<std::shared_ptr<Backend>> open_host(const std::shared_ptr<Backend>& device) {
  BackendOptions options;
  options.name = "cpu";
  options.executor = std::shared_ptr<Executor>(device, &device->executor());
  SPARKLE_TRY(opened, open_backend(options));
  return std::move(opened.backend);
}

}  // namespace sparkle
