// The service over the models of a repository.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>

#include "serve/service.h"

namespace sparkle::serve {

struct ServiceOptions {
  std::string version, token;            // of the program; that clients show, empty: none
  std::chrono::milliseconds timeout{0};  // of a request; 0: none
};

// A request to a model from its last byte on: its time runs, and what becomes of it is counted.
class Inference {
 public:
  Inference(std::shared_ptr<Model> model, std::chrono::milliseconds timeout);
  const Model& model() const { return *model_; }
  // Earlier than the server's own.
  void end_by(Clock::time_point deadline) { deadline_ = std::min(deadline_, deadline); }
  Outcome run(InferRequest& request);
  void count(std::optional<Failure> failure) const;

 private:
  const std::shared_ptr<Model> model_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point deadline_ = Clock::time_point::max();
};

// Over the models of a repository.
class ModelService final : public Service {
 public:
  ModelService(Repository& repository, ServiceOptions options) : repository_(repository), options_(std::move(options)) {}
  const std::string& version() const override { return options_.version; }
  bool is_ready() const override { return !stopping_; }
  bool shows_token(std::string_view authorization) const override;
  InferReply infer(const InferCall& call) override;
  std::variant<ModelFacts, Refusal> facts(const std::string& name, const std::string& version) const override;
  std::vector<IndexRow> index() const override { return repository_.index(); }
  std::optional<Refusal> load(const std::string& name) override { return repository_.load(name); }
  std::optional<Refusal> unload(const std::string& name) override { return repository_.unload(name); }
  std::variant<std::vector<ModelCounts>, Refusal> counts(const std::string& name, const std::string& version) const override;

  // What is known of a model's layers; with `measure` what they took, where no request is under way in the whole server: one
  // that comes ends the measurement, which is refused then. One report is made at a time. Refused: queue_full, unavailable.
  ModelReports::Answer report(const Model& model, bool measure);

  Inference begin(std::shared_ptr<Model> model) const { return {std::move(model), options_.timeout}; }
  const Repository& repository() const { return repository_; }
  // From here on it is not ready.
  void stop() { stopping_ = true; }

 private:
  Repository& repository_;
  const ServiceOptions options_;
  std::atomic<bool> stopping_{false};
  std::mutex reporting_;  // held while a report is made
};

}  // namespace sparkle::serve
