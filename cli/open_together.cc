#include "open_together.h"

#include "choose_device.h"
#include "run/opening/open_model.h"

namespace sparkle::cli {

Result<Together> open_model_together(const CommonOptions& common, const std::string& model, Roofs roofs, int64_t rows) {
  if (common.precision != "fp32")
    return Error{Reason::bad_usage, "--precision " + common.precision +
                                        " does not go with several devices; write the model with 'sparkle fix' and run that."};
  if (!common.tuning.empty())
    return Error{Reason::bad_usage,
                 "--tuning is for one device, and --device " + common.device + " are several; leave it out."};
  TogetherRequest request;
  request.devices = common.device;
  request.backend.threads = common.threads;
  request.backend.unit = common.unit;
  request.backend.roofs = roofs;
  request.backend.try_elsewhere = try_kernels_elsewhere;
  request.open = [&](const std::string& name, const OpenBackend& opened) -> Result<std::unique_ptr<Session>> {
    CommonOptions one = common;
    one.device = name;
    SPARKLE_TRY(options, session_options(one, opened));
    SPARKLE_TRY(file, read_model(model));
    return open_session(std::move(file), opened.backend, options, rows);
  };
  request.without_missing = may_go_elsewhere(common);
  SPARKLE_TRY(together, open_together(request));
  for (const OpenBackend& opened : together.backends)
    for (const FallbackEvent& event : opened.events) print_note_once(event.message);
  return together;
}

}  // namespace sparkle::cli
