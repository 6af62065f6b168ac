#include "serve/http/connection.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sparkle::serve {
namespace {

constexpr auto kGentleEnd = std::chrono::seconds(2);
constexpr uint64_t kMostUnread = 64 << 20;  // of a body that was refused
constexpr size_t kBodyStep = 1 << 20;       // memory is taken as bytes come

void name_and_port(int socket, decltype(::getpeername)* of, std::string& ip, int& port) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  char host[NI_MAXHOST], service[NI_MAXSERV];
  ip.clear(), port = 0;
  if (of(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return;
  if (::getnameinfo(reinterpret_cast<sockaddr*>(&address), length, host, sizeof host, service, sizeof service,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return;
  ip = host, port = std::atoi(service);
}

}  // namespace

Connection::Connection(int socket, const ConnectionLimits& limits, std::unique_ptr<TlsChannel> tls)
    : socket_(socket), limits_(limits), tls_(std::move(tls)) {}

std::chrono::milliseconds Connection::time_for(uint64_t bytes) const {
  return limits_.transfer + std::chrono::milliseconds(bytes * 1000 / limits_.bytes_a_second);
}

bool Connection::wait(short events, Time::time_point until) const {
  for (;;) {
    pollfd one{socket_, events, 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Time::now()).count();
    const int ready = ::poll(&one, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

size_t Connection::receive(char* to, size_t size) {
  if (tls_) {
    for (short wants = 0;;) {
      if (const size_t got = tls_->read(to, size, wants); got > 0 || wants == 0) return got;
      if (!wait(wants, read_until_)) return 0;
    }
  }
  if (!wait(POLLIN, read_until_)) return 0;
  ssize_t got = 0;
  do got = ::recv(socket_, to, size, 0);
  while (got < 0 && errno == EINTR);
  return got > 0 ? static_cast<size_t>(got) : 0;
}

bool Connection::fill() {
  begin_ = 0, end_ = receive(buffer_.data(), buffer_.size());
  return end_ > 0;
}

bool Connection::wait_for_request(int stop) {
  const auto until = Time::now() + limits_.idle;
  const bool has_more = begin_ < end_ || (tls_ && tls_->has_more());
  for (;;) {
    pollfd both[] = {{stop, POLLIN, 0}, {socket_, POLLIN, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Time::now()).count();
    const int ready = ::poll(both, 2, has_more ? 0 : static_cast<int>(std::max<int64_t>(left, 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0 || both[0].revents != 0) return false;
    if (ready == 0 && !has_more) return false;
    break;
  }
  head_left_ = limits_.head_bytes, close_after = false;
  read_until_ = Time::now() + limits_.head;
  return true;
}

ssize_t Connection::read(char* to, size_t size) {
  if (head_left_ == 0 || (begin_ == end_ && !fill())) return -1;
  const size_t count = std::min({size, end_ - begin_, head_left_});
  std::memcpy(to, buffer_.data() + begin_, count);
  begin_ += count, head_left_ -= count;
  return static_cast<ssize_t>(count);
}

bool Connection::read_body(std::string& to, uint64_t bytes) {
  read_until_ = Time::now() + time_for(bytes);
  to.clear();
  // A client that holds the body back until the head is acknowledged would wait 40 ms for that.
  const int yes = 1;
  if (begin_ == end_ && bytes > 0) ::setsockopt(socket_, IPPROTO_TCP, TCP_QUICKACK, &yes, sizeof yes);
  while (to.size() < bytes) {
    if (begin_ == end_ && bytes - to.size() < buffer_.size()) {
      if (!fill()) return false;
    }
    if (begin_ < end_) {
      const auto count = static_cast<size_t>(std::min<uint64_t>(end_ - begin_, bytes - to.size()));
      to.append(buffer_.data() + begin_, count);
      begin_ += count;
      continue;
    }
    // Large bodies go straight where they belong.
    const size_t had = to.size();
    to.resize(had + static_cast<size_t>(std::min<uint64_t>(bytes - had, kBodyStep)));
    const size_t got = receive(to.data() + had, to.size() - had);
    to.resize(had + got);
    if (got == 0) return false;
  }
  return true;
}

ssize_t Connection::write(const char* from, size_t size) {
  const auto until = Time::now() + time_for(size);
  size_t sent = 0;
  while (sent < size) {
    if (tls_) {
      short wants = 0;
      const size_t some = tls_->write(from + sent, size - sent, wants);
      sent += some;
      if (some == 0 && (wants == 0 || !wait(wants, until))) return -1;
      continue;
    }
    if (!wait(POLLOUT, until)) return -1;
    const ssize_t some = ::send(socket_, from + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (some >= 0) sent += static_cast<size_t>(some);
    else if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK) return -1;
  }
  return static_cast<ssize_t>(sent);
}

void Connection::close_gently() {
  if (tls_) tls_->end();
  ::shutdown(socket_, SHUT_WR);
  if (!close_after) return;
  read_until_ = Time::now() + kGentleEnd;
  for (uint64_t taken = 0; taken < kMostUnread && fill();) taken += end_;
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const { name_and_port(socket_, ::getpeername, ip, port); }
void Connection::get_local_ip_and_port(std::string& ip, int& port) const { name_and_port(socket_, ::getsockname, ip, port); }

}  // namespace sparkle::serve
