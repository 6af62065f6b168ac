#include "report/check_page.h"

#include <algorithm>
#include <cctype>

#include "check/rules.h"
#include "report/check_text.h"

namespace sparkle {
namespace {

std::string code(Reason reason) { return std::string(code_of(reason)); }

std::string sentence(Reason reason) {
  std::string text(sentence_of(reason));
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z' && !text.starts_with("fp32"))
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text + ".";
}

// The signs that a page has and a terminal may not have.
std::string typeset(std::string text) {
  for (size_t at = 0; (at = text.find(" us", at)) != std::string::npos; at += 3)
    if (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9' &&
        (at + 3 == text.size() || !std::isalpha(static_cast<unsigned char>(text[at + 3]))))
      text.replace(at, 3, " \u00b5s");
  const auto digit = [&](size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  for (size_t at = 0; (at = text.find(" x ", at)) != std::string::npos; at += 3)
    if (at > 0 && digit(at - 1) && digit(at + 3)) text.replace(at, 3, " \u00d7 ");
  return text;
}

std::vector<PageFinding> findings(const Verdict& v) {
  std::vector<PageFinding> list;
  for (const FindingGroup& g : v.groups) {
    const Finding& first = v.findings[static_cast<size_t>(g.findings.front())];
    PageFinding f;
    f.code = code(g.code), f.sentence = sentence(g.code);
    f.where = first.row < 0            ? "the whole model"
              : g.findings.size() == 1 ? "'" + v.rows[static_cast<size_t>(first.row)].name + "'"
                                       : std::to_string(g.findings.size()) + " layers, first of all '" +
                                             v.rows[static_cast<size_t>(first.row)].name + "'";
    f.rule = typeset(first.rule), f.fix = typeset(first.fix), f.mends = first.by_fix;
    f.share = v.seconds > 0 ? g.saved_seconds / v.seconds : 0;
    if (f.share >= 0.001)
      f.saved = typeset((f.mends ? "saves " : "would save ") + in_time(g.saved_seconds) + ", " + in_percent(f.share));
    list.push_back(std::move(f));
  }
  return list;
}

PageTable precisions(const Verdict& v) {
  PageTable table;
  table.heads = {"precision", "passes a second", "a pass", "memory", "expected error", "on matrix units", ""};
  double best = 0;
  for (const PrecisionRow& p : v.precisions) best = std::max(best, p.seconds > 0 ? 1 / p.seconds : 0);
  for (const PrecisionRow& p : v.precisions) {
    const bool any = p.seconds > 0;
    char error[32];
    std::snprintf(error, sizeof error, "%.1g", p.error);
    table.rows.push_back({p.name, any ? in_digits(1 / p.seconds, p.seconds > 0.01 ? 1 : 0) : "-",
                          any ? typeset(in_time(p.seconds)) : "-", any ? in_bytes(p.bytes) : "-", any ? error : "-",
                          any ? in_percent(p.on_matrix) : "-", p.note});
    table.bars.push_back(any ? 1 / p.seconds / best : 0);
  }
  table.note =
      "The error is the relative root mean square that rounding alone is expected to leave at the output; what inputs do to it "
      "is not in it.";
  return table;
}

PageUnit unit_of(const CheckRow& row) {
  const bool computes = row.kind == "conv" || row.kind == "conv_transpose" || row.kind == "matmul" || row.kind == "attention" ||
                        row.kind == "inverted";
  if (!computes) return PageUnit::none;
  return row.unit_kind == UnitKind::matrix ? PageUnit::matrix : PageUnit::vector;
}

std::vector<PageRow> rows(const Verdict& v) {
  const bool measured = v.measured_seconds > 0;
  std::vector<PageRow> list;
  for (const CheckRow& row : v.rows) {
    PageRow r;
    r.name = row.name, r.what = row.what, r.type = row.types, r.unit = row.unit, r.kernel = row.kernel, r.bound = row.bound;
    r.on = unit_of(row), r.seconds = row.seconds, r.other_seconds = row.then_seconds;
    r.flops = row.flops, r.bytes = row.bytes;
    if (measured) r.other_seconds = row.measured_seconds;
    for (const int f : row.findings) r.tags.push_back(code(v.findings[static_cast<size_t>(f)].code));
    list.push_back(std::move(r));
  }
  return list;
}

}  // namespace

PageTarget check_page(const Verdict& v, const std::string& called) {
  PageTarget t;
  t.called = called, t.device = v.device.name, t.basis = basis_of(v), t.sure = v.calibrated;
  const bool faster = v.speedup() >= 1.02;
  t.headline = faster             ? in_digits(v.speedup(), v.speedup() < 10 ? 1 : 0) + " times as fast"
               : v.groups.empty() ? "On the fast path"
                                  : "As fast as it gets in one pass";
  t.headline_note =
      faster ? typeset("once all is fixed that can be fixed in the model: " + in_time(v.seconds) + " become " +
                       in_time(v.then_seconds) + ".")
      : v.groups.empty()
          ? "Nothing was found that keeps it off the fast path of this device."
          : "Nothing in the model itself costs a pass much; what was found is a matter of batches or of other models.";
  const bool matrix = std::any_of(v.device.units.begin(), v.device.units.end(),
                                  [](const MathUnit& unit) { return unit.kind == UnitKind::matrix; });
  t.tiles.push_back({"A pass takes", typeset(in_time(v.seconds)), typeset("fixed: " + in_time(v.then_seconds)),
                     v.seconds > 0 ? v.then_seconds / v.seconds : -1, 1});
  t.tiles.push_back({"On matrix units", matrix ? in_percent(v.on_matrix) : "none here",
                     matrix ? "of the arithmetic; fixed: " + in_percent(v.then_matrix) : "the device has vectors only",
                     matrix ? v.on_matrix : -1, matrix ? v.then_matrix : -1});
  t.tiles.push_back({"Arithmetic", in_digits(v.flops * 1e-9, v.flops < 1e10 ? 2 : 0) + " Gflop",
                     v.seconds > 0 ? in_digits(v.flops / v.seconds * 1e-12, 2) + " Tflop/s over the pass" : ""});
  t.tiles.push_back({"Memory", in_bytes(v.packed_bytes + v.arena_bytes),
                     in_bytes(v.packed_bytes) + " of weights" +
                         (v.packed_bytes != v.weight_bytes ? " (" + in_bytes(v.weight_bytes) + " in the file), " : ", ") +
                         in_bytes(v.arena_bytes) + " of tensors"});
  t.findings = findings(v);
  for (const MathUnit& unit : v.device.units)
    if (unit.total_flops_per_second > 0 && (is_float(unit.input) || unit.accumulator == DType::i32))
      t.roofs.push_back({unit.name, unit.total_flops_per_second, unit.kind == UnitKind::matrix});
  if (!v.device.memory.empty()) {
    const MemoryLevel& level = v.device.memory.back();
    t.memory_name = level.name;
    t.bytes_per_second = level.total_bytes_per_second > 0 ? level.total_bytes_per_second : level.bytes_per_second;
  }
  t.variants_title = "The same model in each precision";
  t.variants = precisions(v);
  t.rows = rows(v);
  t.seconds_name = v.measured_seconds > 0 ? (v.calibrated ? "predicted" : "bound") : "now";
  t.other_name = v.measured_seconds > 0 ? "measured" : "once fixed", t.other_is_goal = v.measured_seconds <= 0;
  return t;
}

}  // namespace sparkle
