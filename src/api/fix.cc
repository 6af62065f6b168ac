// Models fixed by sparkle.h.
#include <algorithm>
#include <cmath>
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
  // All there are: one more does not compile before it is looked at here.
  const auto& [size, precision, target, only, calibration, proof, max_extra, multiple, percentile, min_cosine, min_agreement,
               keep_wide, keep_wide_count, shape_names, shapes, shape_count] = whole;
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
  if (std::isnan(max_extra) || multiple < 0 || multiple > 256)
    return Error{Reason::bad_usage, "max_extra is a number of percent, multiple 0 to 256 channels."};
  if (max_extra != 0) options.max_extra = std::max(0.0, max_extra / 100);
  if (percentile != 0 && !(percentile >= 50 && percentile <= 100))
    return Error{Reason::bad_usage, "percentile is 50 to 100 percent of the values, 0 for 99.99."};
  if (percentile > 0) options.quantize.percentile = percentile;
  if (!(min_cosine >= 0 && min_cosine <= 1) || !(min_agreement <= 100))
    return Error{Reason::bad_usage, "min_cosine is 0 (the default) to 1, min_agreement up to 100 percent."};
  options.least_cosine = min_cosine;
  if (min_agreement != 0) options.least_agreement = std::max(0.0, min_agreement / 100);
  for (size_t i = 0; i < keep_wide_count; ++i) {
    if (!keep_wide || !keep_wide[i]) return Error{Reason::bad_usage, "The name of a layer to keep wide is NULL."};
    options.wide.emplace_back(keep_wide[i]);
  }
  SPARKLE_TRY(named, api::named_shapes(shape_names, shapes, shape_count));
  for (auto& [name, shape] : named) options.shapes[name] = shape;
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
