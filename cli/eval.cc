// sparkle eval: an expression of the user's own on tensors from files and on numbers, as docs/expressions.md has it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/record.h"
#include "families/element.h"
#include "onnx/npy.h"
#include "run/evaluate_expression.h"
#include "run_options.h"

namespace sparkle::cli {
namespace {

struct EvalOptions {
  std::string expression, output;
  std::vector<std::string> arguments;  // --NAME VALUE, as they stand
};

Result<HostTensor> value_of(const std::string& name, const std::string& text) {
  if (is_tensor_file(text)) return read_tensor_file(text);
  double number = 0;
  if (!record_detail::parse_number(text, number))
    return Error{Reason::bad_usage, "--" + name + " '" + text + "' is neither a .npy or .pb file nor a number."};
  return HostTensor::of<double>(DType::f64, {}, {number});
}

Result<std::vector<ExpressionArgument>> arguments_of(const std::vector<std::string>& words) {
  std::vector<ExpressionArgument> arguments;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const size_t equals = word.find('=');
    const std::string name = word.starts_with("--") ? word.substr(2, equals == std::string::npos ? equals : equals - 2) : "";
    if (name.empty() || (equals == std::string::npos && i + 1 == words.size()))
      return Error{Reason::bad_usage, "'" + word + "' is not understood; give operands as --NAME FILE.npy or --NAME NUMBER."};
    SPARKLE_TRY(tensor, value_of(name, equals == std::string::npos ? words[++i] : word.substr(equals + 1)));
    arguments.push_back({name, std::move(tensor)});
  }
  return arguments;
}

// "f32 2x3: 0.5 1 1.5 ...; from -2 to 3, mean 0.25"
nlohmann::json show(const HostTensor& result, bool quiet) {
  constexpr int64_t kShown = 8;
  const int64_t n = result.elements();
  const auto at = [&](int64_t i) { return load_element(result.dtype, result.bytes.get() + i * size_of(result.dtype)); };
  double least = INFINITY, most = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; ++i) least = std::min(least, at(i)), most = std::max(most, at(i)), sum += at(i);
  nlohmann::json json = {{"dtype", name_of(result.dtype)},
                         {"shape", std::vector<int64_t>(result.shape.begin(), result.shape.end())}};
  const auto number = [](double v) { return std::isfinite(v) ? nlohmann::json(v) : nlohmann::json(std::to_string(v)); };
  if (n > 0) json["min"] = number(least), json["max"] = number(most), json["mean"] = number(sum / static_cast<double>(n));
  if (quiet) return json;
  std::printf("%s %s:", std::string(name_of(result.dtype)).c_str(), result.shape.to_string().c_str());
  for (int64_t i = 0; i < std::min(n, kShown); ++i) std::printf(" %.7g", at(i));
  if (n > kShown) std::printf(" ...; from %.7g to %.7g, mean %.7g", least, most, sum / static_cast<double>(n));
  std::printf("\n");
  return json;
}

int eval(const CommonOptions& common, const EvalOptions& o) {
  const auto arguments = arguments_of(o.arguments);
  if (!arguments.ok()) return fail(arguments.error());
  auto device = open_device(common);
  if (!device.ok()) return fail(device.error());
  const auto options = session_options(common, device->backend->device());
  if (!options.ok()) return fail(options.error());
  ExpressionRunner runner(device->backend, *options);
  RunReport report;
  const auto result = runner.run(o.expression, *arguments, &report);
  if (!result.ok()) return fail(result.error(), common);
  if (const int status = check_fallback(*report.plan, common); status != kDone) return status;
  if (!o.output.empty())
    if (const Status written = write_npy(o.output, *result); !written.ok()) return fail(written.error());
  nlohmann::json json = show(*result, common.json);
  if (!o.output.empty()) json["output"] = o.output;
  if (common.json) std::printf("%s\n", json.dump().c_str());
  return kDone;
}

}  // namespace

void add_eval(CLI::App& app, Chosen& chosen) {
  auto* command = app.add_subcommand("eval", "Compute an expression, 'silu(x) * a + b', of tensors from files and of numbers");
  auto common = std::make_shared<CommonOptions>();
  auto options = std::make_shared<EvalOptions>();
  command->add_option("EXPRESSION", options->expression, "as docs/expressions.md says")->required();
  command->add_option("-o,--output", options->output, "a .npy file for the result");
  command->footer("Operands: --NAME FILE.npy, --NAME FILE.pb or --NAME NUMBER for each name of the expression.");
  add_common(*command, *common);
  command->allow_extras();
  command->callback([command, &chosen, common, options] {
    options->arguments = command->remaining();
    chosen = [common, options] { return eval(*common, *options); };
  });
}

}  // namespace sparkle::cli
