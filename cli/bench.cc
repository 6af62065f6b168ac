// sparkle bench --layers F.csv | --conv TEXT | --model M: verified, interleaved with peak probes, medians.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench_model.h"
#include "command.h"
#include "layer_list.h"
#include "progress.h"
#include "report/bench_rows.h"

namespace sparkle::cli {
namespace {

struct BenchArguments {
  const CLI::App* command = nullptr;
  CommonOptions common;
  std::string layers;
  std::vector<std::string> convs;
  bool ladder = false;
  ModelBench model;
  LayerBenchOptions layer;
};

// What is given must belong together: nothing is ignored in silence.
Status check_combination(const BenchArguments& a) {
  const CLI::App& c = *a.command;
  if (!a.model.model.empty()) {
    SPARKLE_CHECK(
        refuse_options(c, {"--layers", "--conv", "--ladder", "--rounds"}, "measures layers and does not go with --model"));
    if (!a.model.inputs.empty())
      SPARKLE_CHECK(refuse_options(c, {"--shape"}, "is for random values; the given inputs have shapes"));
    if (a.model.serve) SPARKLE_CHECK(refuse_options(c, {"--output", "--json", "--runs"}, "does not go with --serve"));
    return ok();
  }
  SPARKLE_CHECK(refuse_options(c, {"--input", "--shape", "--runs", "--serve"}, "measures a model and needs --model"));
  if (a.ladder)
    SPARKLE_CHECK(refuse_options(c, {"--algorithm", "--variant", "--tuning"},
                                 "does not go with --ladder, whose levels choose their own"));
  return ok();
}

int finish(const BenchArguments& a, const Device& device, const std::vector<BenchRow>& rows) {
  const nlohmann::json json = bench_json(device, rows);
  if (!a.model.output.empty()) {
    if (auto written = write_results(a.model.output, json); !written.ok()) return fail(written.error());
  }
  if (a.common.json) {
    std::printf("%s\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    std::fputs(bench_table_summary(rows).c_str(), stdout);
  }
  const std::string wrong = implausible(rows);
  if (wrong.empty()) return kDone;
  std::fprintf(stderr, "sparkle: %s\n", wrong.c_str());
  return kCheckFailed;
}

int bench_layers(const BenchArguments& a, const std::vector<NamedProblem>& problems) {
  auto device = open_device(a.common, Roofs::measured);
  if (!device.ok()) return fail(device.error());
  auto session = session_options(a.common, device->backend->device());
  if (!session.ok()) return fail(session.error());
  LayerBenchOptions options = a.layer;
  options.plan = session->plan();
  if (!a.common.json)
    std::printf("%s; fp32, NHWC, weights packed before, bias and ReLU fused\n%s", device->note.c_str(),
                bench_table_heading().c_str());
  std::vector<BenchRow> rows;
  Progress progress("layers", static_cast<int64_t>(problems.size()), !a.common.json);
  for (const NamedProblem& p : problems) {
    auto measured = measure_layer(*device->backend, p.problem, options);
    if (!measured.ok()) return fail(measured.error());
    rows.push_back(row_of(p.name, *measured));
    progress.clear();
    if (!a.common.json) std::fputs(bench_table_row(rows.back()).c_str(), stdout);
    std::fflush(stdout);
    progress.step();
  }
  progress.clear();
  return finish(a, device->backend->device(), rows);
}

struct Rung {
  DeviceKind device;
  const char* level;
  const char* algorithm;
  const char* variant;
  int threads;
};
constexpr Rung kLadder[] = {
#define LADDER(device, level, algorithm, variant, threads) {DeviceKind::device, level, algorithm, variant, threads},
#include "report/ladder.inc"
#undef LADDER
};

int bench_ladder(const BenchArguments& a, const std::vector<NamedProblem>& problems) {
  const auto budget = parse_bytes(a.common.memory_budget);
  if (!budget.ok()) return fail(budget.error());
  std::vector<BenchRow> rows;
  Device described;
  if (!a.common.json) std::fputs(bench_table_heading().c_str(), stdout);
  for (const NamedProblem& p : problems)
    for (const Rung& rung : kLadder) {
      CommonOptions common = a.common;
      if (rung.threads > 0) common.threads = rung.threads;
      auto device = open_device(common, Roofs::measured);
      if (!device.ok()) return fail(device.error());
      described = device->backend->device();
      if (described.kind != rung.device) continue;
      LayerBenchOptions options = a.layer;
      options.plan.algorithm = rung.algorithm, options.plan.variant = rung.variant;
      options.plan.memory_budget = *budget;
      auto measured = measure_layer(*device->backend, p.problem, options);
      if (!measured.ok()) return fail(measured.error());
      rows.push_back(row_of(rung.level, *measured));
      if (!a.common.json) std::fputs(bench_table_row(rows.back()).c_str(), stdout);
      std::fflush(stdout);
    }
  return finish(a, described, rows);
}

int bench(const BenchArguments& a) {
  if (auto fits = check_combination(a); !fits.ok()) return fail(fits.error());
  if (!a.model.output.empty())
    if (auto writable = check_writable(a.model.output); !writable.ok()) return fail(writable.error());
  if (!a.model.model.empty()) return bench_model(a.common, a.model);
  auto problems = listed_problems(a.layers, a.convs);
  if (!problems.ok()) return fail(problems.error());
  if (problems->empty()) return fail({Reason::bad_usage, "Give --layers, --conv or --model; see 'sparkle bench --help'."});
  return a.ladder ? bench_ladder(a, *problems) : bench_layers(a, *problems);
}

}  // namespace

void add_bench(CLI::App& app, Chosen& chosen) {
  auto* command = app.add_subcommand("bench", "Measure layers, a convolution or a whole model against the measured roofs");
  auto a = std::make_shared<BenchArguments>();
  a->command = command;
  add_common(*command, a->common);
  command->add_option("--layers", a->layers, "layer list, CSV: name,n,c,h,w,k,r,s,stride_h,...");
  command->add_option("--conv", a->convs, "a convolution: ic64ih56oc64oh56kh3ph1");
  command->add_flag("--ladder", a->ladder, "the optimisation levels one after another");
  command->add_option("--rounds", a->layer.rounds, "rounds of measurement")->check(CLI::Range(1, 1000));
  command->add_option("--model", a->model.model, "ONNX file");
  command->add_option("--input", a->model.inputs,
                      "TensorProto or .npy file, one per input of the model; else seeded random values");
  command->add_option("--shape", a->model.shapes, "NAME=1x3x224x224 for inputs whose sizes the model leaves open");
  command->add_option("--runs", a->model.runs, "timed runs of a model; 0: about a second")->check(CLI::Range(0, 1000000));
  command->add_flag("--serve", a->model.serve, "answer 'run N' lines on standard input with wall times, for comparisons");
  command->add_option("--output", a->model.output, "also write the JSON to this file");
  command->callback([&chosen, a] { chosen = [a] { return bench(*a); }; });
}

}  // namespace sparkle::cli
