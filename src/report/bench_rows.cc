#include "report/bench_rows.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "device/device_json.h"
#include "families/family.h"

namespace sparkle {

BenchRow row_of(const NamedProblem& layer, const LayerMeasurement& m) {
  BenchRow row;
  row.name = layer.name.empty() ? short_name(m.problem) : layer.name;
  row.old_ms = layer.old_ms, row.old_what = layer.old_what;
  row.what = short_name(m.problem);
  row.problem = to_text(m.problem);
  row.algorithm = m.choice.algorithm;
  for (const Schedule& s : m.choice.schedules) row.schedule += (row.schedule.empty() ? "" : " ; ") + to_text(s);
  row.reason = m.choice.candidates.empty()
                   ? ""
                   : "lowest predicted cost of " + std::to_string(m.choice.candidates.size()) + " candidates";
  row.median_ms = m.median_seconds * 1e3, row.min_ms = m.min_seconds * 1e3, row.p95_ms = m.p95_seconds * 1e3;
  row.predicted_ms = m.choice.cost.seconds * 1e3;
  row.nominal_flops = m.problem.nominal_flops(), row.executed_flops = m.executed_flops;
  row.dtype = m.problem.dtype;
  row.bytes = m.compulsory_bytes;
  row.peak_flops_per_second = m.peak_flops_per_second;
  row.verdict = m.verdict;
  row.roof_ms = m.roof_seconds * 1e3, row.bound = m.roof_bound;
  row.workspace_bytes = m.workspace_bytes, row.max_error = m.largest_error, row.checked = m.checked;
  row.host_transfers = m.host_transfers, row.clock_of_device = m.clock_of_device, row.repeats = m.repeats;
  for (const Footprint& f : m.choice.footprints) {
    row.predicted_bytes.resize(std::max(row.predicted_bytes.size(), f.bytes.size()));
    for (size_t i = 0; i < f.bytes.size(); ++i) row.predicted_bytes[i] += f.bytes[i];
  }
  return row;
}

BenchRow row_of(const NamedProblem& layer, const HeadToHead& c) {
  BenchRow row = row_of(layer, c.ours);
  row.peers = c.peers;
  row.best_speedup = c.best_speedup;
  return row;
}

namespace {
std::string line(const char* pattern, auto... values) {
  char text[400];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

nlohmann::json peers_json(const BenchRow& row) {
  nlohmann::json json = nlohmann::json::object();
  for (const PeerMeasurement& p : row.peers) {
    if (!p.refused.empty()) {
      json[p.name] = {{"version", p.version}, {"refused", p.refused}};
      continue;
    }
    const double peak = 100 * p.share_of_peak;
    json[p.name] = {{"version", p.version},
                    {"median_ms", p.median_seconds * 1e3},
                    {"min_ms", p.min_seconds * 1e3},
                    {"p95_ms", p.p95_seconds * 1e3},
                    {"fixed_ms_taken_off", p.fixed_seconds * 1e3},
                    {"percent_of_peak", peak},
                    {"speedup", p.speedup},
                    {"max_error", p.largest_error},
                    {"checked", to_text(p.checked)},
                    {"chose", p.chose}};
  }
  return json;
}

// Geometric mean of what `of` gives for the rows that have it (above 0), and how many do.
template <class F>
std::pair<double, size_t> geometric_mean(const std::vector<BenchRow>& rows, F of) {
  double sum = 0;
  size_t count = 0;
  for (const BenchRow& row : rows)
    if (const double value = of(row); value > 0) sum += std::log(value), ++count;
  return {count ? std::exp(sum / static_cast<double>(count)) : 0, count};
}

double speedup_against(const BenchRow& row, const std::string& peer) {
  for (const PeerMeasurement& p : row.peers)
    if (p.name == peer) return p.speedup;
  return 0;
}
}  // namespace

std::string bench_table_heading() {
  return line("%-24s %-34s %-10s %9s %9s %8s %8s %7s %7s %7s %-8s %8s\n", "layer", "problem", "algorithm", "median ms",
              "min ms", "GFLOP/s", "executed", "% peak", "% roof", "GB/s", "bound", "error");
}

std::string bench_table_row(const BenchRow& r) {
  return line("%-24.24s %-34.34s %-10.10s %9.4f %9.4f %8.1f %8.1f %7.1f %7.1f %7.1f %-8s %8.1e\n", r.name.c_str(),
              r.what.c_str(), r.algorithm.c_str(), r.median_ms, r.min_ms, r.gflops(), r.executed_gflops(), r.percent_of_peak(),
              r.percent_of_roof(), r.gbytes_per_s(), r.bound.c_str(), r.max_error);
}

std::string bench_table_summary(const std::vector<BenchRow>& rows) {
  double total = 0, log_peak = 0, log_roof = 0;
  for (const BenchRow& r : rows) {
    total += r.median_ms;
    log_peak += std::log(std::max(r.percent_of_peak(), 1e-3));
    log_roof += std::log(std::max(r.percent_of_roof(), 1e-3));
  }
  const double n = std::max<double>(1, static_cast<double>(rows.size()));
  return line("%zu layers, sum of medians %.3f ms; geometric mean %.1f %% of the FMA peak, %.1f %% of the roof of each layer\n",
              rows.size(), total, std::exp(log_peak / n), std::exp(log_roof / n));
}

std::string checks_summary(const std::vector<Checked>& checks, uint64_t seed) {
  size_t exact = 0, within = 0, rows = 0, open = 0;
  double bound = 0;
  for (const Checked& c : checks) {
    ++(c.times == 0 ? open : !c.whole() ? rows : c.exact ? exact : within);
    if (c.times > 0 && !c.exact) bound = std::max(bound, c.bound);
  }
  std::string text = "outputs checked before what is timed and after it, on wiped memory and new operands:";
  const auto add = [&](size_t count, const std::string& how) {
    if (count > 0) text += (text.back() == ':' ? " " : ", ") + std::to_string(count) + " " + how;
  };
  add(exact, "whole and exact"), add(within, line("whole and within %.1e", bound));
  add(rows, "by rows drawn for it"), add(open, "not at all");
  return text + "; --seed " + std::to_string(seed) + " repeats it\n";
}

std::string checks_summary(const std::vector<BenchRow>& rows, uint64_t seed) {
  std::vector<Checked> checks;
  for (const BenchRow& row : rows) {
    checks.push_back(row.checked);
    for (const PeerMeasurement& p : row.peers)
      if (p.refused.empty()) checks.push_back(p.checked);
  }
  return checks_summary(checks, seed);
}

std::string old_figures(const std::vector<BenchRow>& rows) {
  std::string text;
  for (const BenchRow& r : rows)
    if (r.old_ms > 0)
      text += line("%s: %.4g ms; published before: %.4g ms, %s\n", r.name.c_str(), r.median_ms, r.old_ms, r.old_what.c_str());
  return text;
}

std::string head_to_head_heading(const std::vector<PeerMeasurement>& peers) {
  std::string text;
  for (const PeerMeasurement& p : peers) text += line("%-19s %s\n", p.name.c_str(), p.version.c_str());
  text += line("%-24s %-34s %-10s %9s %7s", "layer", "problem", "algorithm", "median ms", "% peak");
  for (const PeerMeasurement& p : peers) text += line(" %19s", p.name.c_str());
  return text + line(" %6s  (time of each over ours; its %% of the peak)\n", "best");
}

std::string head_to_head_row(const BenchRow& r) {
  std::string text = line("%-24.24s %-34.34s %-10.10s %9.4f %7.1f", r.name.c_str(), r.what.c_str(), r.algorithm.c_str(),
                          r.median_ms, r.percent_of_peak());
  for (const PeerMeasurement& p : r.peers)
    text += p.refused.empty() ? line(" %12.3f %6.1f", p.speedup, 100 * p.share_of_peak) : line(" %19s", "-");
  return text + line(" %6.3f\n", r.best_speedup);
}

std::string head_to_head_summary(const std::vector<BenchRow>& rows) {
  if (rows.empty()) return {};
  std::string text = "geometric means of the times over ours:";
  for (const PeerMeasurement& p : rows[0].peers) {
    const auto [mean, count] = geometric_mean(rows, [&](const BenchRow& r) { return speedup_against(r, p.name); });
    text += line(" %s %.3f (%zu layers),", p.name.c_str(), mean, count);
  }
  const auto [best, count] = geometric_mean(rows, [](const BenchRow& r) { return r.best_speedup; });
  text += line(" the best of each layer %.3f (%zu)\nworst:", best, count);
  std::vector<const BenchRow*> order;
  for (const BenchRow& r : rows)
    if (r.best_speedup > 0) order.push_back(&r);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->best_speedup < b->best_speedup; });
  for (size_t i = 0; i < std::min<size_t>(5, order.size()); ++i)
    text += line("%s %s %.3f", i ? "," : "", order[i]->name.c_str(), order[i]->best_speedup);
  return text + "\n";
}

nlohmann::json head_to_head_means(const std::vector<BenchRow>& rows) {
  nlohmann::json json = nlohmann::json::object();
  if (rows.empty()) return json;
  for (const PeerMeasurement& p : rows[0].peers)
    json[p.name] = geometric_mean(rows, [&](const BenchRow& r) { return speedup_against(r, p.name); }).first;
  json["best_of_each_layer"] = geometric_mean(rows, [](const BenchRow& r) { return r.best_speedup; }).first;
  return json;
}

std::string steps_heading(const std::string& title, const Device& device, bool ablation) {
  std::string text = title + "\n" +
                     line("%-15s %-15s %9s %8s %8s %7s %7s %7s", ablation ? "without" : "step", "algorithm", "median ms",
                          "GFLOP/s", "executed", "% peak", "% roof", ablation ? "brings" : "factor");
  for (const MemoryLevel& level : device.memory) text += line(" %8s", ("MB " + level.name).c_str());
  return text + line(" %7s %6s %8s  what\n", "GB/s", "copies", "error");
}

namespace {
// The traffic that the level nearest to the registers but one sees: what caches bring is seen beyond the L1.
double beyond_l1(const BenchRow& r) { return r.predicted_bytes.size() > 1 ? r.predicted_bytes[1] : 0; }
}  // namespace

std::string step_row(const StepRow& l, const Device& device) {
  const BenchRow& r = l.row;
  if (!l.absent.empty()) return line("%-15.15s - %s\n", r.name.c_str(), l.absent.c_str());
  std::string text = line("%-15.15s %-15.15s %9.4f %8.1f %8.1f %7.1f %7.1f ", r.name.c_str(), r.algorithm.c_str(), r.median_ms,
                          r.gflops(), r.executed_gflops(), r.percent_of_peak(), r.percent_of_roof());
  text += l.factor > 0 ? line("%7.2f", l.factor) : line("%7s", "");
  for (size_t i = 0; i < device.memory.size(); ++i)
    text += line(" %8.2f", i < r.predicted_bytes.size() ? r.predicted_bytes[i] * 1e-6 : 0);
  const double rate = r.median_ms > 0 ? beyond_l1(r) / r.median_ms * 1e-6 : 0;
  return text +
         line(" %7.1f %6llu %8.1e  %s\n", rate, static_cast<unsigned long long>(r.host_transfers), r.max_error, l.what.c_str());
}

nlohmann::json steps_json(const Device& device, const std::vector<StepRow>& steps, bool ablation) {
  std::vector<BenchRow> rows;
  for (const StepRow& l : steps) rows.push_back(l.row);
  nlohmann::json json = bench_json(device, rows);
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepRow& l = steps[i];
    nlohmann::json& j = json["rows"][i];
    if (!l.absent.empty()) j = {{"problem", l.row.problem}, {"absent", l.absent}};
    j[ablation ? "without" : "level"] = l.row.name;
    j["what"] = l.what;
    if (!l.absent.empty()) continue;
    j["threads"] = l.threads;
    if (l.factor > 0) j["factor"] = l.factor;
    j["predicted_gbytes_per_s"] = l.row.median_ms > 0 ? beyond_l1(l.row) / l.row.median_ms * 1e-6 : 0;
  }
  return json;
}

nlohmann::json traffic_json(const Device& device, const std::vector<double>& bytes) {
  nlohmann::json json = nlohmann::json::object();
  for (size_t m = 0; m < device.memory.size() && m < bytes.size(); ++m) json[device.memory[m].name] = bytes[m];
  return json;
}

std::string traffic_summary(const Device& device, const std::vector<std::vector<double>>& bytes) {
  std::string text;
  for (size_t m = 0; m < device.memory.size(); ++m) {
    double sum = 0;
    for (const std::vector<double>& row : bytes) sum += m < row.size() ? row[m] : 0;
    if (sum > 0) text += line("%s %s %.1f MB", text.empty() ? "" : ",", device.memory[m].name.c_str(), sum * 1e-6);
  }
  return text.empty() ? "" : "traffic predicted, not judged:" + text + "\n";
}

std::string traffic_summary(const Device& device, const std::vector<BenchRow>& rows) {
  std::vector<std::vector<double>> bytes;
  for (const BenchRow& row : rows) bytes.push_back(row.predicted_bytes);
  return traffic_summary(device, bytes);
}

nlohmann::json bench_json(const Device& device, const std::vector<BenchRow>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const BenchRow& r : rows) {
    list.push_back({{"name", r.name},
                    {"problem", r.problem},
                    {"dtype", r.dtype},
                    {"algorithm", r.algorithm},
                    {"schedule", r.schedule},
                    {"reason", r.reason},
                    {"median_ms", r.median_ms},
                    {"min_ms", r.min_ms},
                    {"p95_ms", r.p95_ms},
                    {"predicted_ms", r.predicted_ms},
                    {"gflops", r.gflops()},
                    {"executed_gflops", r.executed_gflops()},
                    {"gbytes_per_s", r.gbytes_per_s()},
                    {"percent_of_peak", r.percent_of_peak()},
                    {"percent_of_roof", r.percent_of_roof()},
                    {"bound", r.bound},
                    {"predicted_bytes", traffic_json(device, r.predicted_bytes)},
                    {"roofs", roof_json(r.verdict)},
                    {"workspace_bytes", r.workspace_bytes},
                    {"host_transfers", r.host_transfers},
                    {"clock", r.clock_of_device ? "device" : "host"},
                    {"repeats", r.repeats},
                    {"max_error", r.max_error},
                    {"checked", to_text(r.checked)},
                    {"peers", peers_json(r)}});
    if (r.old_ms > 0) list.back()["old_ms"] = r.old_ms, list.back()["old_what"] = r.old_what;
    if (r.best_speedup > 0) list.back()["best_speedup"] = r.best_speedup;
  }
  return {{"device", nlohmann::json::parse(device_to_json(device))}, {"rows", list}};
}

std::string above_roof(const std::vector<BenchRow>& rows) {
  for (const BenchRow& r : rows) {
    if (std::string sentence = r.verdict.error_text(r.name); !sentence.empty()) return sentence;
    for (const PeerMeasurement& p : r.peers)
      if (std::string sentence = p.verdict.error_text(r.name + " by " + p.name); p.refused.empty() && !sentence.empty())
        return sentence;
  }
  return {};
}

std::string probes_summary(const std::vector<RoofVerdict>& verdicts) {
  struct Range {
    double low = 0, high = 0, spread = 0;
    bool bytes = false;
  };
  std::vector<std::pair<std::string, Range>> roofs;  // in the order of the rows
  double tolerance = 0;
  const auto add = [&](const RoofRate& r, bool bytes) {
    if (r.roof <= 0) return;
    auto at = std::find_if(roofs.begin(), roofs.end(), [&](const auto& known) { return known.first == r.of; });
    if (at == roofs.end()) at = roofs.insert(roofs.end(), {r.of, {r.roof, r.roof, 0, bytes}});
    Range& range = at->second;
    range.low = std::min(range.low, r.roof), range.high = std::max(range.high, r.roof);
    range.spread = std::max(range.spread, r.spread);
  };
  for (const RoofVerdict& v : verdicts)
    add(v.compute, false), add(v.memory, true), tolerance = std::max(tolerance, v.tolerance);
  if (roofs.empty()) return "no roof could be probed beside: rates are not judged\n";
  std::string text = "roofs probed beside:";
  for (const auto& [of, range] : roofs)
    text += line("%s %s %.1f to %.1f %s within %.1f %%", text.back() == ':' ? "" : ",", of.c_str(), range.low * 1e-9,
                 range.high * 1e-9, range.bytes ? "GB/s" : "GFLOP/s", 100 * range.spread);
  text += line("; a rate above its row's by more than their spread and %.0f %% fails the run\n", 100 * tolerance);
  const auto disturbed = std::count_if(verdicts.begin(), verdicts.end(), [](const RoofVerdict& v) { return v.disturbed(); });
  if (disturbed > 0)
    text += line("%lld of %zu stand beside probes that differ by more than 25 %%: others used this machine, measure again\n",
                 static_cast<long long>(disturbed), verdicts.size());
  return text;
}

std::string probes_summary(const std::vector<BenchRow>& rows) {
  std::vector<RoofVerdict> verdicts;
  for (const BenchRow& row : rows) verdicts.push_back(row.verdict);
  return probes_summary(verdicts);
}

nlohmann::json roof_json(const RoofVerdict& v) {
  nlohmann::json json = nlohmann::json::object();
  const auto put = [&](const char* name, const RoofRate& r) {
    if (r.roof <= 0) return;
    json[name] = {{"of", r.of}, {"rate", r.rate}, {"probed", r.roof}, {"spread_percent", 100 * r.spread}};
  };
  put("compute", v.compute), put("memory", v.memory);
  json["tolerance_percent"] = 100 * v.tolerance;
  json["disturbed"] = v.disturbed();
  return json;
}

}  // namespace sparkle
