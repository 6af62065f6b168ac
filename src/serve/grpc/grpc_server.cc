// The server behind the door, and the door.
#include "serve/grpc/grpc_server.h"

#include <grpc/support/log.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <utility>

#include "serve/grpc/call.h"
#include "serve/grpc/hang_up.h"

namespace sparkle::serve {
namespace {

class Running final : public GrpcServer {
 public:
  Running(GrpcOptions options, Service& service) : options_(std::move(options)), calls_(options_, service) {}
  ~Running() override { stop(); }
  Status start() {
    gpr_set_log_function([](gpr_log_func_args*) {});  // a library prints nothing
    grpc::ServerBuilder builder;
    std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
    if (!options_.certificate.empty()) {
      grpc::SslServerCredentialsOptions tls;
      tls.pem_key_cert_pairs.push_back({options_.key, options_.certificate});
      credentials = grpc::SslServerCredentials(tls);
    }
    const bool is_ipv6 = options_.host.find(':') != std::string::npos;
    builder.AddListeningPort((is_ipv6 ? "[" + options_.host + "]" : options_.host) + ":" + std::to_string(options_.port),
                             credentials, &port_);
    builder.RegisterCallbackGenericService(&calls_);
    builder.SetMaxReceiveMessageSize(static_cast<int>(std::min<uint64_t>(options_.most_bytes, INT32_MAX)));
    builder.SetMaxSendMessageSize(-1);
    // What unpacks to more than it is has no bound there.
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
    builder.SetDefaultCompressionAlgorithm(GRPC_COMPRESS_NONE);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a second server would take the port too
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options_.most_calls);
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 32 << 10);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 60 * 1000);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10 * 1000);
    // A client that is gone without a word is found out.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60 * 1000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20 * 1000);
    builder.SetResourceQuota(grpc::ResourceQuota("sparkle").Resize(options_.most_bytes_at_once + (uint64_t{256} << 20)));
    server_ = builder.BuildAndStart();
    if (server_ && port_ > 0) return ok();
    server_.reset();
    return Error{Reason::bad_usage,
                 "Port " + std::to_string(options_.port) + " of '" + options_.host +
                     "' cannot be listened on for gRPC: it is taken, or not this machine's; give another by " +
                     "--grpc-port, 0 for any, or -1 for none."};
  }
  int port() const override { return port_; }
  // Each wait of a call has its end, so this one has too.
  void stop() override {
    if (!server_ || std::exchange(stopped_, true)) return;
    calls_.refuse_new_and_wait();
    hang_up(port_, std::chrono::milliseconds(2000));
    server_->Shutdown();
  }

 private:
  const GrpcOptions options_;
  GrpcCalls calls_;
  int port_ = 0;
  bool stopped_ = false;
  std::unique_ptr<grpc::Server> server_;  // gone before the calls
};

Result<std::unique_ptr<GrpcServer>> start(GrpcOptions options, Service& service) {
  auto server = std::make_unique<Running>(std::move(options), service);
  SPARKLE_CHECK(server->start());
  return std::unique_ptr<GrpcServer>(std::move(server));
}

}  // namespace
}  // namespace sparkle::serve

// Both are of one build, and found by one name.
extern "C" __attribute__((visibility("default"))) const sparkle::serve::GrpcDoor* sparkle_grpc_door() {
  static const sparkle::serve::GrpcDoor door{sparkle::serve::start};
  return &door;
}
