#include "serve/model_service.h"

#include "base/printable.h"

namespace sparkle::serve {
namespace {

// Takes as long whatever is wrong.
bool same_text(std::string_view a, std::string_view b) {
  unsigned differs = a.size() != b.size();
  for (size_t i = 0; i < a.size(); ++i)
    differs |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i % std::max<size_t>(1, b.size())]);
  return differs == 0;
}

}  // namespace

Inference::Inference(std::shared_ptr<Model> model, std::chrono::milliseconds timeout) : model_(std::move(model)) {
  if (timeout.count() > 0) deadline_ = begin_ + timeout;
}

Outcome Inference::run(InferRequest& request) {
  model_->reports->note(request.inputs);
  if (request.timeout_us > 0) end_by(begin_ + std::chrono::microseconds(request.timeout_us));
  return model_->batcher->run(std::move(request.inputs), deadline_);
}

void Inference::count(std::optional<Failure> failure) const {
  if (failure) return model_->metrics->failure(*failure);
  ++model_->metrics->answered;
  model_->metrics->latency.add(std::chrono::duration<double>(Clock::now() - begin_).count());
}

bool ModelService::shows_token(std::string_view authorization) const {
  return options_.token.empty() || same_text(authorization, "Bearer " + options_.token);
}

ModelReports::Answer ModelService::report(const Model& model, bool measure) {
  if (!measure) return model.reports->get(reporting_);
  return model.reports->measure(reporting_, [&]() -> std::optional<Refusal> {
    if (stopping_) return Refusal{Failure::unavailable, "The server is stopping."};
    for (const auto& one : repository_.loaded())
      if (one->batcher->under_way() > 0)
        return Refusal{Failure::queue_full,
                       "Requests are under way, which a measurement would slow and which would slow it; ask again later."};
    return {};
  });
}

InferReply ModelService::infer(const InferCall& call) {
  InferReply reply;
  auto found = repository_.find(call.model, call.version);
  if (auto* refusal = std::get_if<Refusal>(&found)) {
    reply.refused = std::move(*refusal);
    return reply;
  }
  Inference one = begin(std::get<std::shared_ptr<Model>>(std::move(found)));
  const ModelDescription& model = one.model().description;
  reply.version = model.version;
  one.end_by(call.deadline);
  const auto refuse = [&](Refusal refusal) {
    one.count(refusal.failure);
    reply.refused = std::move(refusal);
    return reply;
  };
  if (call.refused) return refuse(*call.refused);
  if (one.model().batcher->full())  // before memory is taken for its tensors
    return refuse({Failure::queue_full, "The queue of model '" + printable(call.model) + "' is full; ask again later."});
  auto request = take_tensors(model, call.inputs, call.outputs);
  if (!request.ok()) return refuse(refusal_of(request.error()));
  Outcome outcome = one.run(*request);
  if (outcome.refused) return refuse(std::move(*outcome.refused));
  for (const WantedOutput& wanted : request->outputs) {
    AnsweredTensor answered{model.outputs[wanted.index].name, outcome.outputs[wanted.index]};
    if (wanted.classes > 0) answered.classes = class_texts(answered.tensor, wanted.classes, model.labels.get());
    reply.outputs.push_back(std::move(answered));
  }
  one.count({});
  return reply;
}

std::variant<ModelFacts, Refusal> ModelService::facts(const std::string& name, const std::string& version) const {
  const auto found = repository_.find(name, version);
  if (const auto* refusal = std::get_if<Refusal>(&found)) return *refusal;
  return ModelFacts{std::get<std::shared_ptr<Model>>(found)->description, repository_.versions(name)};
}

std::variant<std::vector<ModelCounts>, Refusal> ModelService::counts(const std::string& name,
                                                                     const std::string& version) const {
  if (!name.empty()) {
    const auto found = repository_.find(name, version);
    if (const auto* refusal = std::get_if<Refusal>(&found)) return *refusal;
  }
  std::vector<ModelCounts> all;
  for (const MetricsRow& row : repository_.metrics()) {
    if ((!name.empty() && row.name != name) || (!version.empty() && row.version != version)) continue;
    const auto latency = row.metrics->latency.counts();
    all.push_back(
        {row.name, row.version, row.metrics->answered, row.metrics->failures(), row.metrics->batches, latency.seconds});
  }
  return all;
}

}  // namespace sparkle::serve
