#include "serve/reports/model_reports.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "measure/roofs/roof_judge.h"
#include "prepare/random_inputs.h"
#include "report/report_text.h"
#include "serve/datatypes.h"
#include "serve/reports/changes.h"

namespace sparkle::serve {
namespace {

constexpr double kSeconds = 0.5;  // of runs, about
constexpr int kLeast = 5;         // runs of each kind

// Shapes, and values where they are kept on both sides.
bool same_shapes(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].dtype != b[i].dtype || !(a[i].shape == b[i].shape)) return false;
    if (a[i].bytes && b[i].bytes &&
        std::memcmp(a[i].bytes.get(), b[i].bytes.get(), static_cast<size_t>(a[i].size_bytes())) != 0)
      return false;
  }
  return true;
}

Refusal somebody_else() {
  return {Failure::queue_full, "Another report is being made, and one at a time is; ask again later."};
}

}  // namespace

void ModelReports::note(const std::vector<HostTensor>& inputs) {
  const std::lock_guard lock(mutex_);
  const std::vector<SessionInput>& declared = session_->inputs();
  if (inputs.size() != declared.size() || (noted_ && same_shapes(latest_, inputs))) return;
  latest_ = inputs, noted_ = true;
  for (size_t i = 0; i < latest_.size(); ++i)
    if (!declared[i].by_value) latest_[i].bytes = nullptr;
}

// Of the latest request; else the model's own, of one row where batches are open.
std::variant<std::vector<HostTensor>, Refusal> ModelReports::shapes() {
  {
    const std::lock_guard lock(mutex_);
    if (noted_) return latest_;
  }
  std::vector<HostTensor> tensors;
  for (const SessionInput& in : session_->inputs()) {
    HostTensor t{in.dtype, in.shape, nullptr};
    if (t.shape.size() > 0 && t.shape[0] < 0) t.shape[0] = 1;
    bool open = in.by_value || !in.rank_known;
    for (const int64_t size : t.shape) open |= size < 0;
    if (open)
      return Refusal{Failure::unavailable, "Model '" + printable(name_) + "' leaves sizes of input '" + printable(in.name) +
                                               "' open; its report is for those of the latest request, so send one first."};
    tensors.push_back(std::move(t));
  }
  return tensors;
}

std::shared_ptr<const KeptReport> ModelReports::kept_for(const std::vector<HostTensor>& inputs, bool measured) const {
  const std::lock_guard lock(mutex_);
  const bool serves = kept_ && (kept_->report.measured || !measured) && same_shapes(kept_->inputs, inputs);
  return serves ? kept_ : nullptr;
}

ModelReports::Answer ModelReports::keep(ModelReport report, std::vector<HostTensor> inputs) {
  report.model = name_;  // exporters call most graphs alike
  report.traced = {};    // nothing here draws it
  auto made = std::make_shared<KeptReport>();
  auto changes = changes_of(file_, *session_, inputs);
  if (changes.ok()) made->changes = std::move(*changes);
  else made->no_changes = changes.error().message;
  made->report = std::move(report), made->inputs = std::move(inputs);
  const std::lock_guard lock(mutex_);
  return kept_ = std::move(made);
}

ModelReports::Answer ModelReports::get(std::mutex& one_at_a_time) {
  auto inputs = shapes();
  if (auto* refusal = std::get_if<Refusal>(&inputs)) return std::move(*refusal);
  auto& tensors = std::get<std::vector<HostTensor>>(inputs);
  if (auto kept = kept_for(tensors, false)) return kept;
  const std::unique_lock one(one_at_a_time, std::try_to_lock);
  if (!one.owns_lock()) return somebody_else();
  auto report = predict_report(*session_, tensors);
  if (!report.ok()) return refusal_of(report.error());
  return keep(std::move(*report), std::move(tensors));
}

ModelReports::Answer ModelReports::measure(std::mutex& one_at_a_time, const Between& between) {
  auto inputs = shapes();
  if (auto* refusal = std::get_if<Refusal>(&inputs)) return std::move(*refusal);
  auto& tensors = std::get<std::vector<HostTensor>>(inputs);
  if (auto kept = kept_for(tensors, true)) return kept;
  const std::unique_lock one(one_at_a_time, std::try_to_lock);
  if (!one.owns_lock()) return somebody_else();
  if (auto refused = between()) return std::move(*refused);
  std::vector<HostTensor> filled = tensors;
  if (const Status made = fill_inputs(session_->inputs(), filled, 1); !made.ok()) return refusal_of(made.error());
  ReportOptions options;
  options.seconds = kSeconds, options.least = kLeast;
  std::optional<Refusal> ended;
  options.between = [&]() -> Status {
    ended = between();
    return ended ? Status(Error{Reason::bad_usage, ended->message}) : ok();
  };
  auto report = report_model(*session_, filled, options);
  forget_probes(*session_->backend());  // a server that measured once does not keep their memory
  if (ended) return std::move(*ended);
  if (!report.ok()) return refusal_of(report.error());
  return keep(std::move(*report), std::move(tensors));
}

std::string report_json(const KeptReport& kept, const std::vector<SessionInput>& inputs, const std::string& version) {
  using nlohmann::json;
  json all = model_report_json(kept.report);
  all["version"] = version;
  all["inputs"] = json::array();
  for (size_t i = 0; i < inputs.size() && i < kept.inputs.size(); ++i) {
    json shape = json::array();
    for (const int64_t size : kept.inputs[i].shape) shape.push_back(size);
    all["inputs"].push_back({{"name", inputs[i].name}, {"datatype", protocol_name(inputs[i].dtype)}, {"shape", shape}});
  }
  const PageTarget page = model_report_page(kept.report);
  all["basis"] = page.basis;
  all["farthest"] = json::array();
  for (const PageFinding& f : page.findings)
    all["farthest"].push_back({{"step", f.where}, {"sentence", f.sentence}, {"why", f.rule}, {"above", f.saved}});
  all["changes"] = json::array();
  for (const PageFinding& f : kept.changes ? kept.changes->findings : std::vector<PageFinding>())
    all["changes"].push_back(
        {{"code", f.code}, {"layer", f.where}, {"sentence", f.sentence}, {"rule", f.rule}, {"fix", f.fix}, {"saved", f.saved}});
  all["no_changes"] = kept.no_changes;
  return all.dump(-1, ' ', true, json::error_handler_t::replace);
}

std::string report_page(const KeptReport& kept, const std::string& version) {
  Page page{kept.report.model + ", version " + version, "sparkle serve", {model_report_page(kept.report)}};
  if (kept.changes) {
    page.targets[0].called = "layers";
    page.targets.push_back(*kept.changes);
  }
  return page_html(page);
}

}  // namespace sparkle::serve
