// The roofline report of a loaded model: for each layer its time, its share of the roof, what bounds it and why it runs so. At
// once from the plan, as predicted; measured where that is asked for and no request is under way. It is made for the shapes of
// the latest request and kept, with what to change in the model, so asking again costs nothing.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "measure/model_report.h"
#include "report/page/page.h"
#include "serve/failure.h"

namespace sparkle::serve {

struct KeptReport {
  ModelReport report;
  std::vector<HostTensor> inputs;     // what it was made for: shapes, and values where shapes depend on them
  std::optional<PageTarget> changes;  // to the model
  std::string no_changes;             // why nothing is known of them
};

class ModelReports {
 public:
  using Answer = std::variant<std::shared_ptr<const KeptReport>, Refusal>;
  // Asked between two runs of a measurement: why it has to end.
  using Between = std::function<std::optional<Refusal>()>;

  // `file`: as it was before the session was opened of it.
  ModelReports(std::string name, FileStamp file, std::shared_ptr<Session> session)
      : name_(std::move(name)), file_(std::move(file)), session_(std::move(session)) {}
  // A request of these shapes has come: a report is for the latest.
  void note(const std::vector<HostTensor>& inputs);
  // What is kept; a predicted one where there is none. Held while one is made: `one_at_a_time`, and queue_full where somebody
  // else does. unavailable where the model leaves sizes open and no request has told them; what planning says.
  Answer get(std::mutex& one_at_a_time);
  // The measured one, by some runs on random values where none is kept. Refused also by what `between` says.
  Answer measure(std::mutex& one_at_a_time, const Between& between);

 private:
  std::variant<std::vector<HostTensor>, Refusal> shapes();
  std::shared_ptr<const KeptReport> kept_for(const std::vector<HostTensor>& inputs, bool measured) const;
  Answer keep(ModelReport report, std::vector<HostTensor> inputs);

  const std::string name_;
  const FileStamp file_;
  const std::shared_ptr<Session> session_;
  mutable std::mutex mutex_;  // of all below
  std::vector<HostTensor> latest_;
  bool noted_ = false;
  std::shared_ptr<const KeptReport> kept_;
};

// {"version", "inputs": [{"name", "datatype", "shape"}], "basis", "farthest": [{"step", "sentence", "why", "above"}],
// "changes":
// [{"code", "layer", "sentence", "rule", "fix", "saved"}], "no_changes", and what `sparkle report --json` has}.
std::string report_json(const KeptReport& kept, const std::vector<SessionInput>& inputs, const std::string& version);
// The pages that `sparkle report --html` and `sparkle check --html` make, as one.
std::string report_page(const KeptReport& kept, const std::string& version);

}  // namespace sparkle::serve
