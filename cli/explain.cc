// sparkle explain MODEL | --conv TEXT: the whole plan, also for a machine that is not here (--device NAME or FILE.json).
#include <cstdio>

#include "base/printable.h"
#include "command.h"
#include "device/known/known_devices.h"
#include "bench_command/layer_list.h"
#include "run_command/model_inputs.h"
#include "plan/choose/forced.h"
#include "plan/explain.h"
#include "run/opening/open_model.h"
#include "measure/prepared_layer.h"

namespace sparkle::cli {
namespace {

struct ExplainArguments {
  CommonOptions common;
  std::string model, conv;
  std::vector<std::string> shapes;
  ExplainOptions explain;
  bool plan_text = false;
};

// A plan of one step for a convolution with what `bench --conv` and `tune --conv` put behind it.
Result<Plan> plan_of_conv(const std::string& text, const Device& device, const PlanOptions& options) {
  SPARKLE_CHECK(check_forced(options));
  SPARKLE_TRY(listed, listed_problems({{}, {}, {text}, {}, true}));
  const Problem& problem = listed[0].problem;
  auto choice = choose(call_of(problem), device, options);
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
  return make_plan(bound, device, options);
}

int explain_command(const ExplainArguments& a) {
  auto device = describe_device(a.common);
  if (!device.ok()) return fail(device.error());
  auto session = session_options(a.common, *device);
  if (!session.ok()) return fail(session.error());
  const PlanOptions options = session->plan();
  if (a.model.empty() == a.conv.empty())
    return fail({Reason::bad_usage, "Give either a model or --conv; see 'sparkle explain --help'."});
  if (a.plan_text && !a.conv.empty())
    return fail({Reason::bad_usage, "--plan prints the plan of a model; for a convolution alone there is --candidates."});
  ModelFile model;
  if (a.conv.empty()) {
    auto read = read_model(a.model);
    if (!read.ok()) return fail(read.error());
    model = std::move(*read);
  }
  auto plan = !a.conv.empty()  ? plan_of_conv(a.conv, *device, options)
              : model.compiled ? plan_of_compiled(*model.compiled, *device, *session, a.shapes)
                               : plan_of_graph(std::move(model.graph), a, *device, options);
  if (!plan.ok()) return fail(plan.error(), a.common);
  if (auto fast = check_fallback(*plan, a.common); !fast.ok()) return fail(fast.error(), a.common);
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
  command->add_option("--shape", a->shapes, "NAME=1x3x224x224 for inputs whose sizes the model leaves open");
  command->add_option("--step", a->explain.step, "only steps whose name contains this");
  command->add_flag("--candidates", a->explain.candidates, "all candidates with cost or reason of rejection");
  command->add_flag("--plan", a->plan_text, "the plan as text, each tensor and step in full");
  command->callback([&chosen, a] { chosen = [a] { return explain_command(*a); }; });
}

}  // namespace sparkle::cli
