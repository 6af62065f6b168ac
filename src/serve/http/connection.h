// A client's connection with bounds on time and on the bytes of a request's head, as the stream that the HTTP library reads.
#pragma once

#include <httplib.h>
#include <poll.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>

#include "serve/http/tls.h"

namespace sparkle::serve {

struct ConnectionLimits {
  std::chrono::seconds idle{60};      // between two requests
  std::chrono::seconds head{10};      // from a request's first byte to the end of its head
  std::chrono::seconds transfer{30};  // for a body or an answer, and a second more for each of:
  uint64_t bytes_a_second = 64 << 10;
  size_t head_bytes = 32 << 10;
};

class Connection final : public httplib::Stream {
 public:
  Connection(int socket, const ConnectionLimits& limits, std::unique_ptr<TlsChannel> tls = nullptr);

  // Waits for the first byte of a request; false where none comes, or once `stop` can be read.
  bool wait_for_request(int stop);
  // Exactly this many bytes of the request's body. False where they do not come in time.
  bool read_body(std::string& to, uint64_t bytes);
  // Ends what is written, and takes what the client still sends for a moment: it reads the answer first then.
  void close_gently();
  bool close_after = false;  // what comes behind this request is no other one

  bool is_readable() const override { return begin_ < end_ || wait(POLLIN, Time::now()); }
  bool is_writable() const override { return wait(POLLOUT, Time::now() + limits_.transfer); }
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  using Time = std::chrono::steady_clock;
  bool wait(short events, Time::time_point until) const;
  bool fill();
  // Some bytes by read_until_; 0 where none come.
  size_t receive(char* to, size_t size);
  std::chrono::milliseconds time_for(uint64_t bytes) const;

  const int socket_;
  const ConnectionLimits& limits_;
  const std::unique_ptr<TlsChannel> tls_;  // nothing: bytes are sent as they are
  std::array<char, 16384> buffer_;
  size_t begin_ = 0, end_ = 0;  // of what is in the buffer
  size_t head_left_ = 0;        // bytes that the head may still have
  Time::time_point read_until_;
};

}  // namespace sparkle::serve
