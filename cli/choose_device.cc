#include "choose_device.h"

#include "base/printable.h"
#include "run/choice/choice_inputs.h"
#include "run/choice/offers_here.h"
#include "run_command/model_inputs.h"
#include "run_command/run_options.h"

namespace sparkle::cli {
namespace {

// All but what the model is given; `shapes` says that in words.
ChoiceRequest request_of(const CommonOptions& common, const std::string& model, const std::string& shapes) {
  ChoiceRequest request;
  request.model = model;
  request.shapes = shapes + " " + common.precision + " " + common.plan.algorithm + " " + common.plan.variant + " " +
                   common.plan.fusion + " " + std::to_string(common.plan.accuracy) + " " + common.memory_budget;
  request.backend.threads = common.threads;
  request.backend.try_elsewhere = try_kernels_elsewhere;
  request.options = [common](const Device& device) { return session_options(common, device); };
  return request;
}

ChoiceRequest request_of(const CommonOptions& common, const ModelArguments& arguments) {
  std::string given;
  for (const std::string& text : arguments.shapes) given += text + ";";
  ChoiceRequest request = request_of(common, arguments.model, given);
  request.inputs = [arguments](const std::vector<SessionInput>& wanted) -> Result<std::vector<HostTensor>> {
    if (!arguments.inputs.empty()) {
      std::vector<HostTensor> tensors;
      for (const std::string& path : arguments.inputs) {
        SPARKLE_TRY(tensor, read_tensor_file(path));
        tensors.push_back(std::move(tensor));
      }
      return tensors;
    }
    SPARKLE_TRY(shapes, input_shapes(wanted, arguments.shapes));
    SPARKLE_TRY(tensors, unfilled_inputs(wanted, shapes));
    SPARKLE_CHECK(fill_inputs(wanted, tensors, 1));
    return tensors;
  };
  return request;
}

bool has_choice(const CommonOptions& common) { return common.device == "auto" && common.unit.empty() && may_have_gpu(); }

Result<CommonOptions> decided(const CommonOptions& common, const ChoiceRequest& request, const std::string& whose) {
  CommonOptions chosen = common;
  auto decision = choose_device_here(request);
  if (!decision.ok() && decision.error().reason == Reason::bad_usage) {
    // What it takes depends on sizes that nobody has said yet.
    print_note(whose + "--device auto is cpu: " + decision.error().message);
    return chosen;
  }
  if (!decision.ok()) return decision.take_error();
  chosen.device = decision->device, chosen.chosen = true;
  print_note(whose + "--device auto is " + decision->why);
  return chosen;
}

}  // namespace

bool may_go_elsewhere(const CommonOptions& common) {
  for (const std::string& required : common.require)
    if (required.starts_with("device=")) return false;
  return common.fallback == "allow" || (common.chosen && common.fallback == "warn");
}

Result<CommonOptions> with_device(const CommonOptions& common, const ModelArguments& arguments) {
  if (!has_choice(common)) return common;
  return decided(common, request_of(common, arguments), "");
}

Result<CommonOptions> with_device(const CommonOptions& common, const std::string& model, int64_t rows) {
  if (!has_choice(common)) return common;
  ChoiceRequest request = request_of(common, model, "rows " + std::to_string(rows));
  request.inputs = [rows](const std::vector<SessionInput>& wanted) { return choice_inputs(wanted, {}, rows); };
  return decided(common, request, "of '" + printable(model) + "' ");
}

Result<DeviceDecision> decide_anew(const CommonOptions& common, const ModelArguments& arguments) {
  ChoiceRequest request = request_of(common, arguments);
  request.again = true;
  return choose_device_here(request);
}

}  // namespace sparkle::cli
