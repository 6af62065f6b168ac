#include "serve/http/http_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <list>
#include <mutex>
#include <thread>

#include "base/printable.h"
#include "serve/http/connection.h"

namespace sparkle::serve {
namespace {

// The connection that this thread serves, and whether it is one too many.
thread_local Connection* here = nullptr;
thread_local bool one_too_many = false;

// A thread for each connection, up to a number; those beyond are told so by the thread that accepts.
class ConnectionThreads final : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(int most) : most_(most) {}
  void enqueue(std::function<void()> work) override {
    join_ended();
    if (static_cast<int>(running_.size()) < most_) {
      try {
        running_.emplace_back();
        Running& own = running_.back();
        own.thread = std::thread([work, &own] {
          work();
          own.ended = true;
        });
        return;
      } catch (const std::system_error&) {  // the system has no thread for it
        running_.pop_back();
      }
    }
    one_too_many = true;
    work();
    one_too_many = false;
  }
  void shutdown() override {
    for (Running& own : running_) own.thread.join();
    running_.clear();
  }

 private:
  struct Running {
    std::thread thread;
    std::atomic<bool> ended{false};
  };
  void join_ended() {
    running_.remove_if([](Running& own) {
      if (!own.ended) return false;
      own.thread.join();
      return true;
    });
  }
  const int most_;
  std::list<Running> running_;
};

// The length of the body as the head tells it.
struct BodyLength {
  uint64_t bytes = 0;
  std::optional<Refusal> refused;
};
BodyLength body_length(const httplib::Request& request) {
  if (request.has_header("Transfer-Encoding"))
    return {0, Refusal{Failure::length_missing, "Bodies in chunks are not taken; send Content-Length."}};
  const size_t count = request.get_header_value_count("Content-Length");
  if (count == 0) return {};
  const std::string text = request.get_header_value("Content-Length");
  BodyLength length;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), length.bytes);
  if (count > 1 || read.ec != std::errc() || read.ptr != text.data() + text.size())
    return {0, Refusal{Failure::invalid,
                       "Content-Length is '" + printable(text, 40) + "', no number of bytes, or is there twice."}};
  return length;
}

Call call_of(const httplib::Request& request) {
  Call call;
  call.method = request.method, call.path = request.path;
  call.authorization = request.get_header_value("Authorization");
  call.origin = request.get_header_value("Origin");
  call.host = request.get_header_value("Host");
  call.content_encoding = request.get_header_value("Content-Encoding");
  if (request.has_header("Inference-Header-Content-Length"))
    call.json_bytes = request.get_header_value("Inference-Header-Content-Length");
  return call;
}

const char* sentence_of_status(int status) {
  if (status == 414) return "The path is too long.";
  if (status == 416) return "Ranges of answers are not given; leave out the header Range.";
  return status < 500 ? "The request's head is no HTTP of version 1.1, is too long, or came too slowly."
                      : "Something inside the server did not hold; please report it.";
}

}  // namespace

class HttpServer::Listener final : public httplib::Server {
 public:
  explicit Listener(HttpOptions options) : options_(std::move(options)) {
    if (::pipe(stop_pipe_) != 0) stop_pipe_[0] = stop_pipe_[1] = -1;
    new_task_queue = [this] { return new ConnectionThreads(options_.most_connections); };
    // The library's own would let a second server take the port too.
    set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    set_tcp_nodelay(true);
    set_keep_alive_timeout(static_cast<time_t>(limits_.idle.count()));
    set_keep_alive_max_count(1000000);
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      handle(request, response);
      return HandlerResponse::Handled;
    });
    set_error_handler([](const httplib::Request&, httplib::Response& response) {
      if (response.body.empty() && response.status != 304) {
        response.body = print_error(sentence_of_status(response.status));
        response.set_header("Content-Type", "application/json");
        response.set_header("Connection", "close");
        if (here) here->close_after = true;
      }
    });
  }
  ~Listener() override {
    for (const int end : stop_pipe_)
      if (end >= 0) ::close(end);
  }

  Result<int> bind(const std::string& host, int port) {
    if (!options_.certificate.empty()) {
      SPARKLE_TRY(identity, TlsIdentity::open(options_.certificate, options_.key));
      identity_ = std::move(identity);
    }
    const int bound = port == 0 ? bind_to_any_port(host) : bind_to_port(host, port) ? port : -1;
    if (bound <= 0)
      return Error{Reason::bad_usage,
                   "Port " + std::to_string(port) + " of '" + printable(host) +
                       "' cannot be listened on: it is taken, or not this machine's; give another, or 0 for any."};
    ::listen(svr_sock_, SOMAXCONN);  // the library's own queue is of five
    return bound;
  }
  void run_all() {
    begun_ = true;
    if (!stopping_) listen_after_bind();
    ended_ = true;
  }
  void stop_all() {
    stopping_ = true;
    // The library forgets a stop() that comes before it listens.
    while (begun_ && !is_running() && !ended_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (const char end = 0; stop_pipe_[1] >= 0) (void)!::write(stop_pipe_[1], &end, 1);  // wakes all that are idle
    stop();
  }

 private:
  bool process_and_close_socket(socket_t socket) override {
    if (one_too_many && identity_) {  // it would wait for a handshake to say so
      ::close(static_cast<int>(socket));
      return false;
    }
    if (one_too_many) {
      const std::string body = print_error("The server has as many connections as it takes; come again later.");
      const std::string text =
          "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " +
          std::to_string(body.size()) + "\r\n\r\n" + body;
      (void)!::send(static_cast<int>(socket), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      ::close(static_cast<int>(socket));
      return false;
    }
    Connection connection(static_cast<int>(socket), limits_,
                          identity_ ? TlsChannel::open(*identity_, static_cast<int>(socket)) : nullptr);
    here = &connection;
    while (connection.wait_for_request(stop_pipe_[0])) {
      bool closed = false;
      // Answers are not compressed and not cut: binary tensors gain nothing by the one, and nothing needs the other.
      const auto prepare = [](httplib::Request& request) {
        request.ranges.clear();
        request.headers.erase("Range");
        request.headers.erase("Accept-Encoding");
      };
      if (!process_request(connection, stopping_, closed, prepare) || closed || connection.close_after || stopping_) break;
    }
    here = nullptr;
    connection.close_gently();
    ::close(static_cast<int>(socket));
    return true;
  }

  void handle(const httplib::Request& request, httplib::Response& response) {
    const auto begin = std::chrono::steady_clock::now();
    const Call call = call_of(request);
    uint64_t body_bytes = 0;
    Reply reply = reply_to(request, call, body_bytes);
    response.status = reply.status;
    if (!reply.type.empty()) response.set_header("Content-Type", reply.type);
    if (reply.json_bytes) response.set_header("Inference-Header-Content-Length", std::to_string(*reply.json_bytes));
    if (!reply.allow.empty()) response.set_header("Allow", reply.allow);
    if (reply.failure == Failure::unauthorised) response.set_header("WWW-Authenticate", "Bearer");
    response.set_header("X-Content-Type-Options", "nosniff");
    if (here->close_after && !stopping_) response.set_header("Connection", "close");
    const uint64_t bytes_out = reply.body.size();
    response.body = std::move(reply.body);
    if (!options_.log) return;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    options_.log({request.remote_addr, call.method, call.path, reply.status, body_bytes, bytes_out, seconds, reply.model,
                  reply.version, reply.failure});
  }

  Reply reply_to(const httplib::Request& request, const Call& call, uint64_t& body_bytes) {
    const BodyLength length = body_length(request);
    here->close_after = length.refused || length.bytes > 0;  // until the body is read
    if (length.refused) return refusal_reply(*length.refused);
    try {
      if (auto refused = options_.refuse_early(call, length.bytes)) return std::move(*refused);
      const Held held(held_, length.bytes);
      if (held.all > options_.most_bytes_at_once)
        return refusal_reply({Failure::unavailable, "Requests of too many bytes are under way; come again later."});
      std::string body;
      if (!here->read_body(body, length.bytes))
        return refusal_reply({Failure::invalid, "The body ended after " + std::to_string(body.size()) + " of its " +
                                                    std::to_string(length.bytes) + " bytes, or came too slowly."});
      here->close_after = false;
      body_bytes = body.size();
      return options_.answer(call, std::move(body));
    } catch (const std::bad_alloc&) {
      return refusal_reply({Failure::unavailable, "There is no memory left for the request."});
    } catch (const std::exception&) {
      return refusal_reply({Failure::internal, "Something inside the server did not hold; please report it."});
    }
  }

  struct Held {
    Held(std::atomic<uint64_t>& sum, uint64_t own) : of(sum), bytes(own), all(sum += own) {}
    ~Held() { of -= bytes; }
    std::atomic<uint64_t>& of;
    const uint64_t bytes, all;
  };

  const HttpOptions options_;
  const ConnectionLimits limits_;
  std::shared_ptr<TlsIdentity> identity_;
  std::atomic<bool> stopping_{false}, begun_{false}, ended_{false};
  std::atomic<uint64_t> held_{0};  // bytes of bodies
  int stop_pipe_[2] = {-1, -1};
};

HttpServer::HttpServer(HttpOptions options) : listener_(std::make_unique<Listener>(std::move(options))) {}
HttpServer::~HttpServer() = default;
Result<int> HttpServer::bind(const std::string& host, int port) { return listener_->bind(host, port); }
void HttpServer::run() { listener_->run_all(); }
void HttpServer::stop() { listener_->stop_all(); }

}  // namespace sparkle::serve
