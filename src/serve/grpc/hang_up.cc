#include "serve/grpc/hang_up.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace sparkle::serve {
namespace {

int local_port(int socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&name), &size) != 0) return -1;
  if (name.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(name).sin_port);
  if (name.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(name).sin6_port);
  return -1;
}

bool listens(int socket) {
  int answer = 0;
  socklen_t size = sizeof answer;
  return ::getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &answer, &size) == 0 && answer != 0;
}

bool can_be_written(int socket) {  // false from shutdown() on, and of a connection that is gone
  return ::send(socket, nullptr, 0, MSG_NOSIGNAL | MSG_DONTWAIT) == 0;
}

std::vector<int> open_files() {
  std::vector<int> found;
  std::error_code none;
  for (std::filesystem::directory_iterator at("/proc/self/fd", none), end; !none && at != end; at.increment(none)) {
    const std::string name = at->path().filename();
    int number = -1;
    if (std::from_chars(name.data(), name.data() + name.size(), number).ec == std::errc()) found.push_back(number);
  }
  return found;
}

bool is_stream(int socket) {
  int type = 0;
  socklen_t size = sizeof type;
  return ::getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

// Whether nothing listens on the port and all its connections are closed for writing by now.
bool hung_up(int port) {
  bool all = true;
  for (const int file : open_files()) {
    const int own = ::fcntl(file, F_DUPFD_CLOEXEC, 0);  // whoever has the file may close it, and its number be another's
    if (own < 0) continue;
    int unread = 0;  // by the peer's system
    if (local_port(own) == port && is_stream(own)) {
      // What was accepted meanwhile is found by the next look.
      if (listens(own)) all = ::shutdown(own, SHUT_RDWR) != 0 && all;
      else if (can_be_written(own)) {
        if (::ioctl(own, SIOCOUTQ, &unread) == 0 && unread == 0) ::shutdown(own, SHUT_WR);
        else all = false;
      }
    }
    ::close(own);
  }
  return all;
}

}  // namespace

void hang_up(int port, std::chrono::milliseconds most) {
  const auto until = std::chrono::steady_clock::now() + most;
  while (!hung_up(port) && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

}  // namespace sparkle::serve
