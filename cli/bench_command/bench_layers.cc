#include "bench_command/bench_layers.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/system/cpu_count.h"
#include "base/system/denormals.h"
#include "bench_command/bench_crossover.h"
#include "bench_command/bench_model.h"
#include "bench_command/bench_stream.h"
#include "bench_command/certificate.h"
#include "bench_command/layer_list.h"
#include "peers/peers.h"
#include "run_command/progress.h"
#include "report/bench_rows.h"
#include "measure/steps/optimisation_steps.h"

namespace sparkle::cli {
namespace {

// Other engines fuse different activations at different cost: beside them layers have none.
Result<std::vector<NamedProblem>> problems_of(const LayerBench& bench) {
  SPARKLE_TRY(problems, listed_problems({bench.layers, bench.filters, bench.convs, bench.gemms, bench.against.empty(),
                                         bench.batch, bench.dt, bench.dir}));
  if (!bench.against.empty())
    for (NamedProblem& p : problems) p.problem.epilogue.activation = Activation::none;
  if (problems.empty())
    return Error{Reason::bad_usage, "Give a model, --layers, --batch, --conv or --gemm; see 'sparkle bench --help'."};
  for (NamedProblem& p : problems)
    if (!bench.stored.empty()) p.problem.dtype = bench.stored;
  return problems;
}

LayerBenchOptions options_for(const LayerBench& bench, const Problem& problem) {
  LayerBenchOptions options = bench.options;
  options.constant_weights = problem.kind != ProblemKind::matmul;
  return options;
}

int finish(const CommonOptions& common, const LayerBench& bench, const Device& device, const std::vector<BenchRow>& rows,
           const std::string& summary, nlohmann::json extra) {
  nlohmann::json json = bench_json(device, rows);
  json.update(extra);
  if (!bench.layers.empty() || !bench.batch.empty()) json["file"] = bench.layers.empty() ? bench.batch : bench.layers;
  json["seed"] = base_seed(bench.options.seed);
  if (!bench.output.empty()) {
    if (auto written = write_results(bench.output, json); !written.ok()) return fail(written.error());
  }
  if (common.json) {
    std::printf("%s\n", certified(json).dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    std::fputs(
        (summary + traffic_summary(device, rows) + probes_summary(rows) + checks_summary(rows, base_seed(bench.options.seed)))
            .c_str(),
        stdout);
  }
  return end_of_bench(above_roof(rows));
}

void show(const CommonOptions& common, const std::string& text) {
  if (common.json) return;
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

int bench_alone(const CommonOptions& common, LayerBench bench, const std::vector<NamedProblem>& problems) {
  auto device = open_device(common, Roofs::measured);
  if (!device.ok()) return fail(device.error(), common);
  auto session = session_options(common, device->backend->device());
  if (!session.ok()) return fail(session.error());
  bench.options.plan = session->plan();
  show(common, device->note +
                   (bench.stored.empty()     ? "; fp32"
                    : bench.stored == "f16"  ? "; fp16"
                    : bench.stored == "bf16" ? "; bf16"
                                             : "; " + bench.stored + ", results in fp16") +
                   (bench.options.planes ? ", NCHW" : ", NHWC") +
                   (bench.batch.empty() ? ", weights packed before, bias and ReLU fused\n"
                                        : ", weights packed before, types, bias and ReLU as the file says\n") +
                   bench_table_heading());
  std::vector<BenchRow> rows;
  nlohmann::json failed = nlohmann::json::array();
  Progress progress("layers", static_cast<int64_t>(problems.size()), !common.json);
  for (const NamedProblem& p : problems) {
    auto measured = measure_layer(*device->backend, p.problem, options_for(bench, p.problem));
    progress.clear();
    if (!measured.ok()) {
      // Of several layers the others go on.
      if (problems.size() == 1) return fail(measured.error());
      failed.push_back({{"name", p.name.empty() ? short_name(p.problem) : p.name}, {"error", measured.error().message}});
      print_note(measured.error().message);
    } else {
      rows.push_back(row_of(p, *measured));
      show(common, bench_table_row(rows.back()));
      // Row by row, so that an end before the end loses nothing.
      if (!bench.output.empty())
        if (auto written = write_results(bench.output, bench_json(device->backend->device(), rows)); !written.ok())
          return fail(written.error());
    }
    progress.step();
  }
  progress.clear();
  nlohmann::json extra = nlohmann::json::object();
  if (!failed.empty()) extra["failed"] = failed;
  const int status =
      finish(common, bench, device->backend->device(), rows, bench_table_summary(rows) + old_figures(rows), extra);
  return failed.empty() ? status : kCheckFailed;
}

int bench_against(CommonOptions common, LayerBench bench, const std::vector<NamedProblem>& problems) {
  // Before any thread exists: all of them, whoever starts them, stay on these CPUs and flush denormals.
  common.threads = usable_threads(common.threads).threads;
  pin_process(common.threads);
  const ScopedFlushDenormals flush;
  auto peers = open_peers(bench.against, common.threads);
  if (!peers.ok()) return fail(peers.error());
  auto device = open_device(common, Roofs::measured);
  if (!device.ok()) return fail(device.error(), common);
  auto session = session_options(common, device->backend->device());
  if (!session.ok()) return fail(session.error());
  bench.options.plan = session->plan();
  std::vector<PeerMeasurement> named;
  for (const auto& peer : *peers) {
    PeerMeasurement& p = named.emplace_back();
    p.name = peer->name(), p.version = peer->version();
  }
  show(common, device->note + ", pinned; fp32, weights packed before (OpenBLAS cannot), bias fused, no activation\n" +
                   head_to_head_heading(named));
  std::vector<BenchRow> rows;
  Progress progress("layers", static_cast<int64_t>(problems.size()), !common.json);
  for (const NamedProblem& p : problems) {
    auto result = head_to_head(*device->backend, p.problem, options_for(bench, p.problem), *peers);
    if (!result.ok()) return fail(result.error());
    rows.push_back(row_of(p, *result));
    progress.clear();
    show(common, head_to_head_row(rows.back()));
    progress.step();
  }
  progress.clear();
  nlohmann::json peer_versions = nlohmann::json::object();
  for (const PeerMeasurement& p : named) peer_versions[p.name] = p.version;
  const nlohmann::json extra{{"versions", peer_versions},
                             {"threads", common.threads},
                             {"rounds", bench.options.rounds},
                             {"speedup_geometric_means", head_to_head_means(rows)}};
  return finish(common, bench, device->backend->device(), rows, head_to_head_summary(rows) + old_figures(rows), extra);
}

StepRow named(const OptimisationStep& step, const Problem& problem) {
  StepRow l;
  l.row.name = step.name, l.row.problem = to_text(problem);
  l.what = step.what, l.absent = step.absent;
  return l;
}

int finish_steps(const CommonOptions& common, const LayerBench& bench, const Device& device,
                 const std::vector<StepRow>& steps) {
  nlohmann::json json = steps_json(device, steps, bench.ablate);
  json["seed"] = base_seed(bench.options.seed);
  if (!bench.output.empty())
    if (auto written = write_results(bench.output, json); !written.ok()) return fail(written.error());
  if (common.json) std::printf("%s\n", certified(json).dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  std::vector<BenchRow> rows;
  for (const StepRow& l : steps)
    if (l.absent.empty()) rows.push_back(l.row);
  show(common, probes_summary(rows) + checks_summary(rows, base_seed(bench.options.seed)));
  return end_of_bench(above_roof(rows));
}

// What the rows are about: the layer, what it runs on, whose clock, what the columns of bytes are.
std::string title_of(const Problem& problem, const OpenDevice& open) {
  const Device& device = open.backend->device();
  if (!device.has_workgroups()) return short_name(problem) + ", " + std::to_string(device.cores) + " threads";
  return short_name(problem) +
         (problem.dtype == "f16"    ? " in fp16, "
          : problem.dtype == "bf16" ? " in bf16, "
          : problem.dtype != "f32"  ? " in " + problem.dtype + ", "
                                    : ", ") +
         device.name +
         (open.backend->keeps_time() ? ", by the device's clock" : ", by the host's clock: the device keeps none") +
         "; MB: bytes predicted; copies: between host and device while timed";
}

int bench_steps(const CommonOptions& common, const LayerBench& bench, const std::vector<NamedProblem>& problems) {
  CommonOptions single = common;
  single.threads = 1;
  auto all = open_device(common, Roofs::measured), one = open_device(single, Roofs::measured);
  for (const auto* device : {&all, &one})
    if (!device->ok()) return fail(device->error());
  const Device& device = all->backend->device();
  auto session = session_options(common, device);
  if (!session.ok()) return fail(session.error());
  std::vector<StepRow> rows;
  for (const NamedProblem& p : problems) {
    LayerBenchOptions options = options_for(bench, p.problem);
    options.plan = session->plan();
    auto steps = optimisation_steps_on(*all->backend, p.problem, options.plan, options.planes);
    if (!steps.ok()) return fail(steps.error());
    show(common, steps_heading(title_of(p.problem, *all), device, false));
    double before = 0;
    for (const OptimisationStep& step : *steps) {
      StepRow l = named(step, p.problem);
      if (step.absent.empty()) {
        const OpenDevice& on = step.one_core ? *one : *all;
        options.planes = bench.options.planes != step.other_layout;
        auto measured = measure_choice(*on.backend, p.problem, step.choice, options);
        if (!measured.ok()) return fail(measured.error());
        l.row = row_of({step.name, p.problem, 0, ""}, *measured);
        l.threads = on.backend->executor().width();
        if (before > 0) l.factor = before / l.row.median_ms;
        before = l.row.median_ms;
      }
      show(common, step_row(l, device));
      rows.push_back(std::move(l));
    }
  }
  return finish_steps(common, bench, device, rows);
}

int bench_ablate(const CommonOptions& common, const LayerBench& bench, const std::vector<NamedProblem>& problems) {
  auto open = open_device(common, Roofs::measured);
  if (!open.ok()) return fail(open.error(), common);
  const Device& device = open->backend->device();
  auto session = session_options(common, device);
  if (!session.ok()) return fail(session.error());
  std::vector<StepRow> rows;
  for (const NamedProblem& p : problems) {
    LayerBenchOptions options = options_for(bench, p.problem);
    options.plan = session->plan();
    auto steps = ablation_on(*open->backend, p.problem, options.plan);
    if (!steps.ok()) return fail(steps.error());
    show(common, steps_heading(title_of(p.problem, *open), device, true));
    std::vector<ComparedChoice> candidates;
    for (const OptimisationStep& step : *steps)
      if (step.absent.empty()) candidates.push_back({step.choice, step.other_layout});
    auto measured = compare_candidates(*open->backend, p.problem, options, std::move(candidates));
    if (!measured.ok()) return fail(measured.error());
    size_t next = 0;
    for (const OptimisationStep& step : *steps) {
      StepRow l = named(step, p.problem);
      if (step.absent.empty()) {
        const CandidateMeasurement& w = (*measured)[next++];
        l.row = row_of({step.name, p.problem, 0, ""}, w.measured);
        l.threads = open->backend->executor().width();
        if (next > 1) l.factor = w.times_first;
      }
      show(common, step_row(l, device));
      rows.push_back(std::move(l));
    }
  }
  return finish_steps(common, bench, device, rows);
}

}  // namespace

int bench_layers(CommonOptions common, LayerBench bench) {
  bench.stored = stored_type(common);
  auto problems = problems_of(bench);
  if (!problems.ok()) return fail(problems.error());
  if (!bench.against.empty()) return bench_against(common, bench, *problems);
  if (bench.crossover) return bench_crossover(common, *problems, bench.options);
  if (bench.batches > 0) return bench_stream(common, bench, *problems);
  if (bench.ladder) return bench_steps(common, bench, *problems);
  if (bench.ablate) return bench_ablate(common, bench, *problems);
  return bench_alone(common, bench, *problems);
}

}  // namespace sparkle::cli
