// What a server does for clients, in terms of no transport: HTTP and gRPC ask the same functions, so that limits, deadlines and
// counts are the same for both.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "serve/repository.h"

namespace sparkle::serve {

struct InferCall {
  std::string model, version, id;
  std::vector<GivenTensor> inputs;
  std::vector<std::string> outputs;                       // by name; none: all
  Clock::time_point deadline = Clock::time_point::max();  // the client's own
  std::optional<Refusal> refused;                         // found wanting on its way here: it is counted and given back
};

struct AnsweredTensor {
  std::string name;
  HostTensor tensor;
};
struct InferReply {
  std::string version;  // that was asked, where the model is there
  std::optional<Refusal> refused;
  std::vector<AnsweredTensor> outputs;
};

struct ModelFacts {
  ModelDescription description;
  std::vector<std::string> versions;
};

// Counts of a model since the server began, over all loads.
struct ModelCounts {
  std::string name, version;
  uint64_t answered = 0, failed = 0, runs = 0;
  double answered_seconds = 0;
};

class Service {
 public:
  virtual ~Service() = default;
  virtual const std::string& version() const = 0;  // of the program
  virtual bool is_ready() const = 0;               // not stopping
  // Whether this is what clients are to show ("Bearer TOKEN"), or nothing is asked for.
  virtual bool shows_token(std::string_view authorization) const = 0;
  // Waits for the result. An empty version is the newest.
  virtual InferReply infer(const InferCall& call) = 0;
  virtual std::variant<ModelFacts, Refusal> facts(const std::string& name, const std::string& version) const = 0;
  virtual std::vector<IndexRow> index() const = 0;
  virtual std::optional<Refusal> load(const std::string& name) = 0;
  virtual std::optional<Refusal> unload(const std::string& name) = 0;
  // Of one model, or with an empty name of all; an empty version: of all of them.
  virtual std::variant<std::vector<ModelCounts>, Refusal> counts(const std::string& name, const std::string& version) const = 0;
};

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

  Inference begin(std::shared_ptr<Model> model) const { return {std::move(model), options_.timeout}; }
  const Repository& repository() const { return repository_; }
  // From here on it is not ready.
  void stop() { stopping_ = true; }

 private:
  Repository& repository_;
  const ServiceOptions options_;
  std::atomic<bool> stopping_{false};
};

}  // namespace sparkle::serve
