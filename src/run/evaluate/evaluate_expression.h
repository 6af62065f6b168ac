// Expressions of users run on a backend: parsed, planned as one pointwise program, compiled; what was run before is kept.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "run/session.h"

namespace sparkle {

// A name of the expression and what it stands for. A tensor without axes counts as a number: it takes the type of what it
// meets.
struct ExpressionArgument {
  std::string name;
  HostTensor tensor;
};

// Serves any number of threads.
class ExpressionRunner {
 public:
  explicit ExpressionRunner(std::shared_ptr<Backend> backend, SessionOptions options = {})
      : backend_(std::move(backend)), options_(std::move(options)) {}
  // The result, and in `report` the plan it came by. Errors: what parsing says, pointing at the character; bad_usage for
  // arguments that are given twice or not used; what planning says.
  Result<HostTensor> run(const std::string& text, const std::vector<ExpressionArgument>& arguments,
                         RunReport* report = nullptr);

 private:
  struct Kept {
    std::string key;  // text, types, shapes, numbers
    std::shared_ptr<Session> session;
    std::vector<std::string> inputs;  // names of the session's inputs
  };
  Result<Kept> opened(const std::string& text, const std::vector<ExpressionArgument>& arguments, const std::string& key) const;

  std::shared_ptr<Backend> backend_;
  SessionOptions options_;
  std::mutex mutex_;
  std::list<Kept> kept_;  // the latest first
};

}  // namespace sparkle
