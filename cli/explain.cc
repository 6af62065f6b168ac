// sparkle explain MODEL | --conv TEXT: the whole plan, also for a machine that is not here (--device NAME or FILE.json); with
// --levels the plans of several, side by side.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/text/listed.h"
#include "base/printable.h"
#include "command.h"
#include "device/known/known_devices.h"
#include "bench_command/layer_list.h"
#include "run_command/model_inputs.h"
#include "plan/choose/forced.h"
#include "plan/explain.h"
#include "plan/levels.h"
#include "run/opening/kernel_sources.h"
#include "run/opening/open_model.h"
#include "measure/prepared_layer.h"

namespace sparkle::cli {
namespace {

struct ExplainArguments {
  CommonOptions common;
  std::string model, conv;
  std::string stored;  // the type of the tensors of --conv; empty: f32
  std::vector<std::string> shapes;
  ExplainOptions explain;
  bool plan_text = false, levels = false, planes = false;
  std::string source;  // what a GPU is given for the steps whose name contains this
};

// A plan of one step for a convolution with what `bench --conv` and `tune --conv` put behind it.
Result<Plan> plan_of_conv(const std::string& text, const std::string& stored, bool planes, const Device& device,
                          const PlanOptions& options) {
  SPARKLE_CHECK(check_forced(options));
  SPARKLE_TRY(listed, listed_problems({{}, {}, {text}, {}, true}));
  Problem& problem = listed[0].problem;
  if (!stored.empty()) problem.dtype = stored;
  SPARKLE_CHECK(check_type(problem, device));
  auto choice = choose(call_of(problem, device, planes), device, options);
  if (!choice.ok()) return choice.take_error();
  SPARKLE_CHECK(check_as_forced(*choice, short_name(problem), options));
  Plan plan;
  plan.model = text;
  plan.device = device.name;
  plan.calibrated = device.calibrated;
  for (size_t i = 0; i < choice->plan.stages.size(); ++i) {
    PlanStep step;
    step.name = short_name(problem);
    step.algorithm = choice->algorithm;
    step.problem = to_text(problem);
    step.stage = choice->plan.stages[i].stage;
    step.schedule = choice->schedules[i];
    step.footprint = choice->footprints[i];
    step.cost = choice->costs[i];
    if (i == 0) step.candidates = choice->candidates;
    // Weights and bias, of the stage that takes them as they are: tensors of the plan by number.
    const StageUse& use = choice->plan.stages[i];
    step.inputs = use.inputs, step.outputs = use.outputs;
    plan.steps.push_back(std::move(step));
  }
  return plan;
}

Result<Plan> plan_of_compiled(const CompiledModel& model, const Device& device, const SessionOptions& options,
                              const std::vector<std::string>& given_shapes) {
  SPARKLE_CHECK(model.check_device(device));
  SPARKLE_CHECK(check_options(model, options));
  if (!given_shapes.empty())
    return Error{Reason::bad_usage, "--shape is for models; '" + model.name() + "' is compiled for its shapes."};
  return model.plan();
}

Result<Plan> plan_of_graph(Graph graph, const ExplainArguments& a, const Device& device, const PlanOptions& options) {
  SPARKLE_TRY(bound, bound_graph(std::move(graph), a.shapes));
  auto plan = make_plan(bound, device, options);
  // Where the device is here, what it has no kernel for is the host's, as in a run. --levels is about the device alone.
  const bool lacking = plan.ok() ? !has_all_kernels(*plan) : plan.error().reason == Reason::no_kernel;
  const bool here = !names_description(a.common.device) && !is_known_device(a.common.device) && a.common.device != "reference";
  if (!lacking || !here || a.levels || a.common.fallback == "forbid") return plan;
  CommonOptions cpu;
  cpu.threads = a.common.threads;
  SPARKLE_TRY(host, describe_device(cpu));
  PlanOptions with_host = options;
  with_host.host_device = &host;
  return make_plan(bound, device, with_host);
}

// What is planned: a model as it was read, or the convolution of --conv.
Result<ModelFile> model_of(const ExplainArguments& a) {
  return a.conv.empty() ? read_model(a.model) : Result<ModelFile>(ModelFile{});
}

Result<Plan> plan_of(const ExplainArguments& a, const CompiledModel* compiled, Graph graph, const Device& device,
                     const CommonOptions& common) {
  SPARKLE_TRY(session, session_options(common, device));
  const PlanOptions options = session.plan();
  SPARKLE_TRY(plan, !a.conv.empty() ? plan_of_conv(a.conv, a.stored, a.planes, device, options)
                    : compiled      ? plan_of_compiled(*compiled, device, session, a.shapes)
                                    : plan_of_graph(std::move(graph), a, device, options));
  SPARKLE_CHECK(check_fallback(plan, common));
  return plan;
}

// What the device would be given for the steps whose name contains `part`.
int explain_sources(const Plan& plan, const Device& device, const std::string& part, bool conv) {
  std::string text;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    if (!is_step_named(plan, step, part) || step.runs_on != RunsOn::device) continue;
    uint32_t constants = 0;
    for (size_t o = 0; o < step.inputs.size() && o < 32; ++o) {
      const auto at = static_cast<size_t>(step.inputs[o]);
      // Of a convolution alone weights and bias are operands 1 and 2.
      const bool constant = conv ? at == 1 || at == 2 : plan.tensors[at].kind == PlaceKind::constant;
      if (constant) constants |= 1u << o;
    }
    auto sources = kernel_sources(step.stage, step.schedule, device, constants);
    if (!sources.ok()) return fail(sources.error());
    text += "step " + std::to_string(i) + ", " + step.name + ": " + step.algorithm + ", " + variant_of(step.schedule) + ", " +
            unit_of(step.schedule) + "\n" + *sources;
  }
  if (text.empty())
    return fail(
        {Reason::bad_usage, "No step of the plan has a name that contains '" + part + "'; 'sparkle explain' lists them."});
  std::fputs(printable_lines(text).c_str(), stdout);
  return kDone;
}

int explain_levels(const ExplainArguments& a, const ModelFile& model) {
  std::vector<DevicePlan> plans;
  for (const std::string& name : comma_separated(a.common.device)) {
    CommonOptions common = a.common;
    common.device = name;
    auto device = describe_device(common);
    if (!device.ok()) return fail(device.error(), common);
    auto plan = plan_of(a, model.compiled.get(), model.graph, *device, common);
    if (!plan.ok()) return fail(plan.error(), a.common);
    const std::string called = names_description(name) ? std::filesystem::path(name).stem().string() : name;
    plans.push_back({called, std::move(*device), std::move(*plan)});
  }
  if (a.common.json) std::printf("%s\n", levels_json(plans, a.explain.step).c_str());
  else std::fputs(levels_text(plans, a.explain.step).c_str(), stdout);
  return kDone;
}

int explain_command(const ExplainArguments& a) {
  if (a.model.empty() == a.conv.empty())
    return fail({Reason::bad_usage, "Give either a model or --conv; see 'sparkle explain --help'."});
  if (a.plan_text && !a.conv.empty())
    return fail({Reason::bad_usage, "--plan prints the plan of a model; for a convolution alone there is --candidates."});
  if (a.planes && a.conv.empty())
    return fail({Reason::bad_usage, "--planes is for --conv; the tensors of a model lie as its plan says."});
  if (a.levels && (a.plan_text || a.explain.candidates))
    return fail({Reason::bad_usage, "--levels is a page of its own: leave out --plan and --candidates."});
  if (!a.source.empty() && (a.plan_text || a.levels || a.common.json || a.explain.candidates))
    return fail({Reason::bad_usage, "--source is a page of its own: leave out --plan, --levels, --candidates and --json."});
  if (!a.levels && a.common.device.find(',') != std::string::npos && !names_description(a.common.device))
    return fail({Reason::bad_usage, "'" + a.common.device + "' names several devices, which is for --levels alone."});
  auto device = a.levels ? Result<Device>(Device{}) : describe_device(a.common);
  if (!device.ok()) return fail(device.error(), a.common);
  auto model = model_of(a);
  if (!model.ok()) return fail(model.error());
  if (a.levels) return explain_levels(a, *model);
  auto plan = plan_of(a, model->compiled.get(), std::move(model->graph), *device, a.common);
  if (!plan.ok()) return fail(plan.error(), a.common);
  if (!a.source.empty()) return explain_sources(*plan, *device, a.source, !a.conv.empty());
  if (a.plan_text) {
    std::fputs(printable_lines(to_text(*plan)).c_str(), stdout);
  } else if (a.common.json) {
    std::printf("%s\n", explain_json(*plan, *device).c_str());
  } else {
    std::fputs(explain(*plan, *device, a.explain).c_str(), stdout);
    if (!device->calibrated && !names_description(a.common.device) && !is_known_device(a.common.device) &&
        a.common.device != "reference")
      std::fputs("The rates are estimates from clock, lanes and caches; 'sparkle devices' measures and keeps them.\n", stdout);
  }
  return kDone;
}

}  // namespace

void add_explain(CLI::App& app, Chosen& chosen) {
  auto* command = app.add_subcommand("explain", "Print the plan of a model or convolution: choices, costs, reasons");
  auto a = std::make_shared<ExplainArguments>();
  add_common(*command, a->common, Machines::described);
  command->add_option("model", a->model, "ONNX file, or a file of 'sparkle compile'");
  command->add_option("--conv", a->conv, "a convolution: ic64ih56oc64oh56kh3ph1");
  command->add_flag("--planes", a->planes, "the convolution's tensors lie plane by plane (NCHW), not channels last");
  command->add_option("--shape", a->shapes, "NAME=1x3x224x224 for inputs whose sizes the model leaves open");
  command->add_option("--step", a->explain.step,
                      "only the step of this name, or where none has it steps whose name contains it");
  command->add_option(
      "--source", a->source,
      "what a GPU is given for the step of this name, or where none has it for steps whose name contains it: kernels, threads, "
      "constants, printed programs");
  command->add_flag("--candidates", a->explain.candidates,
                    "all candidates with cost or reason of rejection; those of other devices are counted");
  command->add_flag("--levels", a->levels,
                    "what each level of memory holds, what fills the lanes, what is in flight and fused; --device may name "
                    "several machines, A,B: side by side");
  command->add_flag("--plan", a->plan_text, "the plan as text, each tensor and step in full");
  command->callback([&chosen, a] {
    if (!a->conv.empty()) a->stored = stored_type(a->common);
    chosen = [a] { return explain_command(*a); };
  });
}

}  // namespace sparkle::cli
