// sparkle eval: an expression of the user's own on tensors from files and on numbers, as docs/expressions.md has it.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/record.h"
#include "families/values/element.h"
#include "onnx/npy.h"
#include "run/evaluate/evaluate_expression.h"
#include "run_command/run_options.h"

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

// "--NAME" or "--NAME=VALUE".
bool is_operand(std::string_view word) {
  if (!word.starts_with("--") || word.size() == 2) return false;
  const std::string_view name = word.substr(2, word.find('=') - 2);
  const auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; };
  return !name.empty() && std::all_of(name.begin(), name.end(), letter);
}

// "--device", "--device=cpu", "-o", "-oFILE.npy".
const CLI::Option* option_of(const CLI::App& command, const std::string& word) {
  if (word.starts_with("-o") && word.ends_with(".npy")) return command.get_option_no_throw("-o");
  if (word.size() != 2 && !word.starts_with("--")) return nullptr;
  return word.starts_with("-") ? command.get_option_no_throw(word.substr(0, word.find('='))) : nullptr;
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
  if (!device.ok()) return fail(device.error(), common);
  const auto options = session_options(common, device->backend->device());
  if (!options.ok()) return fail(options.error());
  ExpressionRunner runner(device->backend, *options);
  RunReport report;
  const auto result = runner.run(o.expression, *arguments, &report);
  if (!result.ok()) return fail(result.error(), common);
  if (auto fast = check_fallback(*report.plan, common); !fast.ok()) return fail(fast.error(), common);
  if (!o.output.empty())
    if (const Status written = write_npy(o.output, *result); !written.ok()) return fail(written.error());
  nlohmann::json json = show(*result, common.json);
  if (!o.output.empty()) json["output"] = o.output;
  if (common.json) std::printf("%s\n", json.dump().c_str());
  return kDone;
}

}  // namespace

void guard_expression(const CLI::App& command, std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    const bool marked = words[i] == "--";
    if (marked) words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
    if (i == words.size()) return;
    std::string& word = words[i];
    if (const CLI::Option* option = marked ? nullptr : option_of(command, word)) {
      const bool whole = word.size() > 2 && (!word.starts_with("--") || word.find('=') != std::string::npos);
      if (option->get_items_expected_min() > 0 && !whole) ++i;
      continue;
    }
    if (word.starts_with("-") && (marked || !is_operand(word))) word.insert(0, 1, ' ');
    return;
  }
}

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
    options->expression.erase(0, options->expression.find_first_not_of(' '));
    options->arguments = command->remaining();
    chosen = [common, options] { return eval(*common, *options); };
  });
}

}  // namespace sparkle::cli
