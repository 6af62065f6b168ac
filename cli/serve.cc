// `sparkle serve`: models over HTTP and gRPC until a signal ends it, answering what was accepted.
#include "command.h"

#ifdef SPARKLE_WITH_SERVE

#include <malloc.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files/read_file.h"
#include "base/printable.h"
#include "choose_device.h"
#include "load_grpc.h"
#include "run/opening/open_model.h"
#include "serve/http/http_server.h"

namespace sparkle::cli {
namespace {

struct ServeArguments {
  CommonOptions common;
  std::vector<std::string> models;
  std::string host = "127.0.0.1", token, most_request_bytes = "64M", certificate, key;  // the last two: files
  int http_port = 8000, grpc_port = 8001, metrics_port = 8002;
  bool asks_grpc = false;  // the option was given
  int64_t max_batch = 1, delay_us = 0, timeout_ms = 30000;
  int queue = 64;
  bool log = false;
};

// Where it listens; of gRPC, why it does not.
struct Listening {
  int http = 0, grpc = 0, metrics = 0;
  std::string no_grpc;
};

// The end that a signal writes to.
int signal_pipe[2] = {-1, -1};

void on_signal(int number) {
  const int before = errno;
  const char end = 0;
  (void)!::write(signal_pipe[1], &end, 1);
  std::signal(number, SIG_DFL);  // who asks twice does not want to wait
  errno = before;
}

void wait_for_signal() {
  pollfd end{signal_pipe[0], POLLIN, 0};
  while (::poll(&end, 1, -1) < 0 && errno == EINTR) {
  }
}

std::string address(const std::string& host, int port) {
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + std::to_string(port);
}
std::string url(const ServeArguments& a, int port) {
  return (a.certificate.empty() ? "http://" : "https://") + address(a.host, port);
}

std::string time_now() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[40], whole[64];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(whole, sizeof whole, "%s.%03dZ", text, static_cast<int>(rest));
  return whole;
}

// One line of JSON on stderr.
void print_record(const serve::RequestRecord& r) {
  nlohmann::json json{
      {"time", time_now()}, {"client", r.client},     {"method", r.method},       {"path", r.path},
      {"status", r.status}, {"bytes_in", r.bytes_in}, {"bytes_out", r.bytes_out}, {"milliseconds", r.seconds * 1e3}};
  if (!r.model.empty()) json["model"] = r.model, json["version"] = r.version;
  if (r.failure) json["failure"] = serve::name_of(*r.failure);
  const std::string line = json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

// The devices that models run on, each opened once, by the first that needs it.
class ServingDevices {
 public:
  struct Opened {
    CommonOptions common;  // with its name
    OpenDevice device;
    SessionOptions options;
  };
  explicit ServingDevices(const ServeArguments& arguments) : common_(arguments.common), rows_(arguments.max_batch) {}

  // Errors: those of opening, of choosing and of the options. What it gives lives as long as this.
  Result<const Opened*> of(const std::string& model) {
    SPARKLE_TRY(common, with_device(common_, model, rows_));
    const std::lock_guard lock(mutex_);
    if (const auto at = by_name_.find(common.device); at != by_name_.end()) return &at->second;
    SPARKLE_TRY(device, open_device(common));
    SPARKLE_TRY(options, session_options(common, device));
    const std::string name = common.device;
    return &by_name_.emplace(name, Opened{std::move(common), std::move(device), std::move(options)}).first->second;
  }
  std::string notes() const {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const auto& [name, opened] : by_name_) text += (text.empty() ? "" : "; ") + opened.device.note;
    return text;
  }

 private:
  const CommonOptions common_;
  const int64_t rows_;  // that a run may have
  mutable std::mutex mutex_;
  std::map<std::string, Opened> by_name_;
};

// A model that is ready for its first request: planned, where its shapes are all fixed.
Result<std::shared_ptr<Session>> open_to_serve(const std::string& path, ServingDevices& devices) {
  SPARKLE_TRY(on, devices.of(path));
  SPARKLE_TRY(model, read_model(path));
  SPARKLE_TRY(opened, open_session(std::move(model), on->device.backend, on->options));
  std::shared_ptr<Session> session(std::move(opened));
  SPARKLE_CHECK(session->has_single_plan());
  if (!all_fixed(session->inputs())) return session;
  std::vector<HostTensor> shapes;
  for (const SessionInput& in : session->inputs()) shapes.push_back({in.dtype, in.shape, nullptr});
  SPARKLE_TRY(plan, session->prepare(shapes));
  SPARKLE_CHECK(check_fallback(*plan, on->common));
  return session;
}

void print_ready(const ServeArguments& a, const std::string& devices, const serve::Repository& models, const Listening& on) {
  if (a.common.json) {
    nlohmann::json json{{"device", devices}, {"http", url(a, on.http)}, {"models", nlohmann::json::array()}};
    if (on.grpc > 0) json["grpc"] = address(a.host, on.grpc);
    if (on.metrics > 0) json["metrics"] = url(a, on.metrics) + "/metrics";
    for (const auto& model : models.loaded())
      json["models"].push_back({{"name", model->description.name}, {"version", model->description.version}});
    std::printf("%s\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    std::printf("device   %s\n", devices.c_str());
    for (const auto& model : models.loaded())
      std::printf("model    %s, version %s\n", printable(model->description.name).c_str(), model->description.version.c_str());
    std::printf("http     %s\n", url(a, on.http).c_str());
    if (on.grpc > 0) std::printf("grpc     %s\n", address(a.host, on.grpc).c_str());
    else if (!on.no_grpc.empty()) std::printf("grpc     none: %s\n", printable_sentence(on.no_grpc).c_str());
    if (on.metrics > 0) std::printf("metrics  %s/metrics\n", url(a, on.metrics).c_str());
  }
  std::fflush(stdout);
}

// Nothing, and why in `no_grpc`, where the part is not installed and nobody asked for it. Errors: those of loading and
// starting.
Result<std::unique_ptr<serve::GrpcServer>> start_grpc(const ServeArguments& a, const serve::HttpOptions& http,
                                                      const serve::RouterOptions& routing, serve::Service& service,
                                                      std::string& no_grpc) {
  auto door = load_grpc();
  if (!door.ok() && a.asks_grpc) return door.error();
  if (!door.ok()) {
    no_grpc = door.error().message;
    return std::unique_ptr<serve::GrpcServer>();
  }
  serve::GrpcOptions options;
  options.host = a.host, options.port = a.grpc_port;
  options.certificate = http.certificate, options.key = http.key;
  options.most_calls = http.most_connections, options.most_bytes = routing.most_bytes;
  options.most_bytes_at_once = http.most_bytes_at_once, options.log = http.log;
  return (*door)->start(std::move(options), service);
}

// glibc gives threads memory of their own, up to eight sets for each core, and a set keeps what its largest requests took. A
// server has a thread for each connection, so all sets would come to hold what one needs; none of its threads asks often enough
// to wait for another. Tensors and bodies are the system's own pages, given back at once: between others of slightly other
// sizes they would leave gaps.
void keep_no_memory_of_requests() {
#ifdef __GLIBC__
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_MMAP_THRESHOLD, 256 << 10);
#endif
}

int serve_command(const ServeArguments& a) {
  keep_no_memory_of_requests();
  auto most_bytes = parse_bytes(a.most_request_bytes);
  if (!most_bytes.ok()) return fail(most_bytes.error());
  ServingDevices devices(a);
  serve::BatcherOptions batching;
  batching.max_batch = a.max_batch, batching.delay = std::chrono::microseconds(a.delay_us), batching.queue = a.queue;
  serve::Repository models(a.models, [&](const std::string& path) { return open_to_serve(path, devices); }, batching);
  if (const Status loaded = models.load_all(); !loaded.ok()) return fail(loaded.error(), a.common);
  serve::ModelService service(models, {SPARKLE_VERSION, a.token, std::chrono::milliseconds(a.timeout_ms)});
  serve::RouterOptions routing;
  routing.most_bytes = static_cast<uint64_t>(*most_bytes);
  const bool here_alone = a.host == "127.0.0.1" || a.host == "::1" || a.host == "localhost";
  routing.local_names = here_alone && a.token.empty();
  serve::Router router(service, routing);

  serve::HttpOptions http_options;
  http_options.most_bytes_at_once = std::max(uint64_t{1} << 30, 4 * routing.most_bytes);
  http_options.refuse_early = [&](const serve::Call& call, uint64_t bytes) { return router.refuse_early(call, bytes); };
  http_options.answer = [&](const serve::Call& call, std::string body) { return router.answer(call, std::move(body)); };
  if (a.log) http_options.log = print_record;
  if (a.certificate.empty() != a.key.empty())
    return fail({Reason::bad_usage, "TLS needs both a certificate (--tls-cert) and its key (--tls-key)."});
  if (!a.certificate.empty()) {
    auto certificate = read_file(a.certificate, {"certificate", 1 << 20, true}), key = read_file(a.key, {"key", 1 << 20, true});
    if (!certificate.ok() || !key.ok()) return fail(certificate.ok() ? key.error() : certificate.error());
    http_options.certificate = std::move(*certificate), http_options.key = std::move(*key);
  }
  serve::HttpServer http(http_options);
  auto http_port = http.bind(a.host, a.http_port);
  if (!http_port.ok()) return fail(http_port.error());
  serve::HttpOptions metrics_options = http_options;
  metrics_options.most_connections = 16;
  metrics_options.log = {};
  metrics_options.answer = [&](const serve::Call& call, std::string) { return router.answer_metrics(call); };
  serve::HttpServer metrics(metrics_options);
  Listening on;
  on.http = *http_port;
  if (a.metrics_port > 0) {
    auto bound = metrics.bind(a.host, a.metrics_port);
    if (!bound.ok()) return fail(bound.error());
    on.metrics = *bound;
  }
  std::unique_ptr<serve::GrpcServer> grpc;
  if (a.grpc_port >= 0) {
    auto started = start_grpc(a, http_options, routing, service, on.no_grpc);
    if (!started.ok()) return fail(started.error());
    grpc = std::move(*started);
    if (grpc) on.grpc = grpc->port();
  }
  if (a.token.empty() && !here_alone)
    print_note("Whoever reaches '" + a.host + "' may use and unload the models; --token asks for a word of who does.");

  if (::pipe(signal_pipe) != 0) return fail({Reason::internal, "The system gives no pipe."});
  std::signal(SIGTERM, on_signal);
  std::signal(SIGINT, on_signal);
  std::thread answering([&] { http.run(); });
  std::thread counting([&] {
    if (on.metrics > 0) metrics.run();
  });
  print_ready(a, devices.notes(), models, on);
  wait_for_signal();
  service.stop();
  http.stop();
  if (grpc) grpc->stop();
  answering.join();
  if (on.metrics > 0) metrics.stop();
  counting.join();
  return kDone;
}

}  // namespace

void add_serve(CLI::App& app, Chosen& chosen) {
  auto* command = app.add_subcommand("serve", "Answer requests over HTTP and gRPC by the Open Inference Protocol");
  auto a = std::make_shared<ServeArguments>();
  command
      ->add_option("models", a->models,
                   "ONNX or compiled files, each called by its name, or folders with NAME/VERSION/model.onnx")
      ->required();
  command->add_option("--http-port", a->http_port, "port for requests; 0: any free one, which is printed")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  auto* grpc = command->add_option("--grpc-port", a->grpc_port, "port for requests by gRPC; 0: any free one, -1: none")
                   ->check(CLI::Range(-1, 65535))
                   ->capture_default_str();
  command
      ->add_option("--metrics-port", a->metrics_port, "port for Prometheus; 0: none of its own, /metrics is on the other too")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command->add_option("--host", a->host, "address to listen on; 0.0.0.0: all of this machine's")->capture_default_str();
  command->add_option("--token", a->token, "a word that each request but health shows: Authorization: Bearer TOKEN");
  command->add_option("--tls-cert", a->certificate, "certificate as PEM, for TLS on all ports; --tls-key is its key");
  command->add_option("--tls-key", a->key, "the certificate's private key as PEM, without a password");
  command->add_option("--max-batch", a->max_batch, "most rows of a run that several requests share; 1: each runs alone")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command
      ->add_option("--batch-delay-us", a->delay_us, "how long the first request of a batch waits for others, in microseconds")
      ->check(CLI::Range(0, 10000000))
      ->capture_default_str();
  command->add_option("--queue", a->queue, "most requests of a model that wait; others are told to come again (429)")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->add_option("--timeout-ms", a->timeout_ms, "most time for a request, in milliseconds; 0: no bound")
      ->check(CLI::Range(0, 86400000))
      ->capture_default_str();
  command->add_option("--max-request-bytes", a->most_request_bytes, "most bytes of a request: 300K, 64M")
      ->capture_default_str();
  command->add_flag("--log", a->log, "a line of JSON on stderr for each request");
  add_common(*command, a->common);
  command->callback([&chosen, a, grpc] {
    a->asks_grpc = grpc->count() > 0;
    chosen = [a] { return serve_command(*a); };
  });
}

}  // namespace sparkle::cli

#else

namespace sparkle::cli {

void add_serve(CLI::App& app, Chosen& chosen) {
  auto* command = app.add_subcommand("serve", "")->group("")->allow_extras();
  command->callback([&chosen] {
    chosen = [] {
      return fail({Reason::bad_usage, "This build has no 'serve': " SPARKLE_NO_SERVE "; build it where that is otherwise."});
    };
  });
}

}  // namespace sparkle::cli

#endif
