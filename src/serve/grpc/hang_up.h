// The end of connections of a port, below gRPC: what was written reaches its client, then the client sees them closed.
#pragma once

#include <chrono>

namespace sparkle::serve {

// Closes this process's listening sockets of the port, then the writing side of each connection of it whose peer has all that
// was written. Returns when that is done for all, or after `most`; does nothing where the system does not list a process's
// files. gRPC's own shutdown answers what comes between it and the moment when the client has heard of it by CANCELLED, as if
// the client had given up; a connection that is closed is UNAVAILABLE, which clients try again elsewhere.
void hang_up(int port, std::chrono::milliseconds most);

}  // namespace sparkle::serve
