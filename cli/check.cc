// sparkle check MODEL --target D[,D...]: what keeps each layer off the fast path of devices that need not be here.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>

#include "base/files/new_file.h"
#include "command.h"
#include "device/known/known_devices.h"
#include "fix/paddings.h"
#include "measure/check_targets.h"
#include "report/check_page.h"
#include "report/check_text.h"
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

Result<ModelToCheck> model_to_check(const CheckArguments& a) {
  return fix::model_to_check(a.model, [&](Graph graph) { return bound_graph(std::move(graph), a.shapes); });
}

int check_command(const CheckArguments& a) {
  auto targets = check_targets(a.targets, {a.threads, a.measure, try_kernels_elsewhere});
  if (!targets.ok()) return fail(targets.error());
  auto model = model_to_check(a);
  if (!model.ok()) return fail(model.error());
  if (!a.html.empty()) {
    if (auto apart = check_apart(a.html, a.model); !apart.ok()) return fail(apart.error());
    if (auto writable = check_writable(a.html); !writable.ok()) return fail(writable.error());
  }
  nlohmann::json all = nlohmann::json::array();
  Page page{model->graph.name, "sparkle check", {}};
  for (const CheckTarget& target : *targets) {
    auto verdict = check_target(target, *model, a.model, a.measure);
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
      ->add_option(
          "--target", a->targets,
          "devices, which need not be here: " + names + ", or FILE.json; of this machine: cpu, cuda, cuda:N, vulkan, vulkan:N")
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
