// sparkle verify DIR...: ONNX test directories (model.onnx or NAME.onnx, test_data_set_*), one line each; or a model that lies
// in such a directory under another name. Of compiled files every byte of the weights is checked first.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/printable.h"
#include "command.h"
#include "onnx/tensor_file.h"
#include "report/criterion.h"
#include "run/opening/open_model.h"

namespace sparkle::cli {
namespace {

namespace fs = std::filesystem;

// --atol and --rtol.
struct Tolerances {
  std::optional<double> atol, rtol;
};

struct Verdict {
  enum Kind { passed, failed, skipped } kind = passed;
  std::string detail;        // of a model that passed without test data: what was checked instead
  double largest_error = 0;  // relative to the largest value
  int sets = 0;
  std::string criterion;  // of outputs that were compared
};

// Operators and types that are not supported yet are skipped by name; everything else that goes wrong is a failure.
Verdict verdict_of(const Error& error) {
  const bool skip = error.reason == Reason::operator_not_served || error.reason == Reason::type_not_served;
  return {skip ? Verdict::skipped : Verdict::failed, error.message.substr(0, error.message.find('\n')), 0, 0, {}};
}

bool has_test_sets(const fs::path& directory) {
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    if (at->path().filename().string().starts_with("test_data_set_")) return true;
  return false;
}

Result<std::vector<HostTensor>> read_set(const fs::path& set, const std::string& prefix) {
  std::vector<HostTensor> tensors;
  for (int i = 0;; ++i) {
    const fs::path file = set / (prefix + "_" + std::to_string(i) + ".pb");
    if (std::error_code unknown; !fs::exists(file, unknown)) break;
    SPARKLE_TRY(tensor, read_tensor_pb(file.string()));
    tensors.push_back(std::move(tensor.value));
  }
  return tensors;
}

// The last part of the path, links and dots followed where it is there.
std::string last_name(const fs::path& path) {
  std::error_code unknown;
  const fs::path whole = fs::weakly_canonical(path, unknown);
  return (unknown ? path : whole).filename().string();
}

fs::path model_in(const fs::path& directory) {
  if (std::error_code unknown; fs::exists(directory / "model.onnx", unknown)) return directory / "model.onnx";
  return directory / (last_name(directory) + ".onnx");
}

// Steps of a plan that run on the plain reference loops of a fast backend.
int plain_steps(const Plan& plan) {
  return static_cast<int>(
      std::count_if(plan.steps.begin(), plan.steps.end(), [](const PlanStep& s) { return variant_of(s.schedule) == "plain"; }));
}

Verdict verify_model(const fs::path& model, const fs::path& directory, std::shared_ptr<Backend> backend,
                     const SessionOptions& options, const CommonOptions& common, const Tolerances& asked) {
  auto read = read_model(model.string());
  if (!read.ok()) {
    const Verdict refused = verdict_of(read.error());
    if (refused.kind == Verdict::skipped && !has_test_sets(directory))
      return {Verdict::failed, "there is no test_data_set_*", 0, 0, {}};
    return refused;
  }
  if (read->compiled)
    if (auto whole = read->compiled->check_weights(); !whole.ok()) return verdict_of(whole.error());
  std::vector<fs::path> sets;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    if (std::error_code unknown; at->is_directory(unknown) && at->path().filename().string().starts_with("test_data_set_"))
      sets.push_back(at->path());
  std::sort(sets.begin(), sets.end());
  if (sets.empty() && read->compiled) {
    // Whole as it was written, and a plan that this build comes to on this machine; there are no outputs to compare.
    auto session = open_session(std::move(*read), std::move(backend), options);
    if (!session.ok()) return verdict_of(session.error());
    return {Verdict::passed, "its weights are what was written; there is no test_data_set_* to compare outputs with", 0, 0, {}};
  }
  if (sets.empty()) return {Verdict::failed, "there is no test_data_set_*", 0, 0, {}};
  Criterion criterion = criterion_for(read->contents());
  criterion.atol = asked.atol, criterion.rtol = asked.rtol;
  auto session = open_session(std::move(*read), std::move(backend), options);
  if (!session.ok()) return verdict_of(session.error());
  Verdict verdict;
  for (const fs::path& set : sets) {
    auto inputs = read_set(set, "input");
    if (!inputs.ok()) return verdict_of(inputs.error());
    auto expected = read_set(set, "output");
    if (!expected.ok()) return verdict_of(expected.error());
    RunReport report;
    auto outputs = (*session)->run(*inputs, &report);
    if (!outputs.ok()) return verdict_of(outputs.error());
    if (outputs->size() != expected->size())
      return {Verdict::failed,
              set.filename().string() + ": it holds " + std::to_string(expected->size()) + " output_*.pb, the model has " +
                  std::to_string(outputs->size()) + " outputs",
              0,
              0,
              {}};
    for (size_t i = 0; i < expected->size(); ++i) {
      const Comparison c = criterion.compare((*outputs)[i], (*expected)[i]);
      if (const std::string text = criterion.text((*expected)[i].dtype); verdict.criterion.find(text) == std::string::npos)
        verdict.criterion += (verdict.criterion.empty() ? "" : "; ") + text;
      verdict.largest_error = std::max(verdict.largest_error, c.relative_error());
      if (!c.equal)
        return {Verdict::failed, set.filename().string() + ", output " + std::to_string(i) + ": " + c.problem,
                c.relative_error(), 0, verdict.criterion};
    }
    const int plain = common.device == "reference" || !report.plan ? 0 : plain_steps(*report.plan);
    if (plain > 0 && common.fallback != "allow") verdict.detail = std::to_string(plain) + " steps on plain loops";
    if (plain > 0 && common.fallback == "forbid")
      return {Verdict::failed, verdict.detail + ", which --fallback forbids", 0, 0, {}};
    ++verdict.sets;
  }
  return verdict;
}

Verdict verify_argument(const fs::path& argument, const std::shared_ptr<Backend>& backend, const SessionOptions& options,
                        const CommonOptions& common, const Tolerances& asked) {
  std::error_code unknown;
  if (fs::is_regular_file(argument, unknown)) {
    const fs::path folder = argument.parent_path();
    return verify_model(argument, folder.empty() ? "." : folder, backend, options, common, asked);
  }
  if (!fs::is_directory(argument, unknown)) return {Verdict::failed, "this is neither a directory nor a model", 0, 0, {}};
  const fs::path model = model_in(argument);
  if (!fs::exists(model, unknown))
    return {Verdict::failed, "there is neither model.onnx nor " + model.filename().string(), 0, 0, {}};
  return verify_model(model, argument, backend, options, common, asked);
}

int verify(const CommonOptions& common, const std::vector<std::string>& directories, const Tolerances& asked) {
  auto device = open_device(common);
  if (!device.ok()) return fail(device.error(), common);
  auto options = session_options(common, device->backend->device());
  if (!options.ok()) return fail(options.error());
  int counts[3] = {0, 0, 0};
  nlohmann::json rows = nlohmann::json::array();
  for (const std::string& directory : directories) {
    const Verdict v = verify_argument(directory, device->backend, *options, common, asked);
    ++counts[v.kind];
    constexpr const char* words[] = {"PASS", "FAIL", "SKIP"};
    const std::string name = last_name(directory);
    if (common.json) {
      rows.push_back(
          {{"name", name}, {"verdict", words[v.kind]}, {"detail", v.detail}, {"max_relative_error", v.largest_error}});
      if (!v.criterion.empty()) rows.back()["criterion"] = v.criterion;
    } else if (v.kind == Verdict::passed && v.sets > 0) {
      std::printf("PASS  %-48s %d set%s, largest error %.1e of the largest value; %s\n", printable(name).c_str(), v.sets,
                  v.sets == 1 ? "" : "s", v.largest_error, v.criterion.c_str());
    } else {
      std::printf("%s  %-48s %s%s\n", words[v.kind], printable(name).c_str(), printable_sentence(v.detail).c_str(),
                  v.criterion.empty() ? "" : ("; " + v.criterion).c_str());
    }
    std::fflush(stdout);
  }
  if (common.json) {
    const nlohmann::json all{{"rows", rows}, {"passed", counts[0]}, {"failed", counts[1]}, {"skipped", counts[2]}};
    std::printf("%s\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    std::printf("%d passed, %d failed, %d skipped\n", counts[0], counts[1], counts[2]);
  }
  if (counts[0] + counts[1] == 0)
    std::fprintf(stderr, "sparkle: Nothing was compared: what all %d directories need is not supported.\n", counts[2]);
  return counts[1] > 0 ? kCheckFailed : kDone;
}

}  // namespace

void add_verify(CLI::App& app, Chosen& chosen) {
  auto* command = app.add_subcommand("verify", "Check ONNX test directories against their stored outputs");
  auto options = std::make_shared<CommonOptions>();
  auto directories = std::make_shared<std::vector<std::string>>();
  auto kernels = std::make_shared<bool>(false);
  add_common(*command, *options);
  command->add_option("directories", *directories,
                      "directories with a model and test_data_set_*, or the model in one of them, compiled or not; with "
                      "--kernels: names of kernels, as gemm or gemm/mma");
  command->add_flag("--kernels", *kernels,
                    "the device's kernels instead, each on small operands against its reference in a process of its own");
  auto asked = std::make_shared<Tolerances>();
  add_tolerances(*command, asked->atol, asked->rtol);
  command->callback([&chosen, command, options, directories, kernels, asked] {
    if (!*kernels && directories->empty()) throw CLI::RequiredError("directories");
    chosen = [=] {
      if (!*kernels) return verify(*options, *directories, *asked);
      if (auto fits = refuse_options(*command, {"--atol", "--rtol"}, "is for outputs of models and does not go with --kernels");
          !fits.ok())
        return fail(fits.error());
      return verify_kernels(*options, *directories);
    };
  });
}

}  // namespace sparkle::cli
