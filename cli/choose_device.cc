#include "choose_device.h"

#include "run/choice/offers_here.h"
#include "run_command/model_inputs.h"
#include "run_command/run_options.h"

namespace sparkle::cli {
namespace {

ChoiceRequest request_of(const CommonOptions& common, const ModelArguments& arguments) {
  ChoiceRequest request;
  request.model = arguments.model;
  for (const std::string& text : arguments.shapes) request.shapes += text + ";";
  request.shapes += " " + common.precision + " " + common.plan.algorithm + " " + common.plan.variant + " " +
                    common.plan.fusion + " " + std::to_string(common.plan.accuracy) + " " + common.memory_budget;
  request.backend.threads = common.threads;
  request.backend.try_elsewhere = try_kernels_elsewhere;
  request.options = [common](const Device& device) { return session_options(common, device); };
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

}  // namespace

Result<CommonOptions> with_device(const CommonOptions& common, const ModelArguments& arguments) {
  CommonOptions chosen = common;
  if (common.device != "auto" || !common.unit.empty() || !may_have_gpu()) return chosen;
  auto decision = choose_device_here(request_of(common, arguments));
  if (!decision.ok() && decision.error().reason == Reason::bad_usage) {
    // What it takes depends on sizes that nobody has said yet.
    print_note("--device auto is cpu: " + decision.error().message);
    return chosen;
  }
  if (!decision.ok()) return decision.take_error();
  chosen.device = decision->device, chosen.chosen = true;
  print_note("--device auto is " + decision->why);
  return chosen;
}

Result<DeviceDecision> decide_anew(const CommonOptions& common, const ModelArguments& arguments) {
  ChoiceRequest request = request_of(common, arguments);
  request.again = true;
  return choose_device_here(request);
}

}  // namespace sparkle::cli
