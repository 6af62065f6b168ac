#include "serve/grpc/methods.h"

#include "serve/datatypes.h"
#include "serve/grpc/infer_message.h"

namespace sparkle::serve {
namespace {

namespace pb = ::inference;

grpc::StatusCode status_code(Failure failure) {
  switch (failure) {
    case Failure::invalid: return grpc::INVALID_ARGUMENT;
    case Failure::unauthorised: return grpc::UNAUTHENTICATED;
    case Failure::forbidden: return grpc::PERMISSION_DENIED;
    case Failure::unknown: return grpc::NOT_FOUND;
    case Failure::wrong_method: return grpc::UNIMPLEMENTED;
    case Failure::length_missing: return grpc::INVALID_ARGUMENT;
    case Failure::too_large: return grpc::RESOURCE_EXHAUSTED;
    case Failure::encoding: return grpc::UNIMPLEMENTED;
    case Failure::queue_full: return grpc::RESOURCE_EXHAUSTED;
    case Failure::internal: return grpc::INTERNAL;
    case Failure::unavailable: return grpc::UNAVAILABLE;
    case Failure::too_late: return grpc::DEADLINE_EXCEEDED;
  }
  return grpc::INTERNAL;
}

MethodAnswer answered(const google::protobuf::MessageLite& message) {
  MethodAnswer answer;
  const grpc::Slice slice(message.SerializeAsString());
  answer.message = grpc::ByteBuffer(&slice, 1);
  return answer;
}

template <class Request>
std::optional<Request> parsed(std::string_view bytes) {
  Request request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return {};
  return request;
}
MethodAnswer no_message() { return refused_answer({Failure::invalid, "The message is none of this method's requests."}); }

MethodAnswer server_live(Service&, std::string_view, Clock::time_point) {
  pb::ServerLiveResponse response;
  response.set_live(true);
  return answered(response);
}
MethodAnswer server_ready(Service& service, std::string_view, Clock::time_point) {
  pb::ServerReadyResponse response;
  response.set_ready(service.is_ready());
  return answered(response);
}
// What orchestrators ask (grpc.health.v1): field 1 is 1 where it serves, 2 where it does not.
MethodAnswer health(Service& service, std::string_view, Clock::time_point) {
  MethodAnswer answer;
  const grpc::Slice slice(service.is_ready() ? "\x08\x01" : "\x08\x02", 2);
  answer.message = grpc::ByteBuffer(&slice, 1);
  return answer;
}

MethodAnswer server_metadata(Service& service, std::string_view, Clock::time_point) {
  pb::ServerMetadataResponse response;
  response.set_name("sparkle"), response.set_version(service.version());
  for (const char* extension : {"classification", "model_configuration", "model_repository", "statistics"})
    response.add_extensions(extension);
  return answered(response);
}

MethodAnswer model_ready(Service& service, std::string_view bytes, Clock::time_point) {
  const auto request = parsed<pb::ModelReadyRequest>(bytes);
  if (!request) return no_message();
  pb::ModelReadyResponse response;
  response.set_ready(std::holds_alternative<ModelFacts>(service.facts(request->name(), request->version())));
  return answered(response);
}

// From axis `first` on.
template <class Message>
void add_shape(Message& to, void (Message::*add)(int64_t), const SessionInput& tensor, int first = 0) {
  if (!tensor.rank_known) return (to.*add)(-1);
  for (int a = first; a < tensor.shape.size(); ++a) (to.*add)(tensor.shape[a] < 0 ? -1 : tensor.shape[a]);
}

MethodAnswer model_metadata(Service& service, std::string_view bytes, Clock::time_point) {
  const auto request = parsed<pb::ModelMetadataRequest>(bytes);
  if (!request) return no_message();
  const auto found = service.facts(request->name(), request->version());
  if (const auto* refusal = std::get_if<Refusal>(&found)) return refused_answer(*refusal);
  const auto& [model, versions] = std::get<ModelFacts>(found);
  pb::ModelMetadataResponse response;
  response.set_name(model.name), response.set_platform("sparkle_onnx");
  for (const std::string& version : versions) response.add_versions(version);
  const auto describe = [](pb::ModelMetadataResponse::TensorMetadata& to, const SessionInput& tensor) {
    to.set_name(tensor.name), to.set_datatype(std::string(protocol_name(tensor.dtype)));
    add_shape(to, &pb::ModelMetadataResponse::TensorMetadata::add_shape, tensor);
  };
  for (const SessionInput& tensor : model.inputs) describe(*response.add_inputs(), tensor);
  for (const SessionInput& tensor : model.outputs) describe(*response.add_outputs(), tensor);
  return answered(response);
}

pb::DataType config_type(DType type) {
  switch (type) {
    case DType::boolean: return pb::TYPE_BOOL;
    case DType::u8: return pb::TYPE_UINT8;
    case DType::u16: return pb::TYPE_UINT16;
    case DType::u32: return pb::TYPE_UINT32;
    case DType::u64: return pb::TYPE_UINT64;
    case DType::i8: return pb::TYPE_INT8;
    case DType::i16: return pb::TYPE_INT16;
    case DType::i32: return pb::TYPE_INT32;
    case DType::i64: return pb::TYPE_INT64;
    case DType::f16: return pb::TYPE_FP16;
    case DType::f32: return pb::TYPE_FP32;
    case DType::f64: return pb::TYPE_FP64;
    case DType::bf16: return pb::TYPE_BF16;
    default: return pb::TYPE_INVALID;
  }
}

MethodAnswer model_config(Service& service, std::string_view bytes, Clock::time_point) {
  const auto request = parsed<pb::ModelConfigRequest>(bytes);
  if (!request) return no_message();
  const auto found = service.facts(request->name(), request->version());
  if (const auto* refusal = std::get_if<Refusal>(&found)) return refused_answer(*refusal);
  const ModelDescription& model = std::get<ModelFacts>(found).description;
  pb::ModelConfigResponse response;
  pb::ModelConfig& config = *response.mutable_config();
  config.set_name(model.name), config.set_platform("sparkle_onnx"), config.set_backend("sparkle");
  config.set_max_batch_size(static_cast<int32_t>(std::min<int64_t>(model.picture_rows, INT32_MAX)));
  const int first = model.picture_rows > 0;
  for (const SessionInput& tensor : model.inputs) {
    pb::ModelInput& to = *config.add_input();
    to.set_name(tensor.name), to.set_data_type(config_type(tensor.dtype));
    if (model.picture_rows > 0) to.set_format(model.channels_last ? pb::ModelInput::FORMAT_NHWC : pb::ModelInput::FORMAT_NCHW);
    add_shape(to, &pb::ModelInput::add_dims, tensor, first);
  }
  for (const SessionInput& tensor : model.outputs) {
    pb::ModelOutput& to = *config.add_output();
    to.set_name(tensor.name), to.set_data_type(config_type(tensor.dtype));
    add_shape(to, &pb::ModelOutput::add_dims, tensor, first);
  }
  return answered(response);
}

MethodAnswer model_statistics(Service& service, std::string_view bytes, Clock::time_point) {
  const auto request = parsed<pb::ModelStatisticsRequest>(bytes);
  if (!request) return no_message();
  const auto found = service.counts(request->name(), request->version());
  if (const auto* refusal = std::get_if<Refusal>(&found)) return refused_answer(*refusal);
  pb::ModelStatisticsResponse response;
  for (const ModelCounts& row : std::get<std::vector<ModelCounts>>(found)) {
    pb::ModelStatistics& to = *response.add_model_stats();
    to.set_name(row.name), to.set_version(row.version);
    to.set_inference_count(row.answered), to.set_execution_count(row.runs);
    pb::InferStatistics& counts = *to.mutable_inference_stats();
    counts.mutable_success()->set_count(row.answered);
    counts.mutable_success()->set_ns(static_cast<uint64_t>(row.answered_seconds * 1e9));
    counts.mutable_fail()->set_count(row.failed);
  }
  return answered(response);
}

MethodAnswer repository_index(Service& service, std::string_view bytes, Clock::time_point) {
  const auto request = parsed<pb::RepositoryIndexRequest>(bytes);
  if (!request) return no_message();
  pb::RepositoryIndexResponse response;
  for (const IndexRow& row : service.index()) {
    if (request->ready() && !row.ready) continue;
    auto& to = *response.add_models();
    to.set_name(row.name), to.set_version(row.version);
    to.set_state(row.ready ? "READY" : "UNAVAILABLE"), to.set_reason(row.reason);
  }
  return answered(response);
}

template <class Request, class Response>
MethodAnswer control(Service& service, std::string_view bytes, bool load) {
  const auto request = parsed<Request>(bytes);
  if (!request) return no_message();
  for (const auto& [name, value] : request->parameters())
    if (name != "unload_dependents")
      return refused_answer(
          {Failure::invalid,
           "Parameters of a load request are not supported: a model is loaded as it lies in its file, so put it there."});
  const auto refused = load ? service.load(request->model_name()) : service.unload(request->model_name());
  return refused ? refused_answer(*refused) : answered(Response());
}
MethodAnswer load(Service& service, std::string_view bytes, Clock::time_point) {
  return control<pb::RepositoryModelLoadRequest, pb::RepositoryModelLoadResponse>(service, bytes, true);
}
MethodAnswer unload(Service& service, std::string_view bytes, Clock::time_point) {
  return control<pb::RepositoryModelUnloadRequest, pb::RepositoryModelUnloadResponse>(service, bytes, false);
}

// A tensor's memory as part of the answer: it is not copied, and lives until it was sent.
grpc::Slice lent(const HostTensor& tensor) {
  auto* owner = new std::shared_ptr<std::byte[]>(tensor.bytes);
  return grpc::Slice(
      tensor.bytes.get(), static_cast<size_t>(tensor.size_bytes()),
      [](void* held) { delete static_cast<std::shared_ptr<std::byte[]>*>(held); }, owner);
}

MethodAnswer infer(Service& service, std::string_view bytes, Clock::time_point deadline) {
  ParsedInfer request;
  bool unsupported = false;
  if (!parse_infer_message(bytes, request, unsupported)) return refused_answer(*request.call.refused);
  InferCall& call = request.call;
  call.deadline = std::min(call.deadline, deadline);
  InferReply reply = service.infer(call);
  MethodAnswer answer;
  if (reply.refused) {
    answer = refused_answer(*reply.refused);
    if (unsupported && call.refused && reply.refused->message == call.refused->message)
      answer.status = {grpc::UNIMPLEMENTED, reply.refused->message};
  } else {
    std::vector<grpc::Slice> slices;
    slices.emplace_back(infer_answer_head(call, reply));
    for (const AnsweredTensor& output : reply.outputs) {
      if (output.classes) {
        const std::string bytes = output.classes->bytes();
        slices.emplace_back(bytes_field(kRawOutputs, bytes.size()));
        if (!bytes.empty()) slices.emplace_back(bytes);
        continue;
      }
      slices.emplace_back(bytes_field(kRawOutputs, static_cast<uint64_t>(output.tensor.size_bytes())));
      if (output.tensor.size_bytes() > 0) slices.push_back(lent(output.tensor));
    }
    answer.message = grpc::ByteBuffer(slices.data(), slices.size());
  }
  if (!reply.version.empty()) answer.model = call.model, answer.version = reply.version;
  return answer;
}

constexpr const char* kNoStreams =
    "Streams are not supported, as sequences and decoupled models are not; each request has one answer, so call ModelInfer.";

#define INFERENCE "/inference.GRPCInferenceService/"
const Method kMethods[] = {
    {INFERENCE "ModelInfer", true, true, nullptr, infer},
    {INFERENCE "ServerLive", false, false, nullptr, server_live},
    {INFERENCE "ServerReady", false, false, nullptr, server_ready},
    {INFERENCE "ServerMetadata", false, true, nullptr, server_metadata},
    {INFERENCE "ModelReady", false, true, nullptr, model_ready},
    {INFERENCE "ModelMetadata", false, true, nullptr, model_metadata},
    {INFERENCE "ModelConfig", false, true, nullptr, model_config},
    {INFERENCE "ModelStatistics", false, true, nullptr, model_statistics},
    {INFERENCE "RepositoryIndex", false, true, nullptr, repository_index},
    {INFERENCE "RepositoryModelLoad", false, true, nullptr, load},
    {INFERENCE "RepositoryModelUnload", false, true, nullptr, unload},
    {INFERENCE "ModelStreamInfer", false, true, kNoStreams, nullptr},
    {INFERENCE "SystemSharedMemoryStatus", false, true, kNoSharedMemory, nullptr},
    {INFERENCE "SystemSharedMemoryRegister", false, true, kNoSharedMemory, nullptr},
    {INFERENCE "SystemSharedMemoryUnregister", false, true, kNoSharedMemory, nullptr},
    {INFERENCE "CudaSharedMemoryStatus", false, true, kNoSharedMemory, nullptr},
    {INFERENCE "CudaSharedMemoryRegister", false, true, kNoSharedMemory, nullptr},
    {INFERENCE "CudaSharedMemoryUnregister", false, true, kNoSharedMemory, nullptr},
    {INFERENCE "TraceSetting", false, true, kNoSettings, nullptr},
    {INFERENCE "LogSettings", false, true, kNoSettings, nullptr},
    {"/grpc.health.v1.Health/Check", false, false, nullptr, health},
};
#undef INFERENCE

}  // namespace

MethodAnswer refused_answer(const Refusal& refusal) {
  MethodAnswer answer;
  answer.status = {status_code(refusal.failure), refusal.message};
  answer.failure = refusal.failure;
  return answer;
}

const Method* find_method(std::string_view name) {
  for (const Method& method : kMethods)
    if (method.name == name) return &method;
  return nullptr;
}

}  // namespace sparkle::serve
