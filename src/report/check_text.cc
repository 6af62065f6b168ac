#include "report/check_text.h"

#include <algorithm>
#include <numeric>

#include "base/text/format.h"
#include "base/median.h"
#include "base/printable.h"
#include "check/rules.h"

namespace sparkle {
namespace {

std::string code(Reason reason) { return std::string(code_of(reason)); }

std::string layers(size_t n) { return std::to_string(n) + (n == 1 ? " layer" : " layers"); }

std::string summary(const Verdict& v, const std::string& called) {
  std::string text = "'" + printable(v.model) + "' on " + v.device.name + " (" + called + ")\n  " + basis_of(v) + "\n";
  const bool matrix = std::any_of(v.device.units.begin(), v.device.units.end(),
                                  [](const MathUnit& unit) { return unit.kind == UnitKind::matrix; });
  text += "  arithmetic         " + in_digits(v.flops * 1e-9, 3) + " Gflop, ";
  text += matrix ? in_percent(v.on_matrix) + " of it on matrix units, " + in_percent(v.then_matrix) + " once all is fixed\n"
                 : "on vectors: the device has no matrix units\n";
  text += "  a pass takes       " + in_time(v.seconds) + ", " + in_time(v.then_seconds) +
          " once all is fixed: " + in_digits(v.speedup(), v.speedup() < 10 ? 2 : 1) + " times as fast\n";
  text += "  memory             " + in_bytes(v.weight_bytes) + " of weights" +
          (v.packed_bytes != v.weight_bytes ? ", " + in_bytes(v.packed_bytes) + " as kernels pack them, " : ", ") +
          in_bytes(v.arena_bytes) + " of tensors\n";
  return text;
}

std::string most_important(const Verdict& v) {
  if (v.groups.empty()) return "  nothing found that keeps it off the fast path\n";
  std::string text = "what matters most\n";
  constexpr size_t kMost = 5;
  for (size_t i = 0; i < v.groups.size() && i < kMost; ++i) {
    const FindingGroup& g = v.groups[i];
    const Finding& first = v.findings[static_cast<size_t>(g.findings.front())];
    text += format("  %zu. %-20s ", i + 1, code(g.code).c_str());
    text += first.row < 0 ? std::string("the whole model") : layers(g.findings.size());
    if (g.saved_seconds > 0) text += ", " + in_time(g.saved_seconds) + " (" + in_percent(g.saved_seconds / v.seconds) + ")";
    text += ": " + std::string(sentence_of(g.code)) + "\n";
    if (first.row >= 0) text += "       '" + printable(v.rows[static_cast<size_t>(first.row)].name) + "': ";
    else text += "       ";
    text += printable(first.rule) + "\n";
    if (!first.fix.empty()) text += (first.by_fix ? "       fix: " : "       advice: ") + printable(first.fix) + "\n";
  }
  if (v.groups.size() > kMost) {
    text += "  and";
    for (size_t i = kMost; i < v.groups.size(); ++i)
      text += (i > kMost ? ", " : " ") + code(v.groups[i].code) + " (" + std::to_string(v.groups[i].findings.size()) + ")";
    text += "\n";
  }
  return text;
}

std::string table(const Verdict& v) {
  std::string text =
      format("%-16s %12s %12s %12s %10s %10s\n", "precision", "passes/s", "a pass", "memory", "error", "on matrix");
  for (const PrecisionRow& p : v.precisions) {
    if (p.seconds > 0)
      text += format("%-16s %12.5g %12s %12s %10.1g %10s", p.name.c_str(), 1 / p.seconds, in_time(p.seconds).c_str(),
                     in_bytes(p.bytes).c_str(), p.error, in_percent(p.on_matrix).c_str());
    else text += format("%-16s %12s %12s %12s %10s %10s", p.name.c_str(), "-", "-", "-", "-", "-");
    text += p.note.empty() ? "\n" : "  " + p.note + "\n";
  }
  return text +
         "  error: expected relative root mean square at the output, by rounding alone; what inputs do to it is not in it\n";
}

std::string rows(const Verdict& v, bool all) {
  std::vector<size_t> order(v.rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const bool measured = v.measured_seconds > 0;
  if (!all && !measured) {
    std::erase_if(order, [&](size_t i) { return v.rows[i].findings.empty(); });
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return v.rows[a].seconds > v.rows[b].seconds; });
  }
  if (order.empty()) return "";
  std::string text = format("%-26s %-38s %-5s %-14s %10s %10s", "layer", "what", "type", "unit",
                            v.calibrated ? "predicted" : "bound", "fixed");
  if (measured) text += format(" %10s %8s", "measured", "ratio");
  text += format(" %-8s %s\n", "binds", "findings");
  constexpr size_t kMost = 40;
  for (size_t i = 0; i < order.size() && (all || i < kMost); ++i) {
    const CheckRow& row = v.rows[order[i]];
    text += format("%-26.26s %-38.38s %-5.5s %-14.14s %10s %10s", printable(row.name).c_str(), row.what.c_str(),
                   row.types.c_str(), row.unit.c_str(), in_time(row.seconds).c_str(), in_time(row.then_seconds).c_str());
    if (measured)
      text += format(" %10s %8.2f", in_time(row.measured_seconds).c_str(),
                     row.seconds > 0 ? row.measured_seconds / row.seconds : 0);
    text += format(" %-8s", row.bound.c_str());
    for (const int f : row.findings) text += " " + code(v.findings[static_cast<size_t>(f)].code);
    text += "\n";
  }
  if (!all && order.size() > kMost)
    text += "  and " + layers(order.size() - kMost) + " more that take less; --all prints every layer\n";
  return text;
}

}  // namespace

std::string basis_of(const Verdict& v) {
  const std::string lacking = v.kernels ? "" : "; what has no kernel takes what the device's roofs allow";
  if (!v.calibrated)
    return "bound, not calibrated: kernels planned with the rates of a data sheet, measured by nobody" + lacking;
  return "predicted by rates measured on it" + lacking;
}

std::string check_text(const Verdict& v, const std::string& called, const CheckTextOptions& options) {
  std::string text = summary(v, called) + most_important(v) + "\n" + table(v);
  const std::string layer_rows = rows(v, options.all);
  if (!layer_rows.empty()) text += "\n" + layer_rows;
  if (v.measured_seconds > 0) {
    double sum = 0;
    std::vector<double> ratios;
    for (const CheckRow& row : v.rows) {
      sum += row.measured_seconds;
      if (row.seconds > 0 && row.measured_seconds > 0) ratios.push_back(row.measured_seconds / row.seconds);
    }
    text += "  measured " + in_time(v.measured_seconds) + " as a whole; the layers add up to " + in_time(sum) + " (" +
            in_percent(sum / v.measured_seconds) + "); the median layer takes " + in_digits(median(std::move(ratios)), 2) +
            " of its prediction\n";
  }
  return text;
}

}  // namespace sparkle
