// sparkle tune MODEL | --layers F.csv | --conv TEXT: measures what the planner ranked and keeps what is faster for certain.
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "command.h"
#include "bench_command/layer_list.h"
#include "run_command/model_inputs.h"
#include "run_command/progress.h"
#include "report/bench_rows.h"
#include "run/opening/open_model.h"
#include "measure/tune_layers.h"

namespace sparkle::cli {
namespace {

struct TuneArguments {
  const CLI::App* command = nullptr;
  CommonOptions common;
  std::string model, layers;
  std::vector<std::string> convs, shapes;
  double seconds = 0;
  bool again = false;
};

Result<std::vector<Anchor>> anchors_to_tune(const TuneArguments& a, const Device& device, const PlanOptions& options) {
  if (!a.model.empty()) {
    SPARKLE_TRY(model, read_model(a.model));
    if (model.compiled)
      return Error{Reason::bad_usage,
                   "'" + a.model + "' is compiled, its choices are made; tune the model that it comes from."};
    SPARKLE_TRY(graph, bound_graph(std::move(model.graph), a.shapes));
    return anchors_of(graph, device, options);
  }
  SPARKLE_TRY(problems, listed_problems({a.layers, {}, a.convs, {}, true}));
  std::vector<Anchor> anchors;
  for (const NamedProblem& p : problems) {
    SPARKLE_CHECK(check_type(p.problem, device));
    anchors.push_back(anchor_of(p.name, p.problem, device));
  }
  return anchors;
}

// The store to go on with: what the file holds, or an empty one. Finds out before anything is measured whether it can be
// written.
Result<TuningStore> store_at(const std::string& path, const Device& device) {
  TuningStore store(TuningStore::header_for(device));
  if (std::error_code error; std::filesystem::exists(path, error)) {
    auto loaded = TuningStore::load(path, device);
    if (!loaded.ok())
      return Error{loaded.error().reason, loaded.error().message + " Remove the file, or give --tuning another one."};
    store = std::move(*loaded);
  } else if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) {
    std::filesystem::create_directories(folder, error);
  }
  SPARKLE_CHECK(store.save(path));
  return store;
}

nlohmann::json candidate_json(const Choice& candidate, double seconds) {
  return {{"algorithm", candidate.algorithm},
          {"schedule", to_text(candidate.schedules.front())},
          {"predicted_ms", candidate.cost.seconds * 1e3},
          {"ms", seconds * 1e3}};
}

nlohmann::json json_of(const TuneResult& r, const PlanOptions& options) {
  nlohmann::json json{{"name", r.anchor.name},
                      {"problem", tuning_key(r.anchor.call, options)},
                      {"count", r.anchor.count},
                      {"state", name_of(r.state)}};
  if (r.state != TuneState::tuned) return json;
  json["outcome"] = name_of(r.verdict.outcome);
  json["roofs"] = roof_json(r.roofs);
  json["checked"] = to_text(r.checked), json["wrong"] = r.wrong;
  json["ways"] = r.candidates.size(), json["finalists"] = r.verdict.finalists, json["rounds"] = r.verdict.rounds;
  json["before"] = candidate_json(r.before(), r.before_seconds());
  json["after"] = candidate_json(r.after(), r.after_seconds());
  nlohmann::json& measured = json["measured"] = nlohmann::json::array();
  for (size_t i = 0; i < r.candidates.size(); ++i)
    if (r.verdict.seconds[i] > 0) measured.push_back(candidate_json(r.candidates[i], r.verdict.seconds[i]));
  return json;
}

void print_row(const TuneResult& r) {
  std::printf("%-32.32s %-32.32s ", printable(r.anchor.name).c_str(), short_name(r.anchor.call.problem).c_str());
  if (r.state != TuneState::tuned) {
    const char* why = r.state == TuneState::known             ? "in the store already (--again measures again)"
                      : r.state == TuneState::single          ? "one candidate only"
                      : r.state == TuneState::type_not_served ? "not f32: nothing to choose"
                                                              : "not tuned: no time left";
    std::printf("%s\n", why);
    return;
  }
  for (const std::string& sentence : r.wrong) std::fprintf(stderr, "sparkle: %s It is left out.\n", sentence.c_str());
  const TuneVerdict& v = r.verdict;
  std::printf("%10zu %6d  %-10s %9.4f", r.candidates.size(), v.rounds, r.before().algorithm.c_str(), r.before_seconds() * 1e3);
  if (v.outcome == TuneOutcome::changed) {
    std::printf("  %-10s %9.4f %6.2fx  %s\n", r.after().algorithm.c_str(), r.after_seconds() * 1e3,
                r.before_seconds() / r.after_seconds(), to_text(r.after().schedules.front()).c_str());
  } else {
    std::printf("  %s\n", v.outcome == TuneOutcome::confirmed ? "kept: the fastest" : "kept: others faster only within noise");
  }
}

struct Totals {
  int changed = 0, confirmed = 0, within_noise = 0, others = 0;
  size_t candidates = 0;
  double before = 0, after = 0;

  void add(const TuneResult& r) {
    if (r.state != TuneState::tuned) {
      ++others;
      return;
    }
    const TuneOutcome outcome = r.verdict.outcome;
    ++(outcome == TuneOutcome::changed ? changed : outcome == TuneOutcome::confirmed ? confirmed : within_noise);
    candidates += r.candidates.size();
    before += r.anchor.count * r.before_seconds(), after += r.anchor.count * r.after_seconds();
  }
};

void print_totals(const Totals& t, size_t problems, const std::string& path) {
  std::printf(
      "%zu problems, %zu candidates measured: %d changed, %d the fastest already, %d kept because of noise, %d not tuned\n",
      problems, t.candidates, t.changed, t.confirmed, t.within_noise, t.others);
  if (t.after > 0)
    std::printf("sum of the tuned layers' times %.3f ms before, %.3f ms after: %.3fx\n", t.before * 1e3, t.after * 1e3,
                t.before / t.after);
  std::printf("kept in '%s'; use it with --tuning %s\n", printable(path).c_str(),
              path.find("/tuning-") != std::string::npos ? "kept" : "FILE");
}

Status check_arguments(const TuneArguments& a) {
  const CLI::App& c = *a.command;
  SPARKLE_CHECK(refuse_options(c, {"--algorithm", "--variant"}, "does not go with tune, which finds out what to take"));
  SPARKLE_CHECK(refuse_options(c, {"--fallback"}, "does not go with tune, which measures layers and runs no model"));
  if (a.model.empty() == (a.layers.empty() && a.convs.empty()))
    return Error{Reason::bad_usage, "Give either a model, or --layers and --conv; see 'sparkle tune --help'."};
  if (a.model.empty()) return refuse_options(c, {"--shape"}, "is for a model's inputs");
  return ok();
}

int tune_command(const TuneArguments& a) {
  if (auto fits = check_arguments(a); !fits.ok()) return fail(fits.error());
  auto device = open_device(a.common, Roofs::measured);
  if (!device.ok()) return fail(device.error(), a.common);
  Backend& backend = *device->backend;
  CommonOptions common = a.common;
  common.tuning.clear();  // what is tuned is the planner's own ranking
  auto session = session_options(common, backend.device());
  if (!session.ok()) return fail(session.error());
  const std::string path =
      a.common.tuning.empty() || a.common.tuning == "kept" ? TuningStore::kept_path(backend.device()) : a.common.tuning;
  if (path.empty())
    return fail(
        {Reason::bad_usage, "Neither XDG_CACHE_HOME nor HOME names a folder to keep the choices in; give --tuning FILE."});
  TuneOptions options;
  options.plan = session->plan();
  options.again = a.again;
  auto anchors = anchors_to_tune(a, backend.device(), options.plan);
  if (!anchors.ok()) return fail(anchors.error());
  auto store = store_at(path, backend.device());
  if (!store.ok()) return fail(store.error());

  if (!a.common.json)
    std::printf("%s\n%-32s %-32s %10s %6s  %-10s %9s\n", device->note.c_str(), "layer", "problem", "candidates", "rounds",
                "planned", "ms");
  const double most = options.rule.most_seconds;
  auto begin = std::chrono::steady_clock::now();
  if (a.seconds > 0) options.deadline = begin + std::chrono::nanoseconds(static_cast<int64_t>(std::min(a.seconds, 1e9) * 1e9));
  nlohmann::json rows = nlohmann::json::array();
  Totals totals;
  std::vector<RoofVerdict> roofs;
  Progress progress("tuning", static_cast<int64_t>(anchors->size()), !a.common.json);
  for (size_t i = 0; i < anchors->size(); ++i) {
    if (a.seconds > 0) {  // what is left, in even shares
      const double gone = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      options.rule.most_seconds = std::min(most, (a.seconds - gone) / static_cast<double>(anchors->size() - i));
    }
    auto result = tune_anchor(backend, (*anchors)[i], options, *store);
    if (!result.ok()) return fail(result.error());
    // Planning and self-tests, which happen once for each driver, are no part of what was asked for.
    if (a.seconds > 0) begin += result->trying, options.deadline += result->trying;
    // Problem by problem, so that an end before the end loses nothing.
    if (result->state == TuneState::tuned)
      if (auto saved = store->save(path); !saved.ok()) return fail(saved.error());
    totals.add(*result);
    if (result->state == TuneState::tuned) roofs.push_back(result->roofs);
    progress.clear();
    if (a.common.json) {
      rows.push_back(json_of(*result, options.plan));
    } else {
      print_row(*result);
    }
    std::fflush(stdout);
    progress.step();
  }
  progress.clear();
  if (!a.common.json) {
    if (!roofs.empty()) std::fputs(probes_summary(roofs).c_str(), stdout);
    print_totals(totals, anchors->size(), path);
    return kDone;
  }
  const nlohmann::json json{{"device", backend.device().name},
                            {"cores", backend.device().cores},
                            {"store", path},
                            {"problems", rows},
                            {"changed", totals.changed},
                            {"confirmed", totals.confirmed},
                            {"within_noise", totals.within_noise},
                            {"not_tuned", totals.others},
                            {"ways_measured", totals.candidates},
                            {"before_ms", totals.before * 1e3},
                            {"after_ms", totals.after * 1e3}};
  std::printf("%s\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  return kDone;
}

}  // namespace

void add_tune(CLI::App& app, Chosen& chosen) {
  auto* command =
      app.add_subcommand("tune", "Measure the planner's candidates for each layer and keep what is faster for certain");
  auto a = std::make_shared<TuneArguments>();
  a->command = command;
  add_common(*command, a->common);
  command->add_option("model", a->model, "ONNX file");
  command->add_option("--layers", a->layers, "layer list, CSV: name,n,c,h,w,k,r,s,stride_h,...");
  command->add_option("--conv", a->convs, "a convolution: ic64ih56oc64oh56kh3ph1");
  command->add_option("--shape", a->shapes, "NAME=1x3x224x224 for inputs whose sizes the model leaves open");
  command
      ->add_option(
          "--seconds", a->seconds,
          "most seconds for all layers, beside trying kernels that a driver never ran; else up to 10 of measuring for each")
      ->check(positive_number());
  command->add_flag("--again", a->again, "measure again what the store has already");
  command->callback([&chosen, a] { chosen = [a] { return tune_command(*a); }; });
}

}  // namespace sparkle::cli
