#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "bench_command/bench_pipeline.h"
#include "bench_command/certificate.h"
#include "device/device_json.h"
#include "measure/streams/shared_bench.h"
#include "onnx/tensor_file.h"
#include "open_together.h"
#include "run_command/model_inputs.h"
#include "run_command/run_options.h"

namespace sparkle::cli {
namespace {

double per_second(double seconds) { return seconds > 0 ? 1 / seconds : 0; }

nlohmann::json together_json(const SharedMeasurement& m, const Together& together, const std::string& model) {
  nlohmann::json rows = nlohmann::json::array();
  uint64_t items = 0;
  for (const auto& row : m.devices) items += row.items;
  for (size_t i = 0; i < m.devices.size(); ++i)
    rows.push_back(
        {{"name", m.devices[i].name},
         {"device", nlohmann::json::parse(device_to_json(together.backends[i].backend->device()))},
         {"note", together.backends[i].note},
         {"alone_items", m.devices[i].alone_items},
         {"alone_ms", m.devices[i].alone * 1e3},
         {"alone_items_per_second", per_second(m.devices[i].alone)},
         {"items", m.devices[i].items},
         {"share_percent", items > 0 ? 100.0 * static_cast<double>(m.devices[i].items) / static_cast<double>(items) : 0}});
  return {{"model", model},
          {"items", m.items},
          {"rounds", m.rounds},
          {"depth", m.depth},
          {"devices", rows},
          {"together_ms", m.together * 1e3},
          {"together_items_per_second", per_second(m.together)},
          {"efficiency_percent", 100 * m.efficiency()},
          {"together_over_best_alone", m.gain()},
          {"stream", m.why},
          {"stream_ms", m.stream * 1e3},
          {"stream_over_best_alone", m.stream_gain()},
          {"checked", m.checked}};
}

void print_together(const SharedMeasurement& m) {
  uint64_t items = 0;
  for (const auto& row : m.devices) items += row.items;
  for (const auto& row : m.devices)
    std::printf("alone        %-12s %.4f ms an item, %.1f a second; %.1f %% of the items together\n", row.name.c_str(),
                row.alone * 1e3, per_second(row.alone),
                items > 0 ? 100.0 * static_cast<double>(row.items) / static_cast<double>(items) : 0.0);
  std::printf("together     %.4f ms an item, %.1f a second: %.1f %% of the sum of the rates alone, %.2f times the best alone\n",
              m.together * 1e3, per_second(m.together), 100 * m.efficiency(), m.gain());
  std::printf("stream       %.4f ms an item, %.1f a second, %.2f times the best alone: %s\n", m.stream * 1e3,
              per_second(m.stream), m.stream_gain(), printable_sentence(m.why).c_str());
  std::printf("%d rounds in turns, of %d items together and in a stream; %s\n", m.rounds, m.items, m.checked.c_str());
}

Result<std::vector<HostTensor>> bench_inputs(const ModelBench& bench, const Session& session) {
  std::vector<HostTensor> tensors;
  for (const std::string& path : bench.inputs) {
    SPARKLE_TRY(tensor, read_tensor_file(path));
    tensors.push_back(std::move(tensor));
  }
  if (!bench.inputs.empty()) return tensors;
  SPARKLE_TRY(shapes, input_shapes(session.inputs(), bench.shapes));
  SPARKLE_TRY(unfilled, unfilled_inputs(session.inputs(), shapes));
  SPARKLE_CHECK(fill_inputs(session.inputs(), unfilled, 1));
  return unfilled;
}

// One each: plans of other devices have other errors.
Result<std::vector<ModelCheck>> checks_for(const CommonOptions& common, const ModelBench& bench, const Together& together,
                                           const std::vector<HostTensor>& inputs) {
  std::vector<ModelCheck> checks;
  for (size_t i = 0; i < together.sessions.size(); ++i) {
    CommonOptions one = common;
    one.device = together.names[i];
    SPARKLE_TRY(options, session_options(one, together.backends[i]));
    SPARKLE_TRY(check, check_of(one, bench, *together.sessions[i], inputs, options));
    checks.push_back(std::move(check));
  }
  return checks;
}

}  // namespace

int bench_together(const CommonOptions& common, const ModelBench& bench, const PipelineBenchOptions& options,
                   const std::string& trace) {
  auto together = open_model_together(common, bench.model, Roofs::kept_or_estimated);
  if (!together.ok()) return fail(together.error());
  std::vector<SharedBenchDevice> devices;
  for (size_t i = 0; i < together->sessions.size(); ++i) devices.push_back({together->names[i], together->sessions[i]});
  auto inputs = bench_inputs(bench, *devices[0].session);
  if (!inputs.ok()) return fail(inputs.error());
  std::string name;
  for (const SharedBenchDevice& device : devices) {
    auto plan = device.session->prepare(*inputs);
    if (!plan.ok()) return fail(plan.error(), common);
    if (auto fast = check_fallback(**plan, common); !fast.ok()) return fail(fast.error(), common);
    name = (*plan)->model;
  }
  auto checks = checks_for(common, bench, *together, *inputs);
  if (!checks.ok()) return fail(checks.error(), common);
  if (!common.json) {
    std::printf("%s; '%s'\n", together->note.c_str(), printable(name).c_str());
    std::fflush(stdout);
  }
  const auto traced = trace.empty() ? nullptr : std::make_shared<PipelineTrace>();
  auto measured = measure_shared(devices, *inputs, *checks, options, traced);
  if (!measured.ok()) return fail(measured.error());
  if (auto written = write_trace(trace, traced); !written.ok()) return fail(written.error());
  const nlohmann::json json = together_json(*measured, *together, name);
  if (!bench.output.empty())
    if (auto written = write_results(bench.output, json); !written.ok()) return fail(written.error());
  if (common.json) std::printf("%s\n", certified(json).dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  else print_together(*measured);
  return kDone;
}

}  // namespace sparkle::cli
