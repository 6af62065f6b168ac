// sparkle compile MODEL -o FILE: the plan and the packed weights in one file, which the other commands and the libraries open
// like a model.
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/files/new_file.h"
#include "command.h"
#include "run_command/model_inputs.h"
#include "plan/explain.h"
#include "prepare/compile_model.h"
#include "run/opening/open_backend.h"
#include "run/opening/open_model.h"

namespace sparkle::cli {
namespace {

struct CompileArguments {
  CommonOptions common;
  std::string model, output;
  std::vector<std::string> shapes;
};

Result<std::vector<Dims>> shapes_of(const Graph& graph, const std::vector<std::string>& given) {
  return input_shapes(declared_tensors(graph, graph.inputs), given);
}

int compile(const CompileArguments& a) {
  if (auto apart = check_apart(a.output, a.model); !apart.ok()) return fail(apart.error());
  const auto begin = std::chrono::steady_clock::now();
  auto read = read_onnx_model(a.model);
  if (!read.ok()) return fail(read.error());
  auto shapes = shapes_of(*read, a.shapes);
  if (!shapes.ok()) return fail(shapes.error());
  auto device = open_device(a.common);
  if (!device.ok()) return fail(device.error(), a.common);
  auto options = session_options(a.common, device->backend->device());
  if (!options.ok()) return fail(options.error());
  options->open_host = open_host;
  auto done = compile_model(std::move(*read), device->backend, *options, *shapes, a.output,
                            [&](const Plan& plan) { return check_fallback(plan, a.common); });
  if (!done.ok()) return fail(done.error(), a.common);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const Plan& plan = *done->plan;
  nlohmann::json inputs = nlohmann::json::array();
  std::string text;
  for (int t : plan.inputs) {
    const PlanTensor& input = plan.tensors[static_cast<size_t>(t)];
    inputs.push_back({{"name", input.name}, {"shape", input.desc.shape.to_string()}});
    text += (text.empty() ? "'" : ", '") + printable(input.name) + "' " + input.desc.shape.to_string();
  }
  if (a.common.json) {
    const nlohmann::json json{{"written", a.output},
                              {"device", device->note},
                              {"host", plan.host},
                              {"inputs", inputs},
                              {"steps", plan.steps.size()},
                              {"file_bytes", done->file_bytes},
                              {"weight_bytes", done->weight_bytes},
                              {"arena_bytes", plan.arena_bytes},
                              {"predicted_ms", plan.predicted_seconds() * 1e3},
                              {"budget_steps", plan.budget_steps},
                              {"budget_lost_ms", plan.budget_seconds * 1e3},
                              {"seconds", seconds}};
    std::printf("%s\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return kDone;
  }
  std::printf("device   %s\n", device->note.c_str());
  std::printf("inputs   %s\n", text.c_str());
  std::printf("plan     %zu steps, %s %.3f ms, arena %s\n", plan.steps.size(), plan.calibrated ? "predicted" : "bound",
              plan.predicted_seconds() * 1e3, format_bytes(plan.arena_bytes).c_str());
  if (!plan.host.empty()) std::printf("host     %s\n", host_note(plan).c_str());
  if (plan.budget_steps > 0) std::printf("budget   %s\n", budget_note(plan).c_str());
  std::printf("written  %s: %s, of them %s packed weights, in %.2f s\n", printable(a.output).c_str(),
              format_bytes(done->file_bytes).c_str(), format_bytes(done->weight_bytes).c_str(), seconds);
  return kDone;
}

}  // namespace

void add_compile(CLI::App& app, Chosen& chosen) {
  auto* command =
      app.add_subcommand("compile", "Plan a model and pack its weights into one file for this machine, mapped when it is used");
  auto a = std::make_shared<CompileArguments>();
  add_common(*command, a->common);
  command->add_option("model", a->model, "ONNX file")->required();
  command->add_option("-o,--output", a->output, "the file to write: NAME.sparkle")->required();
  command->add_option("--shape", a->shapes, "NAME=1x3x224x224 for inputs whose sizes the model leaves open");
  command->callback([&chosen, a] { chosen = [a] { return compile(*a); }; });
}

}  // namespace sparkle::cli
