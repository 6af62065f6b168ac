#include "loaded_model.h"

#include "choose_device.h"
#include "onnx/npy.h"
#include "onnx/tensor_file.h"
#include "run/opening/open_model.h"
#include "run_command/model_inputs.h"

namespace sparkle::cli {
namespace {

Result<HostTensor> read_tensor(const std::string& path) {
  if (path.ends_with(".npy")) return read_npy(path);
  SPARKLE_TRY(tensor, read_tensor_pb(path));
  return std::move(tensor.value);
}

Status prepared(Session& session, const std::vector<HostTensor>& inputs) {
  SPARKLE_TRY(plan, session.prepare(inputs));
  return ok();
}

}  // namespace

Result<LoadedModel> load_model(const CommonOptions& common, const ModelArguments& arguments, Roofs roofs) {
  LoadedModel l;
  SPARKLE_TRY(here, with_device(common, arguments));
  SPARKLE_TRY(device, open_device(here, roofs));
  l.device = std::move(device);
  SPARKLE_TRY(options, session_options(common, l.device.backend->device()));
  l.options = options;
  SPARKLE_TRY(model, read_model(arguments.model));
  SPARKLE_TRY(session, open_session(std::move(model), l.device.backend, options));
  l.session = std::move(session);
  if (arguments.inputs.empty()) {
    SPARKLE_TRY(shapes, input_shapes(l.session->inputs(), arguments.shapes));
    SPARKLE_TRY(unfilled, unfilled_inputs(l.session->inputs(), shapes));
    // The plan first: nothing is filled that the memory budget has no room for.
    SPARKLE_CHECK(prepared(*l.session, unfilled));
    SPARKLE_CHECK(fill_inputs(l.session->inputs(), unfilled, 1));
    l.inputs = std::move(unfilled);
  } else {
    for (const std::string& path : arguments.inputs) {
      SPARKLE_TRY(tensor, read_tensor(path));
      l.inputs.push_back(std::move(tensor));
    }
  }
  return l;
}

}  // namespace sparkle::cli
