// TLS over a connection's socket, by OpenSSL, where the build has it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/result.h"

namespace sparkle::serve {

// A certificate and its key, for all connections of a server.
class TlsIdentity {
 public:
  // Both as text of PEM; certificates of those who signed the first may follow it. Errors: bad_usage.
  static Result<std::shared_ptr<TlsIdentity>> open(const std::string& certificate, const std::string& key);
  virtual ~TlsIdentity() = default;
};

// One connection; the socket is read and written without waiting. The handshake is part of the first read.
class TlsChannel {
 public:
  static std::unique_ptr<TlsChannel> open(const TlsIdentity& identity, int socket);
  virtual ~TlsChannel() = default;
  // Bytes that were read or written, more than 0; else 0, and what to wait for at the socket (POLLIN, POLLOUT), or nothing
  // where the connection is at its end.
  virtual size_t read(char* to, size_t size, short& wants) = 0;
  virtual size_t write(const char* from, size_t size, short& wants) = 0;
  // Bytes that can be read though the socket has none.
  virtual bool has_more() const = 0;
  // Tells the other end that nothing follows.
  virtual void end() = 0;
};

}  // namespace sparkle::serve
