// What a server does for clients, in terms of no transport: HTTP and gRPC ask the same functions, so that limits, deadlines and
// counts are the same for both. Who answers is model_service.h's: a library that only asks may not see it, since compilers call
// the one implementation that they know of by its name.
#pragma once

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
  std::vector<AskedOutput> outputs;                       // none: all
  Clock::time_point deadline = Clock::time_point::max();  // the client's own
  std::optional<Refusal> refused;                         // found wanting on its way here: it is counted and given back
};

struct AnsweredTensor {
  std::string name;
  HostTensor tensor;
  std::optional<ClassTexts> classes = {};  // in its place
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

// Triton's statistics, as JSON.
std::string print_counts(const std::vector<ModelCounts>& rows);

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

}  // namespace sparkle::serve
