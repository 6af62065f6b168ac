#include "load_grpc.h"

#include "base/libraries/library_beside.h"

namespace sparkle::cli {

Result<const serve::GrpcDoor*> load_grpc() {
  if (const std::string why = SPARKLE_NO_GRPC; !why.empty())
    return Error{Reason::bad_usage, "This build does not answer over gRPC: " + why + "; build it where that is otherwise."};
  // Beside the command, or where an installed one has its libraries.
  const auto door =
      entry_of_library("libsparkle_grpc.so." SPARKLE_SOVERSION, {"", SPARKLE_LIBRARY_FROM_COMMAND}, "sparkle_grpc_door");
  if (!door.ok())
    return Error{door.error().reason, "gRPC is not answered: " + door.error().message +
                                          "; install it beside the command, with libgrpc++1.51 (Debian 12)."};
  return reinterpret_cast<const serve::GrpcDoor* (*)()>(*door)();
}

}  // namespace sparkle::cli
