// sparkle drift MODEL OTHER...: what rounding does to a model that is fed its own outputs; the first is what the others should
// be.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/text/format.h"
#include "command.h"
#include "measure/checks/drift.h"
#include "run/opening/open_model.h"
#include "run_command/model_inputs.h"

namespace sparkle::cli {
namespace {

struct DriftArguments {
  CommonOptions common;
  std::vector<std::string> models, shapes;
  int passes = 25;
  double noise = 0, most = 0;
};

// In a session that is gone before the next model is opened: two of them need not fit into memory.
Result<std::vector<std::vector<HostTensor>>> passes_of_file(const DriftArguments& a, const std::string& path,
                                                            const OpenDevice& device) {
  SPARKLE_TRY(options, session_options(a.common, device.backend->device()));
  SPARKLE_TRY(model, read_model(path));
  SPARKLE_TRY(session, open_session(std::move(model), device.backend, options));
  SPARKLE_TRY(shapes, input_shapes(session->inputs(), a.shapes));
  SPARKLE_TRY(inputs, unfilled_inputs(session->inputs(), shapes));
  SPARKLE_TRY(plan, session->prepare(inputs));
  SPARKLE_CHECK(check_fallback(*plan, a.common));
  SPARKLE_CHECK(fill_inputs(session->inputs(), inputs, 1));
  return passes_of(*session, std::move(inputs), a.passes, a.noise);
}

void print_table(const std::vector<std::string>& models, const std::vector<std::vector<Drift>>& drifts) {
  std::printf(
      "differences from '%s', of outputs of deviation 1: root of the mean square, and the largest as a share of the "
      "largest value\npass",
      printable(models[0]).c_str());
  for (size_t m = 1; m < models.size(); ++m) std::printf("  %22.22s", printable(models[m]).c_str());
  for (size_t p = 0; p < drifts[0].size(); ++p) {
    std::printf("\n%4zu", p + 1);
    for (const auto& model : drifts) std::printf("  %11.3e%11.3e", model[p].error, model[p].largest);
  }
  std::printf("\n");
}

int drift_command(const DriftArguments& a) {
  if (a.models.size() < 2)
    return fail({Reason::bad_usage, "Give the model that the others should agree with, and one of these at least."});
  auto device = open_device(a.common);
  if (!device.ok()) return fail(device.error(), a.common);
  auto exact = passes_of_file(a, a.models[0], *device);
  if (!exact.ok()) return fail(exact.error(), a.common);
  std::vector<std::vector<Drift>> drifts;
  for (size_t m = 1; m < a.models.size(); ++m) {
    auto passes = passes_of_file(a, a.models[m], *device);
    if (!passes.ok()) return fail(passes.error(), a.common);
    auto drift = drift_of(*passes, *exact);
    if (!drift.ok()) return fail(drift.error());
    drifts.push_back(std::move(*drift));
  }
  std::string above;
  nlohmann::json rows = nlohmann::json::array();
  for (size_t m = 0; m < drifts.size(); ++m) {
    nlohmann::json errors = nlohmann::json::array(), largest = nlohmann::json::array();
    for (size_t p = 0; p < drifts[m].size(); ++p) {
      errors.push_back(drifts[m][p].error);
      largest.push_back(drifts[m][p].largest);
      if (a.most > 0 && above.empty() && !(drifts[m][p].error <= a.most))
        above = format("'%s' is %.3e away in pass %zu, and --most allows %.3e.", a.models[m + 1].c_str(), drifts[m][p].error,
                       p + 1, a.most);
    }
    rows.push_back({{"model", a.models[m + 1]}, {"errors", errors}, {"largest", largest}});
  }
  if (a.common.json) {
    const nlohmann::json all{{"exact", a.models[0]}, {"passes", a.passes}, {"noise", a.noise}, {"rows", rows}};
    std::printf("%s\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    print_table(a.models, drifts);
  }
  if (above.empty()) return kDone;
  print_note(above);
  return kCheckFailed;
}

}  // namespace

void add_drift(CLI::App& app, Chosen& chosen) {
  auto* command = app.add_subcommand("drift", "Feed models their own outputs, and compare them pass by pass");
  auto a = std::make_shared<DriftArguments>();
  add_common(*command, a->common);
  command->add_option("models", a->models, "the model that is right, and others of the same inputs and outputs")->required();
  command->add_option("--shape", a->shapes, "NAME=1x3x224x224 for inputs whose sizes the models leave open");
  command->add_option("--passes", a->passes, "passes of each model, 25 by default")->check(CLI::Range(1, 100000));
  command
      ->add_option("--noise", a->noise,
                   "share of seeded normal values in the deviation of what a pass reads, 0 to 1, 0 by default: models that "
                   "come to rest are fed something new with it")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--most", a->most, "status 1 where the root of the mean square is above this in any pass")
      ->check(positive_number());
  command->callback([&chosen, a] { chosen = [a] { return drift_command(*a); }; });
}

}  // namespace sparkle::cli
