// Models fixed by sparkle.h.
#include <sstream>

#include "base/files/new_file.h"
#include "api/handles.h"
#include "device/known/known_devices.h"
#include "fix/report_json.h"

using namespace sparkle;
using sparkle::api::guarded;

namespace {

Error unknown(const char* what, const std::string& given, const char* known) {
  return {Reason::bad_usage, std::string(what) + " is " + known + ", not '" + given + "'."};
}

Result<Device> target_of(const char* name, const Device& here) {
  if (!name) return here;
  return described_device(name);
}

Result<fix::FixOptions> options_of(const sparkle_fix_options* given, const fix::Document& model, const Device& here) {
  fix::FixOptions options;
  sparkle_fix_options whole{};
  if (given) {
    SPARKLE_CHECK(api::check_size("sparkle_fix_options", given->size, sizeof whole));
    whole = *given;
  }
  const auto& [size, precision, target, only, calibration, proof, max_extra, multiple] = whole;
  (void)size;
  if (precision && (!parse_name(precision, options.precision) || options.precision == Precision::tf32))
    return unknown("precision", precision, "'fp16', 'bf16' or 'int8'");
  if (calibration && !fix::parse_name(calibration, options.quantize.cut))
    return unknown("calibration", calibration, "'mse', 'minmax', 'percentile' or 'entropy'");
  if (proof && !fix::parse_name(proof, options.proof))
    return unknown("proof", proof, "'best', 'reference', 'planned' or 'none'");
  std::istringstream rules(only ? only : "");
  for (std::string rule; std::getline(rules, rule, ',');) options.only.push_back(rule);
  SPARKLE_CHECK(fix::check_rules(options));
  if (!(max_extra >= 0) || multiple < 0 || multiple > 256)
    return Error{Reason::bad_usage, "max_extra is 0 or more percent, multiple 0 to 256 channels."};
  if (max_extra > 0) options.max_extra = max_extra / 100;
  SPARKLE_TRY(device, target_of(target, here));
  fix::take_sizes(device, model, multiple, options);
  return options;
}

}  // namespace

sparkle_status sparkle_fix(sparkle_device* device, const char* path, const char* output, const sparkle_fix_options* given,
                           const sparkle_tensor* samples, size_t sample_count, char** json) {
  return guarded([&]() -> Status {
    if (!device || !path || !output)
      return Error{Reason::bad_usage, "sparkle_fix needs a device, a path and the path of its output."};
    SPARKLE_CHECK(check_apart(output, path));
    SPARKLE_TRY(document, fix::Document::read(path));
    SPARKLE_TRY(options, options_of(given, document, device->backend->device()));
    SPARKLE_TRY(borrowed, api::borrow(samples, sample_count, "sample"));
    const auto inputs = static_cast<size_t>(document.graph().input_size());
    if (inputs == 0 ? !borrowed.empty() : borrowed.size() % inputs != 0)
      return Error{Reason::bad_usage, "The model has " + std::to_string(inputs) + " inputs, and " +
                                          std::to_string(borrowed.size()) +
                                          " tensors were given; give one for each input of each sample."};
    for (size_t i = 0; i < borrowed.size(); i += inputs)
      options.samples.emplace_back(borrowed.begin() + static_cast<long>(i), borrowed.begin() + static_cast<long>(i + inputs));
    SPARKLE_TRY(fixed, fix::fix_model(document, options, device->backend));
    SPARKLE_CHECK(write_model_proto(std::move(fixed.model.model()), output));
    if (json)
      *json = api::new_text(fix::report_json(fixed.report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return ok();
  });
}
