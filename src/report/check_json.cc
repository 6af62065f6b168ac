// What `check` found as one JSON object per target.
#include <nlohmann/json.hpp>

#include "report/check_text.h"

namespace sparkle {

using nlohmann::json;

json check_json(const Verdict& v, const std::string& called) {
  json findings = json::array(), layers = json::array(), precisions = json::array(), groups = json::array();
  for (const Finding& f : v.findings)
    findings.push_back({{"code", code_of(f.code)},
                        {"layer", f.row < 0 ? json(nullptr) : json(v.rows[static_cast<size_t>(f.row)].name)},
                        {"rule", f.rule},
                        {"fix", f.fix},
                        {"in_model", f.in_model},
                        {"by_fix", f.by_fix},
                        {"now_ms", f.now_seconds * 1e3},
                        {"fixed_ms", f.then_seconds * 1e3}});
  for (const CheckRow& row : v.rows) {
    json codes = json::array();
    for (const int f : row.findings) codes.push_back(code_of(v.findings[static_cast<size_t>(f)].code));
    json layer{{"name", row.name},
               {"nodes", row.nodes},
               {"kind", row.kind},
               {"what", row.what},
               {"dtype", row.types},
               {"unit", row.unit},
               {"unit_kind", name_of(row.unit_kind)},
               {"algorithm", row.algorithm},
               {"kernel", row.kernel},
               {"flops", row.flops},
               {"bytes", row.bytes},
               {"predicted_ms", row.seconds * 1e3},
               {"fixed_ms", row.then_seconds * 1e3},
               {"bound", row.bound},
               {"findings", codes}};
    if (v.measured_seconds > 0) layer["measured_ms"] = row.measured_seconds * 1e3;
    layers.push_back(std::move(layer));
  }
  for (const FindingGroup& g : v.groups)
    groups.push_back({{"code", code_of(g.code)},
                      {"sentence", sentence_of(g.code)},
                      {"count", g.findings.size()},
                      {"saved_ms", g.saved_seconds * 1e3}});
  for (const PrecisionRow& p : v.precisions) {
    json row{{"name", p.name}, {"precision", name_of(p.precision)}, {"note", p.note}};
    if (p.seconds > 0) {
      row["passes_per_second"] = 1 / p.seconds, row["predicted_ms"] = p.seconds * 1e3, row["memory_bytes"] = p.bytes;
      row["expected_error"] = p.error, row["matrix_share"] = p.on_matrix;
    }
    precisions.push_back(std::move(row));
  }
  json result{{"target", called},
              {"device", v.device.name},
              {"calibrated", v.calibrated},
              {"kernels", v.kernels},
              {"basis", basis_of(v)},
              {"predicted_ms", v.seconds * 1e3},
              {"fixed_ms", v.then_seconds * 1e3},
              {"speedup", v.speedup()},
              {"flops", v.flops},
              {"matrix_share", v.on_matrix},
              {"fixed_matrix_share", v.then_matrix},
              {"weight_bytes", v.weight_bytes},
              {"packed_weight_bytes", v.packed_bytes},
              {"arena_bytes", v.arena_bytes},
              {"groups", groups},
              {"findings", findings},
              {"precisions", precisions},
              {"layers", layers}};
  if (v.measured_seconds > 0) result["measured_ms"] = v.measured_seconds * 1e3;
  return result;
}

}  // namespace sparkle
