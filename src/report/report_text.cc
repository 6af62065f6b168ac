#include "report/report_text.h"

#include "base/printable.h"
#include "base/text/format.h"
#include "check/rules.h"

namespace sparkle {
namespace {

std::string share(const ModelReport& r) {
  if (r.executed_flops <= 0) return "no sums of products";
  if (!r.has_matrix_units()) return "0 %: the device has vectors only";
  return in_percent(r.on_matrix) + " of the executed operations";
}

}  // namespace

std::string model_report_text(const ModelReport& r) {
  double nominal = 0;
  for (const ReportStep& step : r.steps) nominal += step.products ? step.nominal_flops : 0;
  std::string text = "'" + printable(r.model) + "' on " + r.device.name + "\n";
  text += "  a pass takes       " + in_time(r.seconds) +
          (r.measured ? format(", the median of %d; predicted ", r.runs) + in_time(r.predicted_seconds) +
                            "; the steps add up to " + in_time(r.steps_seconds())
                      : ", as the plan predicts") +
          "\n";
  text +=
      format("  rate               %.1f GFLOP/s by the direct method's count\n", nominal / std::max(r.seconds, 1e-12) * 1e-9);
  text += "  roofline           " + in_percent(r.roof_seconds() / std::max(r.seconds, 1e-12)) + " of what " +
          (r.probed ? "the roofs probed beside" : "the roofs of the description") +
          " allow, step by step: " + in_time(r.roof_seconds()) + "\n";
  text += "  on matrix units    " + share(r) + "\n";
  text += "  memory             " + in_bytes(static_cast<double>(r.peak_bytes)) + " at peak, " +
          in_bytes(static_cast<double>(r.weight_bytes)) + " of weights, " + in_bytes(static_cast<double>(r.arena_bytes)) +
          " of tensors between layers\n";
  text += "  outputs            " + r.check + "\n\n";
  text += format("%-28s %-34s %-11s %-13s %9s %9s %8s %8s %7s %6s %6s %-8s %9s %s\n", "step", "what", "algorithm", "unit", "ms",
                 "predicted", "GFLOP/s", "executed", "GB/s", "% roof", "% time", "bound", "in use", "reason");
  for (const ReportStep& s : r.steps)
    text += format("%-28.28s %-34.34s %-11.11s %-13.13s %9.4f %9.4f %8.1f %8.1f %7.1f %6.1f %6.1f %-8s %9s %s\n",
                   printable(s.name).c_str(), s.what.c_str(), s.algorithm.c_str(), s.unit.c_str(), s.seconds * 1e3,
                   s.predicted_seconds * 1e3, s.gflops(), s.executed_gflops(), s.gbytes_per_s(), 100 * s.share_of_roof(),
                   100 * s.seconds / std::max(r.steps_seconds(), 1e-12), s.bound.c_str(),
                   in_bytes(static_cast<double>(s.live_bytes)).c_str(), s.reason.c_str());
  return text;
}

}  // namespace sparkle
