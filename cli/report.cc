// sparkle report MODEL: what a run did step by step on the device that is here, beside roofs probed meanwhile; as text, JSON, a
// page, and a trace of one run.
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "base/files/new_file.h"
#include "base/text/format.h"
#include "loaded_model.h"
#include "report/report_text.h"
#include "run/opening/open_model.h"

namespace sparkle::cli {
namespace {

struct ReportArguments {
  CommonOptions common;
  ModelArguments model;
  std::string html, trace, check = "auto";
  double seconds = 1;
  int runs = 0;
};

Status write_text(const std::string& path, const std::string& text) {
  if (path.empty()) return ok();
  return write_file(path, std::as_bytes(std::span(text)));
}

int report_command(const ReportArguments& a) {
  for (const std::string& path : {a.html, a.trace})  // before anything is measured
    if (!path.empty()) {
      if (auto apart = check_apart(path, a.model.model); !apart.ok()) return fail(apart.error());
      if (auto writable = check_writable(path); !writable.ok()) return fail(writable.error());
    }
  auto loaded = load_model(a.common, a.model, Roofs::measured);
  if (!loaded.ok()) return fail(loaded.error(), a.common);
  auto plan = loaded->session->prepare(loaded->inputs);
  if (!plan.ok()) return fail(plan.error(), a.common);
  if (auto fast = check_fallback(**plan, a.common); !fast.ok()) return fail(fast.error(), a.common);
  ReportOptions options;
  options.seconds = a.seconds;
  if (a.runs > 0) options.least = a.runs, options.seconds = 0;
  (void)parse_name(a.check, options.check);
  options.model = [&] { return read_model(a.model.model); };
  options.accuracy = loaded->options.accuracy;
  options.before_check = [](double seconds) {
    if (seconds > 3) print_note(format("computing what the outputs must be by plain loops, some %.0f s.", seconds));
  };
  auto report = report_model(*loaded->session, loaded->inputs, options);
  if (!report.ok()) return fail(report.error(), a.common);
  report->model = std::filesystem::path(a.model.model).stem().string();  // exporters call most graphs alike
  if (!a.html.empty())
    if (auto written = write_text(a.html, model_report_html(*report)); !written.ok()) return fail(written.error());
  if (!a.trace.empty())
    if (auto written = write_text(a.trace, model_report_trace(*report)); !written.ok()) return fail(written.error());
  if (a.common.json)
    std::printf("%s\n", model_report_json(*report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  else std::fputs(model_report_text(*report).c_str(), stdout);
  if (!report->above_roof.empty()) print_note(report->above_roof);
  if (const int64_t missing = report->traced.tasks_left_out; missing > 0 && !a.trace.empty())
    print_note("The trace lacks " + std::to_string(missing) + " tasks of its threads; steps are whole.");
  return kDone;
}

}  // namespace

void add_report(CLI::App& app, Chosen& chosen) {
  auto* command =
      app.add_subcommand("report", "Measure a model step by step: times, roofs, choices, memory; a page and a trace");
  auto a = std::make_shared<ReportArguments>();
  add_common(*command, a->common);
  command->add_option("model", a->model.model, "ONNX file, or a file of 'sparkle compile'")->required();
  command->add_option("--input", a->model.inputs,
                      "TensorProto or .npy file, one per input of the model; else seeded random values");
  command->add_option("--shape", a->model.shapes, "NAME=1x3x224x224 for inputs whose sizes the model leaves open");
  command->add_option("--runs", a->runs, "runs of each kind, with times of steps and without, instead of --seconds")
      ->check(CLI::Range(0, 1000000));
  command->add_option("--seconds", a->seconds, "about so long, where --runs says nothing")->check(positive_number());
  command
      ->add_option("--check", a->check,
                   "of outputs against plain loops before, among and after the runs: auto (where these take some ten "
                   "seconds), always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  command->add_option("-o,--html", a->html, "also writes a page for browsers to this file");
  command->add_option("--trace", a->trace, "also writes a trace of one run to this file, for Perfetto or chrome://tracing");
  command->callback([&chosen, a] { chosen = [a] { return report_command(*a); }; });
}

}  // namespace sparkle::cli
