// sparkle compare MODEL --against onnxruntime: the values of every tensor within the model, layer by layer, by both engines;
// the first layer that departs is named. Each engine gives the tensors as outputs of the model, so that nothing is fused over
// them; the model as it stands, with all that is fused, is compared last.
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/printable.h"
#include "base/system/cpu_count.h"
#include "bench_command/certificate.h"
#include "command.h"
#include "fix/document/document.h"
#include "fix/proof/runs.h"
#include "loaded_model.h"
#include "peers/onnxruntime_model.h"
#include "peers/peers.h"
#include "report/criterion.h"
#include "run_command/progress.h"

namespace sparkle::cli {
namespace {

constexpr int64_t kBytesAtOnce = int64_t{256} << 20;  // of tensors within that are kept by each engine
constexpr size_t kTensorsAtOnce = 64;                 // where nobody knows how large they are

struct CompareArguments {
  CommonOptions common;
  std::string model, against = "onnxruntime";
  std::vector<std::string> inputs, shapes;
  std::optional<double> atol, rtol;
};

struct Row {
  std::string layer, op, tensor;
  std::string type;     // "f32 1x64x56x56"
  std::string skipped;  // why it was not compared; empty: it was
  Comparison found;
};

struct Engines {
  const CompareArguments& arguments;
  const fix::Document& doc;
  std::shared_ptr<OnnxRuntime> runtime;
  LoadedModel ours;
  Criterion criterion;
  std::vector<std::string> inputs;  // names

  // Both engines' values of these tensors, into the rows of their names.
  Status compare_within(const std::vector<std::string>& tensors, std::map<std::string, Row*>& rows) const {
    SPARKLE_TRY(runner, fix::Runner::open(doc, ours.device.backend, tensors, ours.options));
    const std::vector<std::string> wanted(runner.names().begin() + static_cast<std::ptrdiff_t>(runner.outputs()),
                                          runner.names().end());
    for (const std::string& name : tensors)
      if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) rows[name]->skipped = "a constant here";
    if (wanted.empty()) return ok();
    SPARKLE_TRY(actual, runner.run(ours.inputs));
    ::onnx::ModelProto message = doc.model();
    for (const std::string& name : wanted) message.mutable_graph()->add_output()->set_name(name);
    SPARKLE_TRY(theirs, opened(message, wanted, false));
    SPARKLE_CHECK(theirs->run(false));
    for (size_t t = 0; t < wanted.size(); ++t) {
      const auto expected = theirs->result(t);
      if (expected.ok()) compare_into(*rows[wanted[t]], actual[runner.outputs() + t], *expected);
      else rows[wanted[t]]->skipped = expected.error().message;
    }
    return ok();
  }

  // The outputs of the model as each engine runs it.
  Status compare_outputs(std::vector<Row>& rows) const {
    std::vector<std::string> names;
    for (const SessionInput& o : ours.session->outputs()) names.push_back(o.name);
    SPARKLE_TRY(actual, ours.session->run(ours.inputs));
    SPARKLE_TRY(theirs, opened(doc.model(), names, true));
    SPARKLE_CHECK(theirs->run(false));
    for (size_t o = 0; o < names.size(); ++o) {
      Row& row = rows.emplace_back(Row{"the whole model", "", names[o], "", "", {}});
      const auto expected = theirs->result(o);
      if (expected.ok()) compare_into(row, actual[o], *expected);
      else row.skipped = expected.error().message;
    }
    return ok();
  }

 private:
  Result<std::unique_ptr<RuntimeModel>> opened(const ::onnx::ModelProto& message, const std::vector<std::string>& outputs,
                                               bool optimised) const {
    const std::string bytes = message.SerializeAsString();
    if (bytes.empty())
      return Error{Reason::size_overflow, "The model '" + doc.name() +
                                              "' is larger than the 2 GiB that one message may have, and cannot be compared."};
    SPARKLE_TRY(model, RuntimeModel::of_bytes(runtime, bytes, inputs, outputs, optimised));
    SPARKLE_CHECK(model->give(ours.inputs));
    return model;
  }
  void compare_into(Row& row, const HostTensor& actual, const HostTensor& expected) const {
    row.type = std::string(name_of(expected.dtype)) + " " + expected.shape.to_string();
    row.found = criterion.compare(actual, expected);
    if (!row.found.equal) row.found.problem += " (" + criterion.text(expected.dtype) + ")";
  }
};

// The tensors that nodes make, in the order of their nodes, outputs of the model among them left out: they come last.
std::vector<Row> rows_of(const fix::Document& doc) {
  std::vector<Row> rows;
  for (int n = 0; n < doc.graph().node_size(); ++n) {
    const ::onnx::NodeProto& node = doc.graph().node(n);
    for (const std::string& tensor : node.output())
      if (!tensor.empty() && !doc.is_output(tensor))
        rows.push_back({fix::label_of(node, n), node.op_type(), tensor, "", "", {}});
  }
  return rows;
}

// Groups that keep both engines' tensors within bounds.
std::vector<std::vector<std::string>> groups_of(const std::vector<Row>& rows, const fix::Document& doc,
                                                const std::vector<HostTensor>& inputs) {
  std::vector<InputBinding> bindings;
  for (const HostTensor& t : inputs) bindings.push_back({t.shape, t.elements() <= 4096 ? std::optional(t) : std::nullopt});
  const auto known = fix::infer_tensors(doc, bindings);
  std::vector<std::vector<std::string>> groups;
  int64_t bytes = 0;
  for (const Row& row : rows) {
    int64_t more = kBytesAtOnce / static_cast<int64_t>(kTensorsAtOnce);
    if (known.ok())
      if (const auto at = known->find(row.tensor); at != known->end())
        more = at->second.shape.product() * size_of(at->second.dtype);
    if (groups.empty() || bytes + more > kBytesAtOnce) groups.emplace_back(), bytes = 0;
    groups.back().push_back(row.tensor);
    bytes += more;
  }
  return groups;
}

int show(const CompareArguments& a, const Engines& engines, const std::vector<Row>& rows) {
  const Row* first = nullptr;
  size_t compared = 0, departed = 0, skipped = 0;
  nlohmann::json list = nlohmann::json::array();
  const bool json = a.common.json;
  if (!json)
    std::printf("%s; '%s' beside ONNX Runtime %s\n%-6s %-32s %-18s %-24s %12s  %s\n", engines.ours.device.note.c_str(),
                printable(a.model).c_str(), printable(engines.runtime->version()).c_str(), "", "layer", "operator", "tensor",
                "difference", "");
  std::set<std::string> criteria;
  for (const Row& row : rows) {
    const bool was = row.skipped.empty();
    const bool same = was && row.found.equal;
    ++(was ? compared : skipped);
    if (was && !same) {
      ++departed;
      if (!first) first = &row;
    }
    if (was)
      if (const auto type = dtype_from(row.type.substr(0, row.type.find(' ')))) criteria.insert(engines.criterion.text(*type));
    const char* word = !was ? "SKIP" : same ? "same" : "DIFF";
    if (json) {
      list.push_back(
          {{"layer", row.layer}, {"operator", row.op}, {"tensor", row.tensor}, {"type", row.type}, {"verdict", word}});
      if (was) list.back()["relative_difference"] = row.found.relative_error();
      if (!was || !same) list.back()["detail"] = was ? row.found.problem : row.skipped;
    } else {
      char difference[24] = "";
      if (was) std::snprintf(difference, sizeof difference, "%.1e", row.found.relative_error());
      std::printf("%-6s %-32.32s %-18.18s %-24.24s %12s  %s\n", word, printable(row.layer).c_str(), row.op.c_str(),
                  printable(row.tensor).c_str(), difference,
                  printable_sentence(was ? same ? row.type : row.found.problem : row.skipped).c_str());
    }
  }
  std::string by;
  for (const std::string& text : criteria) by += (by.empty() ? "" : "; ") + text;
  if (json) {
    nlohmann::json all{{"model", printable(a.model)},
                       {"file", a.model},
                       {"rows", list},
                       {"compared", compared},
                       {"different", departed},
                       {"skipped", skipped},
                       {"criterion", by},
                       {"first_to_depart", nullptr},
                       {"versions", {{"onnxruntime", engines.runtime->version()}}}};
    if (first) all["first_to_depart"] = {{"layer", first->layer}, {"operator", first->op}, {"tensor", first->tensor}};
    std::printf("%s\n", certified(all).dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    std::printf(
        "%zu tensors compared, %zu differ, %zu skipped; differences are shares of the largest value, a here, b there; %s\n",
        compared, departed, skipped, by.c_str());
    if (first)
      std::printf("The first that departs is the tensor '%s' of %s%s%s: %s\n", printable(first->tensor).c_str(),
                  printable(first->layer).c_str(), first->op.empty() ? "" : ", ", first->op.c_str(),
                  printable_sentence(first->found.problem).c_str());
  }
  return departed > 0 ? kCheckFailed : kDone;
}

int compare_models(const CompareArguments& a) {
  auto file = onnxruntime_file(a.against);
  if (!file.ok()) return fail(file.error());
  auto runtime = OnnxRuntime::open(*file, usable_threads(a.common.threads).threads);
  if (!runtime.ok()) return fail(runtime.error());
  auto doc = fix::Document::read(a.model);
  if (!doc.ok()) return fail(doc.error());
  auto graph = doc->to_graph();
  if (!graph.ok()) return fail(graph.error());
  auto loaded = load_model(a.common, {a.model, a.inputs, a.shapes}, Roofs::kept_or_estimated);
  if (!loaded.ok()) return fail(loaded.error(), a.common);
  Engines engines{a, *doc, *runtime, std::move(*loaded), criterion_for(*graph), {}};
  engines.criterion.atol = a.atol, engines.criterion.rtol = a.rtol;
  for (const SessionInput& i : engines.ours.session->inputs()) engines.inputs.push_back(i.name);
  std::vector<Row> rows = rows_of(*doc);
  std::map<std::string, Row*> by_tensor;
  for (Row& row : rows) by_tensor[row.tensor] = &row;
  const auto groups = groups_of(rows, *doc, engines.ours.inputs);
  Progress progress("tensors", static_cast<int64_t>(rows.size()), !a.common.json);
  for (const auto& group : groups) {
    if (auto done = engines.compare_within(group, by_tensor); !done.ok()) return fail(done.error());
    progress.step(static_cast<int64_t>(group.size()));
  }
  progress.clear();
  if (auto done = engines.compare_outputs(rows); !done.ok()) return fail(done.error());
  return show(a, engines, rows);
}

}  // namespace

void add_compare(CLI::App& app, Chosen& chosen) {
  auto* command = app.add_subcommand("compare", "Compare a model's tensors layer by layer with another engine's");
  auto a = std::make_shared<CompareArguments>();
  add_common(*command, a->common);
  command->add_option("model", a->model, "ONNX file")->required();
  command->add_option("--against", a->against, "the other engine: onnxruntime, or onnxruntime=LIBRARY")->capture_default_str();
  command->add_option("--input", a->inputs, "TensorProto or .npy file, one per input of the model; else seeded random values")
      ->allow_extra_args(false);
  command->add_option("--shape", a->shapes, "NAME=1x3x224x224 for inputs whose sizes the model leaves open")
      ->allow_extra_args(false);
  add_tolerances(*command, a->atol, a->rtol);
  command->callback([&chosen, a] { chosen = [a] { return compare_models(*a); }; });
}

}  // namespace sparkle::cli
