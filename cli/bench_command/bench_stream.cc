#include "bench_command/bench_stream.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench_command/bench_model.h"
#include "bench_command/certificate.h"
#include "device/device_json.h"
#include "report/bench_rows.h"
#include "measure/roofs/stream_bench.h"

namespace sparkle::cli {
namespace {

double rate(double amount, double seconds) { return seconds > 0 ? amount / seconds * 1e-9 : 0; }

nlohmann::json row_json(const std::string& name, const StreamMeasurement& m) {
  const double flops = m.problem.nominal_flops() * m.batches;
  return {{"name", name},
          {"problem", to_text(m.problem)},
          {"batches", m.batches},
          {"algorithm", m.choice.algorithm},
          {"schedule", to_text(m.choice.schedules[0])},
          {"resident_ms", m.resident_seconds * 1e3},
          {"resident_gflops", rate(flops, m.resident_seconds)},
          {"with_transfers_ms", m.moved_seconds * 1e3},
          {"transfers_alone_ms", m.link_seconds * 1e3},
          {"percent_of_link", 100 * m.share_of_link()},
          {"bytes_up", m.bytes_up},
          {"bytes_down", m.bytes_down},
          {"up_gbytes_per_s", rate(m.bytes_up, m.up_seconds)},
          {"down_gbytes_per_s", rate(m.bytes_down, m.down_seconds)},
          {"roofs", roof_json(m.verdict)},
          {"max_error", m.largest_error},
          {"checked", "each batch, both ways: " + to_text(m.checked)}};
}

}  // namespace

int bench_stream(const CommonOptions& common, const LayerBench& bench, const std::vector<NamedProblem>& problems) {
  auto device = open_device(common, Roofs::kept_or_estimated);
  if (!device.ok()) return fail(device.error(), common);
  auto session = session_options(common, device->backend->device());
  if (!session.ok()) return fail(session.error());
  LayerBenchOptions options = bench.options;
  options.plan = session->plan();
  if (!common.json)
    std::printf(
        "%s; fp32, each batch with an input and an output of its own; times of all batches together\n"
        "%-24s %7s %-11s %11s %9s %12s %12s %7s %8s %8s %8s\n",
        device->note.c_str(), "layer", "batches", "algorithm", "resident ms", "GFLOP/s", "transfers ms", "copies alone",
        "% link", "GB/s up", "down", "error");
  nlohmann::json rows = nlohmann::json::array();
  std::vector<Checked> checks;
  std::vector<RoofVerdict> roofs;
  std::string above;
  for (const NamedProblem& p : problems) {
    auto m = measure_stream(*device->backend, p.problem, options, bench.batches);
    if (!m.ok()) return fail(m.error());
    const std::string name = p.name.empty() ? short_name(p.problem) : p.name;
    rows.push_back(row_json(name, *m));
    checks.push_back(m->checked), roofs.push_back(m->verdict);
    if (above.empty()) above = m->verdict.error_text(name);
    if (common.json) continue;
    std::printf("%-24.24s %7d %-11.11s %11.4f %9.1f %12.4f %12.4f %7.1f %8.2f %8.2f %8.1e\n", name.c_str(), m->batches,
                m->choice.algorithm.c_str(), m->resident_seconds * 1e3,
                rate(p.problem.nominal_flops() * m->batches, m->resident_seconds), m->moved_seconds * 1e3,
                m->link_seconds * 1e3, 100 * m->share_of_link(), rate(m->bytes_up, m->up_seconds),
                rate(m->bytes_down, m->down_seconds), m->largest_error);
    std::fflush(stdout);
  }
  if (!common.json)
    std::printf("%severy batch, resident and with transfers: %s", probes_summary(roofs).c_str(),
                checks_summary(checks, base_seed(options.seed)).c_str());
  const nlohmann::json json{{"device", nlohmann::json::parse(device_to_json(device->backend->device()))},
                            {"rows", rows},
                            {"seed", base_seed(options.seed)}};
  if (!bench.output.empty())
    if (auto written = write_results(bench.output, json); !written.ok()) return fail(written.error());
  if (common.json) std::printf("%s\n", certified(json).dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  return end_of_bench(above);
}

}  // namespace sparkle::cli
