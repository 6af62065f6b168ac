#include "serve/grpc/call.h"

namespace sparkle::serve {
namespace {

// As over HTTP: a message and an answer have this long, and a second more for each of so many bytes.
constexpr std::chrono::milliseconds kTransfer{30000};
constexpr uint64_t kBytesASecond = 64 << 10;
std::chrono::milliseconds time_for(uint64_t bytes) {
  return kTransfer + std::chrono::milliseconds(bytes * 1000 / kBytesASecond);
}

// "ipv4:127.0.0.1:5000" -> "127.0.0.1"
std::string address_of(std::string peer) {
  if (const size_t kind = peer.find(':'); kind != peer.npos) peer.erase(0, kind + 1);
  if (const size_t port = peer.rfind(':'); port != peer.npos) peer.resize(port);
  return peer;
}

}  // namespace

GrpcCalls::GrpcCalls(const GrpcOptions& options, Service& service)
    : options_(options), service_(service), threads_(static_cast<size_t>(options.most_calls)) {
  watching_ = std::thread([this] {
    while (!ending_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      give_up_late();
    }
  });
}

GrpcCalls::~GrpcCalls() {
  ending_ = true;
  watching_.join();
}

grpc::ServerGenericBidiReactor* GrpcCalls::CreateReactor(grpc::GenericCallbackServerContext* context) {
  return new GrpcCall(*this, context);
}

void GrpcCalls::refuse_new_and_wait() {
  stopping_ = true;
  while (accepted_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

void GrpcCalls::watch(GrpcCall* call, std::chrono::milliseconds time) {
  const std::lock_guard lock(mutex_);
  call->watched_until_ = Clock::now() + time, call->watched_ = true;
  watched_.emplace(call->watched_until_, call);
}

void GrpcCalls::forget(GrpcCall* call) {
  const std::lock_guard lock(mutex_);
  if (call->watched_) watched_.erase({call->watched_until_, call});
  call->watched_ = false;
}

void GrpcCalls::give_up_late() {
  const std::lock_guard lock(mutex_);
  while (!watched_.empty() && watched_.begin()->first <= Clock::now()) {
    GrpcCall* call = watched_.begin()->second;
    watched_.erase(watched_.begin());
    call->watched_ = false;
    call->give_up();  // it cannot be deleted yet: forget() takes the lock
  }
}

GrpcCall::GrpcCall(GrpcCalls& all, grpc::GenericCallbackServerContext* context)
    : all_(all), context_(context), method_(find_method(context->method())), number_(++all.under_way_) {
  accepted_ = true, ++all_.accepted_;  // before it is asked whether that has ended
  if (auto refused = refuse_early()) {
    accepted_ = false, --all_.accepted_;
    finish(std::move(*refused));
    return;
  }
  all_.watch(this, time_for(method_->is_infer ? all_.options_.most_bytes : kMostSmallBytes));
  StartRead(&request_);
}

GrpcCall::~GrpcCall() {
  all_.held_ -= held_;
  --all_.under_way_;
  if (accepted_) --all_.accepted_;
}

std::optional<MethodAnswer> GrpcCall::refuse_early() const {
  if (!method_)
    return refused_answer(
        {Failure::wrong_method, "There is no such method here; it is no part of the Open Inference Protocol."});
  if (method_->needs_token) {
    const auto& metadata = context_->client_metadata();
    const auto shown = metadata.find("authorization");
    const std::string_view text =
        shown == metadata.end() ? std::string_view() : std::string_view(shown->second.data(), shown->second.size());
    if (!all_.service_.shows_token(text))
      return refused_answer({Failure::unauthorised,
                             "The request shows no token, or another one; send 'authorization: Bearer TOKEN' as metadata."});
  }
  if (method_->not_there) return refused_answer({Failure::wrong_method, method_->not_there});
  if (all_.stopping_ && method_->needs_token) return refused_answer({Failure::unavailable, "The server is stopping."});
  if (number_ > all_.options_.most_calls)
    return refused_answer({Failure::queue_full, "The server has as many requests under way as it takes; ask again later."});
  return {};
}

void GrpcCall::OnReadDone(bool ok) {
  all_.forget(this);
  if (!ok) return finish(refused_answer({Failure::invalid, "The request ended without its message, or came too slowly."}));
  begin_ = Clock::now();
  if (auto refused = refuse_message()) return finish(std::move(*refused));
  if (!all_.threads_.run([this] { answer(); }))
    finish(refused_answer({Failure::unavailable, "The system has no thread for the request; ask again later."}));
}

std::optional<MethodAnswer> GrpcCall::refuse_message() {
  bytes_in_ = request_.Length();
  if (!method_->is_infer && bytes_in_ > kMostSmallBytes)
    return refused_answer({Failure::too_large, "The request has more than 65536 bytes, and needs none of them."});
  if (bytes_in_ > all_.options_.most_bytes)
    return refused_answer({Failure::too_large, "The request has " + std::to_string(bytes_in_) + " bytes, more than the " +
                                                   std::to_string(all_.options_.most_bytes) +
                                                   " that --max-request-bytes allows."});
  held_ = bytes_in_;
  if ((all_.held_ += held_) > all_.options_.most_bytes_at_once)
    return refused_answer({Failure::unavailable, "Requests of too many bytes are under way; come again later."});
  return {};
}

void GrpcCall::answer() {
  MethodAnswer answer;
  try {
    grpc::Slice whole;
    auto deadline = Clock::time_point::max();
    if (const auto left = context_->deadline() - std::chrono::system_clock::now(); left < std::chrono::hours(24))
      deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(left);
    if (context_->IsCancelled()) answer = refused_answer({Failure::too_late, "The request was given up by its client."});
    else if (!request_.TrySingleSlice(&whole).ok() && !request_.DumpToSingleSlice(&whole).ok())
      answer = refused_answer({Failure::invalid, "The message cannot be unpacked."});
    else answer = method_->answer(all_.service_, {reinterpret_cast<const char*>(whole.begin()), whole.size()}, deadline);
  } catch (const std::bad_alloc&) {
    answer = refused_answer({Failure::unavailable, "There is no memory left for the request."});
  } catch (const std::exception&) {
    answer = refused_answer({Failure::internal, "Something inside the server did not hold; please report it."});
  }
  request_.Clear();
  finish(std::move(answer));
}

// The last that is done to the call before OnDone: it may be gone on return.
void GrpcCall::finish(MethodAnswer answer) {
  if (answer.status.ok()) bytes_out_ = answer.message.Length();
  log(answer);
  all_.watch(this, time_for(bytes_out_));
  if (!answer.status.ok()) return Finish(answer.status);
  response_.Swap(&answer.message);
  StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
}

void GrpcCall::log(const MethodAnswer& answer) const {
  if (!all_.options_.log) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  all_.options_.log({address_of(context_->peer()), "gRPC", context_->method(),
                     answer.failure ? http_status(*answer.failure) : 200, bytes_in_, bytes_out_, seconds, answer.model,
                     answer.version, answer.failure});
}

void GrpcCall::OnDone() {
  all_.forget(this);
  delete this;
}

}  // namespace sparkle::serve
