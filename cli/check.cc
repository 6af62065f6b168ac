// sparkle check MODEL --target D[,D...]: what keeps each layer off the fast path of devices that need not be here.
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "base/files/new_file.h"
#include "check/check.h"
#include "command.h"
#include "device/device_json.h"
#include "device/known/known_devices.h"
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
  bool all = false, json = false;
};

struct Target {
  std::string called;
  Device device;
};

Result<std::vector<Target>> targets_of(const std::vector<std::string>& named) {
  std::vector<Target> targets;
  for (const std::string& name : named) {
    auto device = names_description(name) ? load_device(name) : known_device(name);
    if (!device.ok()) return device.take_error();
    targets.push_back({names_description(name) ? std::filesystem::path(name).stem().string() : name, std::move(*device)});
  }
  return targets;
}

// The graph as it is planned, and which of its inputs leave sizes open.
struct Checked {
  Graph graph;
  CheckOptions options;
};

Result<Checked> checked_model(const CheckArguments& a) {
  SPARKLE_TRY(graph, read_onnx_model(a.model, ExternalData::mapped));
  Checked checked;
  checked.options.open = open_inputs(graph);
  assume_rounded_weights(graph);
  SPARKLE_TRY(bound, bound_graph(std::move(graph), a.shapes));
  assume_rounded_weights(bound);
  checked.graph = std::move(bound);
  checked.graph.name = std::filesystem::path(a.model).stem().string();  // exporters call most graphs alike
  return checked;
}

int check_command(const CheckArguments& a) {
  auto targets = targets_of(a.targets);
  if (!targets.ok()) return fail(targets.error());
  auto model = checked_model(a);
  if (!model.ok()) return fail(model.error());
  if (!a.html.empty())
    if (auto writable = check_writable(a.html); !writable.ok()) return fail(writable.error());
  nlohmann::json all = nlohmann::json::array();
  Page page{model->graph.name, "sparkle check", {}};
  for (const Target& target : *targets) {
    auto verdict = check_model(model->graph, target.device, model->options);
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
  command->add_option("--target", a->targets, "devices, which need not be here: " + names + ", or FILE.json")
      ->delimiter(',')
      ->required();
  command->add_option("--shape", a->shapes, "NAME=1x3x224x224 for inputs whose sizes the model leaves open");
  command->add_option("--html", a->html, "also writes a page for browsers to this file");
  command->add_flag("--all", a->all, "every layer, also those without findings");
  command->add_flag("--json", a->json, "one JSON object instead of text");
  command->callback([&chosen, a] { chosen = [a] { return check_command(*a); }; });
}

}  // namespace sparkle::cli
