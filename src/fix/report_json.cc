#include "fix/report_json.h"

namespace sparkle::fix {
namespace {

nlohmann::json json_of(const Proof& proof, const std::string& by) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Difference& d : proof.outputs) {
    nlohmann::json row{{"output", d.name},
                       {"samples", d.samples},
                       {"same_bits", d.same_bits},
                       {"largest_error", d.largest},
                       {"cosine", d.cosine}};
    if (d.classes) row["same_first_class"] = d.same_top1;
    rows.push_back(std::move(row));
  }
  return {{"by", by}, {"outputs", rows}};
}

}  // namespace

nlohmann::json report_json(const FixReport& report) {
  nlohmann::json json{{"random_samples", report.random}};
  json["rewrites"] = nlohmann::json::object();
  for (const auto& part : report.rewrites) json["rewrites"][part.rule] = part.lines;
  json["notes"] = report.notes;
  json["ranges"] = report.ranges;
  if (report.predicted) {
    const Prediction& p = *report.predicted;
    nlohmann::json layers = nlohmann::json::array();
    for (const auto& layer : p.layers)
      layers.push_back({{"layer", layer.name},
                        {"change", layer.change},
                        {"predicted_before_ms", layer.before_seconds * 1e3},
                        {"predicted_after_ms", layer.after_seconds * 1e3}});
    json["predicted"] = {{"device", p.device},
                         {"basis", p.basis},
                         {"precision", std::string(name_of(p.precision))},
                         {"before_ms", p.before_seconds * 1e3},
                         {"after_ms", p.after_seconds * 1e3},
                         {"layers", std::move(layers)}};
  }
  json["kept_wide"] = nlohmann::json::array();
  for (const auto& w : report.wide) json["kept_wide"].push_back({{"layer", w.layer}, {"why", w.why}, {"share", w.share}});
  if (report.integer_share > 0) json["integer_share"] = report.integer_share;
  if (report.exact) json["rewrites_proof"] = json_of(*report.exact, report.exact_by);
  if (report.whole) json["proof"] = json_of(*report.whole, report.whole_by);
  json["error_enters"] = nlohmann::json::array();
  for (const auto& e : report.entrances)
    json["error_enters"].push_back({{"layer", e.layer}, {"before", e.before}, {"behind", e.error}});
  return json;
}

}  // namespace sparkle::fix
