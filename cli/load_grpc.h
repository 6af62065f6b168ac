// gRPC for `serve`, from the library beside the command.
#pragma once

#include "serve/grpc/grpc_server.h"

namespace sparkle::cli {

// Errors: file_unreadable where the library is not installed, or this build has none.
Result<const serve::GrpcDoor*> load_grpc();

}  // namespace sparkle::cli
