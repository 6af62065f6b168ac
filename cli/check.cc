// sparkle check MODEL --target D[,D...]: what keeps each layer off the fast path of devices that need not be here.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "base/files/new_file.h"
#include "check/check.h"
#include "command.h"
#include "device/known/known_devices.h"
#include "fix/paddings.h"
#include "measure/step_times.h"
#include "report/check_page.h"
#include "report/check_text.h"
#include "run/opening/open_model.h"
#include "run_command/model_inputs.h"

namespace sparkle::cli {
namespace {

struct CheckArguments {
  std::string model;
  std::vector<std::string> targets, shapes;
  std::string html;
  bool all = false, json = false, measure = false;
  int threads = 0;
};

struct Target {
  std::string called;
  Device device;
  std::shared_ptr<Backend> backend;  // of devices that are here
};

Result<Target> target_here(const std::string& name, const CheckArguments& a) {
  CommonOptions common;
  common.device = name, common.threads = a.threads;
  SPARKLE_TRY(open, open_device(common, a.measure ? Roofs::measured : Roofs::kept_or_estimated));
  return Target{name, open.backend->device(), open.backend};
}

Result<std::vector<Target>> targets_of(const CheckArguments& a) {
  std::vector<Target> targets;
  for (const std::string& name : a.targets) {
    if (is_here(name)) {
      SPARKLE_TRY(target, target_here(name, a));
      targets.push_back(std::move(target));
      continue;
    }
    if (a.measure)
      return Error{Reason::bad_usage, "--measure runs the model on devices that are here; '" + name +
                                          "' is none: give cpu, vulkan or vulkan:N as 'sparkle devices' numbers them."};
    auto device = described_device(name);
    if (!device.ok()) return device.take_error();
    targets.push_back(
        {names_description(name) ? std::filesystem::path(name).stem().string() : name, std::move(*device), nullptr});
  }
  return targets;
}

Result<ModelToCheck> model_to_check(const CheckArguments& a) {
  return fix::model_to_check(a.model, [&](Graph graph) { return bound_graph(std::move(graph), a.shapes); });
}

// The verdict of the plan that ran, with what its steps took.
Result<Verdict> measured(const CheckArguments& a, const ModelToCheck& model, const Target& target) {
  SPARKLE_TRY(graph, read_onnx_model(a.model));
  SPARKLE_TRY(session, Session::open(std::move(graph), target.backend, {}));
  SPARKLE_TRY(shapes, input_shapes(session->inputs(), a.shapes));
  SPARKLE_TRY(inputs, unfilled_inputs(session->inputs(), shapes));
  SPARKLE_CHECK(fill_inputs(session->inputs(), inputs, 1));
  SPARKLE_TRY(times, time_steps(*session, inputs));
  Verdict verdict = check_plan(model.graph, *times.plan, target.backend->device(), model.options);
  verdict.model = model.graph.name;
  add_measured(verdict, times.steps, times.whole_seconds);
  return verdict;
}

int check_command(const CheckArguments& a) {
  auto targets = targets_of(a);
  if (!targets.ok()) return fail(targets.error());
  auto model = model_to_check(a);
  if (!model.ok()) return fail(model.error());
  if (!a.html.empty()) {
    if (auto apart = check_apart(a.html, a.model); !apart.ok()) return fail(apart.error());
    if (auto writable = check_writable(a.html); !writable.ok()) return fail(writable.error());
  }
  nlohmann::json all = nlohmann::json::array();
  Page page{model->graph.name, "sparkle check", {}};
  for (const Target& target : *targets) {
    auto verdict = a.measure ? measured(a, *model, target) : check_model(model->graph, target.device, model->options);
    if (!verdict.ok()) return fail(verdict.error());
    if (!a.html.empty()) page.targets.push_back(check_page(*verdict, target.called));
    if (a.json) all.push_back(check_json(*verdict, target.called));
    else std::printf("%s%s", &target == targets->data() ? "" : "\n", check_text(*verdict, target.called, {a.all}).c_str());
  }
  if (!a.html.empty()) {
    const std::string html = page_html(page);
    if (auto written = write_file(a.html, std::as_bytes(std::span(html))); !written.ok()) return fail(written.error());
  }
  if (a.json)
    std::printf("%s\n", nlohmann::json{{"model", model->graph.name}, {"targets", all}}
                            .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
                            .c_str());
  return kDone;
}

}  // namespace

void add_check(CLI::App& app, Chosen& chosen) {
  auto* command = app.add_subcommand("check", "Say what keeps a model off the fast path of devices, and the fix");
  auto a = std::make_shared<CheckArguments>();
  std::string names;
  for (const KnownDevice& known : known_devices()) names += (names.empty() ? "" : ", ") + std::string(known.name);
  command->add_option("model", a->model, "ONNX file")->required();
  command
      ->add_option("--target", a->targets,
                   "devices, which need not be here: " + names + ", or FILE.json; of this machine: cpu, vulkan, vulkan:N")
      ->delimiter(',')
      ->required();
  command->add_option("--shape", a->shapes, "NAME=1x3x224x224 for inputs whose sizes the model leaves open");
  command->add_option("--html", a->html, "also writes a page for browsers to this file");
  command->add_flag("--measure", a->measure,
                    "runs the model on devices that are here, and prints what its layers took beside it");
  command->add_option("--threads", a->threads, "CPU threads; 0: what affinity and cgroup quota allow")
      ->check(CLI::Range(0, 1024));
  command->add_flag("--all", a->all, "every layer, also those without findings");
  command->add_flag("--json", a->json, "one JSON object instead of text");
  command->callback([&chosen, a] { chosen = [a] { return check_command(*a); }; });
}

}  // namespace sparkle::cli
