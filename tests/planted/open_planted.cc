// The command `sparkle` with planted kernels: the linker gives it this open_backend in the place of the library's
// (tests/CMakeLists.txt). SPARKLE_PLANTED names the fault; without it everything is as it is in the command.
#include <cstdlib>

#include "planted_backend.h"
#include "run/opening/open_backend.h"

namespace sparkle {

Result<OpenBackend> own_open_backend(const BackendOptions& options) asm(
    "__real__ZN7sparkle12open_backendERKNS_14BackendOptionsE");
Result<OpenBackend> planted_open_backend(const BackendOptions& options) asm(
    "__wrap__ZN7sparkle12open_backendERKNS_14BackendOptionsE");

Result<OpenBackend> planted_open_backend(const BackendOptions& options) {
  SPARKLE_TRY(open, own_open_backend(options));
  const char* name = std::getenv("SPARKLE_PLANTED");
  const auto fault = name ? testing::fault_named(name) : std::nullopt;
  const bool supported = open.backend->device().kind == DeviceKind::cpu || (fault && !testing::needs_host_memory(*fault));
  if (fault && supported && options.name != "reference") open.backend = testing::plant(std::move(open.backend), *fault);
  return open;
}

}  // namespace sparkle
