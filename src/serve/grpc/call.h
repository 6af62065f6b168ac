// A call of gRPC on its way: refused before its message is read where that can be said, read, answered by a thread that may
// wait, written; and who deletes it.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "serve/grpc/grpc_server.h"
#include "serve/grpc/methods.h"
#include "serve/grpc/waiting_threads.h"

namespace sparkle::serve {

class GrpcCall;

// What all calls share.
class GrpcCalls final : public grpc::CallbackGenericService {
 public:
  GrpcCalls(const GrpcOptions& options, Service& service);
  ~GrpcCalls() override;
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;
  // Refuses calls that begin from here on; returns when those before have their answers.
  void refuse_new_and_wait();

 private:
  friend class GrpcCall;
  // Calls that wait for their client are given up at their time.
  void watch(GrpcCall* call, std::chrono::milliseconds time);
  void forget(GrpcCall* call);
  void give_up_late();

  const GrpcOptions& options_;
  Service& service_;
  WaitingThreads threads_;
  std::atomic<int> under_way_{0}, accepted_{0};
  std::atomic<uint64_t> held_{0};  // bytes of messages
  std::recursive_mutex mutex_;     // of the next: giving one up may end another
  std::set<std::pair<Clock::time_point, GrpcCall*>> watched_;
  std::atomic<bool> stopping_{false}, ending_{false};
  std::thread watching_;
};

class GrpcCall final : public grpc::ServerGenericBidiReactor {
 public:
  GrpcCall(GrpcCalls& all, grpc::GenericCallbackServerContext* context);
  ~GrpcCall() override;
  void OnReadDone(bool ok) override;
  void OnDone() override;
  void give_up() { context_->TryCancel(); }

 private:
  friend class GrpcCalls;
  std::optional<MethodAnswer> refuse_early() const;
  std::optional<MethodAnswer> refuse_message();
  void answer();
  void finish(MethodAnswer answer);
  void log(const MethodAnswer& answer) const;

  GrpcCalls& all_;
  grpc::GenericCallbackServerContext* const context_;
  const Method* const method_;
  Clock::time_point begin_ = Clock::now(), watched_until_;
  bool watched_ = false, accepted_ = false;
  int number_ = 0;  // of calls under way
  uint64_t bytes_in_ = 0, bytes_out_ = 0, held_ = 0;
  grpc::ByteBuffer request_, response_;
};

}  // namespace sparkle::serve
