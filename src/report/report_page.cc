// A measured run as the page of src/report/page.
#include <algorithm>
#include <numeric>

#include "base/text/format.h"
#include "check/rules.h"
#include "report/report_text.h"

namespace sparkle {
namespace {

// What the longest steps take above what their roofs allow.
std::vector<PageFinding> farthest(const ModelReport& r) {
  std::vector<size_t> order(r.steps.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto above = [&](size_t i) { return r.steps[i].seconds - r.steps[i].roof_seconds; };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return above(a) > above(b); });
  std::vector<PageFinding> list;
  for (const size_t i : order) {
    const ReportStep& s = r.steps[i];
    if (list.size() == 5 || above(i) < 0.01 * r.seconds) break;
    PageFinding f;
    f.code = s.bound, f.where = "'" + s.name + "' " + s.what, f.mends = false;
    f.sentence = in_time(s.seconds) + ", " + in_percent(s.share_of_roof()) + " of what its roof allows.";
    f.rule = s.algorithm + " by " + (s.unit.empty() ? s.variant : s.unit + " (" + s.variant + ")") +
             format(": %.1f GFLOP/s executed, %.1f GB/s; ", s.executed_gflops(), s.gbytes_per_s()) + s.reason;
    f.share = above(i) / std::max(r.seconds, 1e-12);
    f.saved = in_time(above(i)) + " above its roof, " + in_percent(f.share);
    list.push_back(std::move(f));
  }
  return list;
}

std::vector<PageTile> tiles(const ModelReport& r) {
  const double seconds = std::max(r.seconds, 1e-12), roof = r.roof_seconds() / seconds;
  double nominal = 0;
  for (const ReportStep& s : r.steps) nominal += s.products ? s.nominal_flops : 0;
  std::vector<PageTile> list;
  list.push_back({"Of the roofline", in_percent(roof), in_time(r.roof_seconds()) + " by the roofs of all steps",
                  std::clamp(roof, 0.0, 1.0), 1});
  list.push_back({"On matrix units", r.has_matrix_units() ? in_percent(r.on_matrix) : "none here",
                  r.has_matrix_units() ? "of the operations that the schedules execute" : "the device has vectors only",
                  r.has_matrix_units() ? r.on_matrix : -1});
  list.push_back({"Arithmetic", in_digits(nominal * 1e-9, nominal < 1e10 ? 2 : 0) + " Gflop",
                  in_digits(nominal / seconds * 1e-9, 1) + " Gflop/s by the direct method's count"});
  list.push_back({"Memory", in_bytes(static_cast<double>(r.peak_bytes)),
                  in_bytes(static_cast<double>(r.weight_bytes)) + " of weights, " +
                      in_bytes(static_cast<double>(r.arena_bytes)) + " of tensors between layers"});
  return list;
}

}  // namespace

PageTarget model_report_page(const ModelReport& r) {
  PageTarget t;
  t.called = t.device = r.device.name;
  t.basis = !r.measured ? "predicted by the plan, with the rates of the device's description; nothing was run"
            : r.probed  ? "measured, beside roofs probed between the runs"
                        : "measured; roofs of the description";
  t.sure = r.probed;
  t.headline = in_time(r.seconds) + " a pass";
  const std::string passes = format("%.1f passes a second", 1 / std::max(r.seconds, 1e-12));
  t.headline_note =
      !r.measured
          ? "Predicted; " + passes + " one behind the other."
          : format("The median of %d runs; ", r.runs) + passes + ", " + in_time(r.predicted_seconds) +
                " predicted. Outputs: " + r.check + "." +
                (r.above_roof.empty() ? ""
                                      : " A rate is above its roof, so something disturbed the measurement: " + r.above_roof);
  t.tiles = tiles(r);
  t.findings_title = "Farthest from the roof", t.clean = "No step takes a hundredth of the pass above its roof.";
  t.findings = farthest(r);
  for (const MathUnit& unit : r.device.units) {
    const bool used = std::any_of(r.steps.begin(), r.steps.end(), [&](const ReportStep& s) { return s.unit == unit.name; });
    if (used && unit.total_flops_per_second > 0)
      t.roofs.push_back({unit.name, unit.total_flops_per_second, unit.kind == UnitKind::matrix});
  }
  for (const MemoryLevel& level : r.device.memory) {
    const double rate = level.total_bytes_per_second > 0 ? level.total_bytes_per_second : level.bytes_per_second;
    if (&level == &r.device.memory.back()) t.memory_name = level.name, t.bytes_per_second = rate;
    else t.inner_levels.emplace_back(level.name, rate);
  }
  const char* predicted = r.device.calibrated ? "predicted" : "predicted, not calibrated";
  if (r.measured) t.seconds_name = "measured", t.other_name = predicted;
  else t.seconds_name = predicted;
  t.other_is_goal = false;
  t.columns = {{"algorithm"},    {"GFLOP/s", true}, {"executed", true}, {"GB/s", true},
               {"% roof", true}, {"in use", true},  {"reason"}};
  double at = 0;
  for (const ReportStep& s : r.steps) {
    PageRow row;
    row.name = s.name, row.what = s.what, row.type = s.dtype, row.unit = s.unit, row.kernel = s.variant, row.bound = s.bound;
    row.on = !s.products ? PageUnit::none : s.unit_kind == UnitKind::matrix ? PageUnit::matrix : PageUnit::vector;
    row.seconds = s.seconds, row.other_seconds = s.predicted_seconds;
    row.flops = s.useful_flops(), row.bytes = s.bytes;
    const auto number = [&](double value, const char* pattern) { return PageCell{format(pattern, value), value}; };
    row.cells = {{s.algorithm + " / " + s.variant},
                 number(s.gflops(), "%.1f"),
                 number(s.executed_gflops(), "%.1f"),
                 number(s.gbytes_per_s(), "%.1f"),
                 number(100 * s.share_of_roof(), "%.1f"),
                 {in_bytes(static_cast<double>(s.live_bytes)), static_cast<double>(s.live_bytes)},
                 {s.reason}};
    t.rows.push_back(std::move(row));
    t.memory.push_back({at, at + s.seconds, static_cast<double>(s.live_bytes), s.name});
    at += s.seconds;
  }
  t.memory_bytes = static_cast<double>(r.arena_bytes);
  return t;
}

std::string model_report_html(const ModelReport& r) { return page_html({r.model, "sparkle report", {model_report_page(r)}}); }

}  // namespace sparkle
