#include "bench_command/bench_pipeline.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/files/new_file.h"
#include "base/printable.h"
#include "bench_command/certificate.h"
#include "device/device_json.h"
#include "loaded_model.h"
#include "report/report_text.h"
#include "run/choice/open_together.h"

namespace sparkle::cli {
namespace {

double rate(double seconds) { return seconds > 0 ? 1 / seconds : 0; }

nlohmann::json json_of(const PipelineMeasurement& m, const std::string& model) {
  const auto each = [&](double sum) { return m.piped_items() > 0 ? 1e3 * sum / static_cast<double>(m.piped_items()) : 0; };
  return {{"model", model},
          {"items", m.items},
          {"rounds", m.rounds},
          {"depth", m.depth},
          {"latency_ms", m.latency * 1e3},
          {"synchronous_ms", m.synchronous * 1e3},
          {"pipelined_ms", m.pipelined * 1e3},
          {"items_per_second", rate(m.pipelined)},
          {"pipelined_over_synchronous", m.gain()},
          {"device_ms", m.device * 1e3},
          {"device_busy_percent", 100 * m.busy()},
          {"clock", m.clock_of_device ? "device" : "host"},
          {"handing_ms", each(m.host.handing)},
          {"waiting_ms", each(m.host.waiting)},
          {"bringing_ms", each(m.host.bringing)},
          {"roof_ms", m.roof * 1e3},
          {"checked", m.checked}};
}

void print(const PipelineMeasurement& m) {
  const auto each = [&](double sum) { return 1e3 * sum / static_cast<double>(std::max<uint64_t>(1, m.piped_items())); };
  std::printf("synchronous  %.4f ms an item, %.1f a second; latency %.4f ms (median)\n", m.synchronous * 1e3,
              rate(m.synchronous), m.latency * 1e3);
  std::printf("pipelined    %.4f ms an item, %.1f a second, %.2f times as many; %d items under way\n", m.pipelined * 1e3,
              rate(m.pipelined), m.gain(), m.depth);
  std::printf("device       %.4f ms an item by %s clock: busy for %.1f %% of the time\n", m.device * 1e3,
              m.clock_of_device ? "its own" : "the host's", 100 * m.busy());
  std::printf("host         handing over %.4f ms an item, waiting %.4f, bringing back %.4f\n", each(m.host.handing),
              each(m.host.waiting), each(m.host.bringing));
  std::printf("roof         %.4f ms an item at least, by what was probed beside: %.1f %% of it reached\n", m.roof * 1e3,
              m.pipelined > 0 ? 100 * m.roof / m.pipelined : 0);
  std::printf("%d rounds of %d items each way, in turns; %s\n", m.rounds, m.items, m.checked.c_str());
}

}  // namespace

Status write_trace(const std::string& path, const std::shared_ptr<PipelineTrace>& trace) {
  if (!trace) return ok();
  const std::string text = pipeline_trace_text(*trace);
  return write_file(path, std::as_bytes(std::span(text)));
}

int bench_pipeline(const CommonOptions& common, const ModelBench& bench, const PipelineBenchOptions& options,
                   const std::string& trace) {
  if (names_several_devices(common.device)) return bench_together(common, bench, options, trace);
  auto loaded = load_model(common, {bench.model, bench.inputs, bench.shapes}, Roofs::measured);
  if (!loaded.ok()) return fail(loaded.error(), common);
  auto check = check_of(common, bench, *loaded);
  if (!check.ok()) return fail(check.error(), common);
  auto plan = loaded->session->prepare(loaded->inputs);
  if (!plan.ok()) return fail(plan.error(), common);
  if (auto fast = check_fallback(**plan, common); !fast.ok()) return fail(fast.error(), common);
  const std::shared_ptr<Session> session = std::move(loaded->session);
  if (!common.json) {
    std::printf("%s; '%s'\n", loaded->device.note.c_str(), printable((*plan)->model).c_str());
    std::fflush(stdout);
  }
  const auto traced = trace.empty() ? nullptr : std::make_shared<PipelineTrace>();
  auto measured = measure_pipeline(session, loaded->inputs, *check, options, traced);
  if (!measured.ok()) return fail(measured.error());
  if (auto written = write_trace(trace, traced); !written.ok()) return fail(written.error());
  nlohmann::json json = json_of(*measured, (*plan)->model);
  json["device"] = nlohmann::json::parse(device_to_json(session->backend()->device()));
  if (!bench.output.empty())
    if (auto written = write_results(bench.output, json); !written.ok()) return fail(written.error());
  if (common.json) std::printf("%s\n", certified(json).dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  else print(*measured);
  return end_of_bench(measured->above);
}

}  // namespace sparkle::cli
