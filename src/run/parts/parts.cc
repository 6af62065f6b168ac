#include "run/parts/parts.h"

#include <algorithm>
#include <map>

#include "graph/host_inputs.h"
#include "graph/infer/known_types.h"
#include "graph/parts/host_values.h"
#include "run/parts/sequences.h"
#include "run/session.h"

namespace sparkle {
namespace {

constexpr int64_t kMostSteps = 1 << 17;             // of all loops in one run
constexpr int64_t kMostStacked = int64_t{4} << 30;  // bytes that loops of one run may stack up
constexpr int64_t kSmall = 1024;                    // elements of a part's inputs up to which folding it is tried

constexpr size_t kFewOperators = 64;    // of a part that folding is tried on
constexpr int64_t kFewBytes = 1 << 16;  // of its constants

std::string named(const Op& op) { return "Node '" + op.name + "' (" + op.type + "): "; }

Error wrong(const Op& op, Reason reason, const std::string& what) { return {reason, named(op) + what + "."}; }

Result<bool> truth(const Op& op, const PartValue& value) {
  if (value.sequence || !value.given || value.items[0].elements() != 1 || value.items[0].dtype != DType::boolean)
    return wrong(op, Reason::bad_input, "its condition should be one truth value");
  return *value.items[0].data<uint8_t>() != 0;
}

}  // namespace

struct ModelInParts::Part {
  Graph graph;  // until its session is opened
  std::vector<TensorId> inputs, outputs;
  std::shared_ptr<const Graph> small;  // where its operators can be tried on small values without a plan; nullptr: not
  std::shared_ptr<Session> session;
};

struct ModelInParts::Level {
  struct Step {
    std::unique_ptr<Part> part;  // or
    HostPart host;
    std::vector<std::unique_ptr<Level>> bodies;
    std::vector<TensorId> last;
  };
  std::vector<Step> steps;
  std::vector<TensorId> inputs, outputs;
  std::vector<GraphTensor> declared;  // the outputs
  std::vector<std::pair<TensorId, PartValue>> constants;
  size_t tensors = 0;
};

// What all loops of one run have taken.
struct ModelInParts::Run {
  int64_t steps = 0, stacked = 0;

  Status step(const Op& op) {
    if (++steps <= kMostSteps) return ok();
    return wrong(op, Reason::size_overflow,
                 "the loops of this run have taken " + std::to_string(kMostSteps) + " steps, the most that one run may take");
  }
  Status stack(const Op& op, int64_t bytes) {
    if ((stacked += bytes) <= kMostStacked) return ok();
    return wrong(op, Reason::size_overflow, "the loops of this run have stacked up 4 GiB, the most that one run may hold");
  }
};

ModelInParts::ModelInParts(Graph graph, std::shared_ptr<Backend> backend, const SessionOptions& options)
    : name_(graph.name), options_(options), backend_(std::move(backend)) {
  const auto types = known_types(graph);
  inputs_ = declared_tensors(graph, graph.inputs), outputs_ = declared_tensors(graph, graph.outputs);
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (const auto& type = types[static_cast<size_t>(graph.outputs[i])]) outputs_[i].dtype = *type;
  std::map<std::string, int> counts;
  for (const Op& op : graph.ops)
    if (std::holds_alternative<HostOp>(op.params) || std::holds_alternative<NonMaxSuppressionOp>(op.params)) ++counts[op.type];
  std::string why;
  for (const auto& [type, count] : counts) why += (why.empty() ? "" : ", ") + type + " x" + std::to_string(count);
  no_single_plan_ = {Reason::bad_usage, "The model '" + name_ + "' runs in parts, since only its data tells paths or shapes (" +
                                            why + "), so that it has no single plan; it can be run, and nothing else."};
  whole_ = opened(cut(std::move(graph)));
  // The session around them goes on with another device, as a whole.
  options_.next_device = nullptr, options_.events.clear();
  if (!parts_.empty())
    options_.plan_cache_bytes = std::max<int64_t>(options.plan_cache_bytes / static_cast<int64_t>(parts_.size()), 1);
}

ModelInParts::~ModelInParts() = default;

std::unique_ptr<ModelInParts::Level> ModelInParts::opened(CutGraph graph) {
  auto level = std::make_unique<Level>();
  level->inputs = std::move(graph.inputs), level->outputs = std::move(graph.outputs);
  level->tensors = graph.tensors, level->declared = std::move(graph.declared);
  for (auto& [id, value] : graph.constants) level->constants.emplace_back(id, PartValue::of(std::move(value)));
  for (size_t s = 0; s < graph.steps.size(); ++s) {
    Level::Step step;
    step.last = std::move(graph.last[s]);
    if (auto* planned = std::get_if<PlannedPart>(&graph.steps[s])) {
      step.part = std::make_unique<Part>();
      step.part->graph = std::move(planned->graph);
      step.part->inputs = std::move(planned->inputs), step.part->outputs = std::move(planned->outputs);
      int64_t bytes = 0;
      for (const GraphTensor& t : step.part->graph.tensors)
        if (t.constant) bytes += t.constant->size_bytes();
      if (step.part->graph.ops.size() <= kFewOperators && bytes <= kFewBytes)
        step.part->small = std::make_shared<const Graph>(step.part->graph);
      parts_.push_back(step.part.get());
    } else {
      step.host = std::move(std::get<HostPart>(graph.steps[s]));
      for (CutGraph& body : step.host.bodies) step.bodies.push_back(opened(std::move(body)));
      step.host.bodies.clear();
    }
    level->steps.push_back(std::move(step));
  }
  return level;
}

Result<std::vector<HostTensor>> ModelInParts::run(const std::vector<HostTensor>& inputs) {
  SPARKLE_CHECK(check_inputs(inputs_, inputs, false));
  Values values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].bytes && inputs[i].elements() > 0)
      return Error{Reason::bad_input, "Input '" + inputs_[i].name + "' has a shape, but no values."};
    values.push_back(PartValue::of(inputs[i]));
  }
  Run run;
  SPARKLE_TRY(results, run_level(*whole_, values, run));
  std::vector<HostTensor> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].sequence)
      return Error{Reason::operator_not_served,
                   "Output '" + outputs_[i].name + "' is a sequence; only tensors can be outputs of a model here."};
    if (results[i].items[0].dtype != outputs_[i].dtype)
      return Error{Reason::bad_model, "Output '" + outputs_[i].name + "' is declared as " +
                                          std::string(name_of(outputs_[i].dtype)) + ", but its nodes compute " +
                                          std::string(name_of(results[i].items[0].dtype)) + "."};
    outputs.push_back(results[i].items[0]);
  }
  // What comes back is the caller's to write to: no memory of an input or of a constant.
  for (HostTensor& output : outputs) {
    HostTensor own = HostTensor::uninitialized(output.dtype, output.shape);
    std::copy_n(output.bytes.get(), static_cast<size_t>(output.size_bytes()), own.bytes.get());
    output = std::move(own);
  }
  return outputs;
}

Result<ModelInParts::Values> ModelInParts::run_level(Level& level, const Values& inputs, Run& run) {
  Values values(level.tensors);
  const auto at = [&](TensorId id) -> PartValue& { return values[static_cast<size_t>(id)]; };
  for (size_t i = 0; i < level.inputs.size(); ++i) at(level.inputs[i]) = inputs[i];
  for (const auto& [id, value] : level.constants) at(id) = value;
  for (Level::Step& step : level.steps) {
    const std::vector<TensorId>& reads = step.part ? step.part->inputs : step.host.op.inputs;
    const std::vector<TensorId>& makes = step.part ? step.part->outputs : step.host.op.outputs;
    Values from;
    for (TensorId id : reads) from.push_back(id == kAbsent ? PartValue{} : at(id));
    SPARKLE_TRY(results, step.part ? run_part(*step.part, from) : run_host(step.host, step.bodies, from, run));
    for (size_t i = 0; i < makes.size(); ++i)
      if (makes[i] != kAbsent) at(makes[i]) = std::move(results[i]);
    for (TensorId id : step.last) at(id) = {};
  }
  Values outputs;
  for (TensorId id : level.outputs) outputs.push_back(at(id));
  return outputs;
}

Result<std::shared_ptr<Session>> ModelInParts::session_of(Part& part, const std::vector<HostTensor>& inputs) {
  const std::lock_guard lock(mutex_);
  if (part.session) return part.session;
  for (size_t i = 0; i < inputs.size(); ++i) part.graph.tensor(part.graph.inputs[i]).dtype = inputs[i].dtype;
  SPARKLE_TRY(session, Session::open(part.graph, backend_, options_));
  part.session = std::move(session);
  part.graph = {};
  return part.session;
}

// What counts and compares a few numbers, as the bodies of loops do, costs a plan many times what it costs here.
std::optional<ModelInParts::Values> ModelInParts::folded_values(Part& part, const std::vector<HostTensor>& inputs) {
  std::shared_ptr<const Graph> small;
  {
    const std::lock_guard lock(mutex_);
    small = part.small;
  }
  if (!small) return std::nullopt;
  Graph graph = *small;
  std::vector<InputBinding> bindings;
  for (size_t i = 0; i < inputs.size(); ++i) {
    graph.tensor(graph.inputs[i]).dtype = inputs[i].dtype;
    bindings.push_back({inputs[i].shape, inputs[i]});
  }
  auto bound = sparkle::bind(graph, bindings);
  Values values;
  for (size_t i = 0; bound.ok() && i < bound->outputs.size(); ++i)
    if (auto& value = bound->tensor(bound->outputs[i]).constant) values.push_back(PartValue::of(std::move(*value)));
  if (bound.ok() && values.size() == bound->outputs.size()) return values;
  const std::lock_guard lock(mutex_);
  part.small = nullptr;  // what is wrong with the values themselves, its plan says
  return std::nullopt;
}

Result<ModelInParts::Values> ModelInParts::run_part(Part& part, const Values& inputs) {
  std::vector<HostTensor> tensors;
  int64_t elements = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].sequence || !inputs[i].given)
      return Error{Reason::bad_model, "The model '" + name_ + "' reads a sequence where a tensor belongs."};
    tensors.push_back(inputs[i].items[0]);
    elements += tensors.back().elements();
  }
  if (elements <= kSmall)
    if (auto folded = folded_values(part, tensors)) return *std::move(folded);
  SPARKLE_TRY(session, session_of(part, tensors));
  SPARKLE_TRY(results, session->run(tensors));
  Values values;
  for (HostTensor& tensor : results) values.push_back(PartValue::of(std::move(tensor)));
  return values;
}

Result<ModelInParts::Values> ModelInParts::run_host(const HostPart& step, std::vector<std::unique_ptr<Level>>& bodies,
                                                    const Values& inputs, Run& run) {
  const Op& op = step.op;
  const auto& p = std::get<HostOp>(op.params);
  if (p.kind == HostKind::branch) {
    SPARKLE_TRY(taken, truth(op, inputs[0]));
    const size_t body = taken ? 0 : 1;
    const HostInputs at = host_inputs(op, body);
    const auto first = inputs.begin() + static_cast<std::ptrdiff_t>(at.first_read);
    return run_level(*bodies[body], Values(first, first + static_cast<std::ptrdiff_t>(at.read)), run);
  }
  if (p.kind == HostKind::loop) return run_loop(step, *bodies[0], inputs, run);
  if (p.kind == HostKind::scan) return run_scan(step, *bodies[0], inputs, run);
  if (!makes_tensors(p)) {
    SPARKLE_TRY(value, sequence_value(op, inputs));
    return Values{std::move(value)};
  }
  std::vector<const HostTensor*> tensors;
  for (const PartValue& value : inputs) {
    if (value.sequence) return wrong(op, Reason::bad_model, "it reads a sequence where a tensor belongs");
    tensors.push_back(value.given ? &value.items[0] : nullptr);
  }
  SPARKLE_TRY(results, host_values(op, tensors));
  Values values;
  for (HostTensor& tensor : results) values.push_back(PartValue::of(std::move(tensor)));
  return values;
}

namespace {

// Of no steps, along `axis`; the body declares what a slice would be, and of sizes that it leaves open there are no elements.
HostTensor no_slices(const GraphTensor& slice, int64_t axis) {
  Dims shape = slice.shape;
  for (int64_t& size : shape) size = std::max<int64_t>(size, 0);
  const int64_t rank = shape.size() + 1;
  shape.insert(static_cast<int>(std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank - 1)), 0);
  return HostTensor::zeros(slice.dtype, shape);
}

// One list of slices per stacked output; `declared`: the body's outputs, those last.
Result<std::vector<PartValue>> stacked(const Op& op, std::vector<PartValue> results,
                                       std::vector<std::vector<HostTensor>>& slices, const std::vector<int64_t>& axes,
                                       const std::vector<int64_t>& backwards, const std::vector<GraphTensor>& declared) {
  for (size_t k = 0; k < slices.size(); ++k) {
    if (k < backwards.size() && backwards[k] == 1) std::reverse(slices[k].begin(), slices[k].end());
    if (slices[k].empty()) {
      const GraphTensor& slice = declared[declared.size() - slices.size() + k];
      results.push_back(PartValue::of(no_slices(slice, k < axes.size() ? axes[k] : 0)));
      continue;
    }
    SPARKLE_TRY(whole, joined(slices[k], k < axes.size() ? axes[k] : 0, true, named(op)));
    results.push_back(PartValue::of(std::move(whole)));
  }
  return results;
}

}  // namespace

Result<ModelInParts::Values> ModelInParts::run_loop(const HostPart& step, Level& body, const Values& inputs, Run& run) {
  const Op& op = step.op;
  const auto& p = std::get<HostOp>(op.params);
  int64_t most = kMostSteps + 1;
  if (inputs[0].given) {
    if (inputs[0].sequence || inputs[0].items[0].dtype != DType::i64 || inputs[0].items[0].elements() != 1)
      return wrong(op, Reason::bad_input, "its number of steps should be one int64");
    most = *inputs[0].items[0].data<int64_t>();
  }
  bool again = true;
  if (inputs[1].given) {
    SPARKLE_TRY(first, truth(op, inputs[1]));
    again = first;
  }
  const auto own = static_cast<std::ptrdiff_t>(p.own);
  Values state(inputs.begin() + 2, inputs.begin() + own);
  const Values read(inputs.begin() + own, inputs.end());
  std::vector<std::vector<HostTensor>> slices(body.outputs.size() - 1 - state.size());
  for (int64_t i = 0; again && i < most; ++i) {
    SPARKLE_CHECK(run.step(op));
    Values given{PartValue::of(HostTensor::of(DType::i64, {}, std::vector<int64_t>{i})),
                 PartValue::of(HostTensor::of(DType::boolean, {}, std::vector<uint8_t>{1}))};
    given.insert(given.end(), state.begin(), state.end());
    given.insert(given.end(), read.begin(), read.end());
    SPARKLE_TRY(results, run_level(body, given, run));
    SPARKLE_TRY(on, truth(op, results[0]));
    again = on;
    for (size_t k = 0; k < state.size(); ++k) state[k] = std::move(results[1 + k]);
    for (size_t k = 0; k < slices.size(); ++k) {
      PartValue& slice = results[1 + state.size() + k];
      if (slice.sequence) return wrong(op, Reason::bad_model, "it stacks up sequences where tensors belong");
      SPARKLE_CHECK(run.stack(op, slice.items[0].size_bytes() + 64));
      slices[k].push_back(std::move(slice.items[0]));
    }
  }
  return stacked(op, std::move(state), slices, {}, {}, body.declared);
}

Result<ModelInParts::Values> ModelInParts::run_scan(const HostPart& step, Level& body, const Values& inputs, Run& run) {
  const Op& op = step.op;
  const auto& p = std::get<HostOp>(op.params);
  const auto scanned = static_cast<size_t>(p.scanned), states = static_cast<size_t>(p.own) - scanned;
  std::vector<int> axes;
  int64_t steps = -1;
  for (size_t k = 0; k < scanned; ++k) {
    if (inputs[states + k].sequence || !inputs[states + k].given)
      return wrong(op, Reason::bad_model, "it scans a sequence where a tensor belongs");
    const HostTensor& x = inputs[states + k].items[0];
    SPARKLE_TRY(axis, checked_axis(k < p.in_axes.size() ? p.in_axes[k] : 0, x.shape.size(), named(op)));
    axes.push_back(axis);
    if (steps >= 0 && steps != x.shape[axis])
      return wrong(op, Reason::bad_shape,
                   "it scans one tensor of " + std::to_string(steps) + " slices and one of " + std::to_string(x.shape[axis]));
    steps = x.shape[axis];
  }
  Values state(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(states));
  const Values read(inputs.begin() + static_cast<std::ptrdiff_t>(p.own), inputs.end());
  std::vector<std::vector<HostTensor>> slices(body.outputs.size() - states);
  for (int64_t i = 0; i < steps; ++i) {
    SPARKLE_CHECK(run.step(op));
    Values given = state;
    for (size_t k = 0; k < scanned; ++k) {
      const bool back = k < p.in_backwards.size() && p.in_backwards[k] == 1;
      SPARKLE_TRY(slice, sliced(inputs[states + k].items[0], axes[k], back ? steps - 1 - i : i, 1, true, named(op)));
      given.push_back(PartValue::of(std::move(slice)));
    }
    given.insert(given.end(), read.begin(), read.end());
    SPARKLE_TRY(results, run_level(body, given, run));
    for (size_t k = 0; k < states; ++k) state[k] = std::move(results[k]);
    for (size_t k = 0; k < slices.size(); ++k) {
      PartValue& slice = results[states + k];
      if (slice.sequence) return wrong(op, Reason::bad_model, "it stacks up sequences where tensors belong");
      SPARKLE_CHECK(run.stack(op, slice.items[0].size_bytes() + 64));
      slices[k].push_back(std::move(slice.items[0]));
    }
  }
  return stacked(op, std::move(state), slices, p.out_axes, p.out_backwards, body.declared);
}

Status ModelInParts::move_to(std::shared_ptr<Backend> backend) {
  const std::lock_guard lock(mutex_);
  std::vector<Part*> moved;
  for (Part* part : parts_) {
    if (!part->session) continue;
    if (Status done = part->session->move_to(backend); !done.ok()) {
      for (Part* back : moved)
        if (Status again = back->session->move_to(backend_); !again.ok()) return again;
      return done;
    }
    moved.push_back(part);
  }
  backend_ = std::move(backend);
  return ok();
}

std::shared_ptr<Backend> ModelInParts::backend() const {
  const std::lock_guard lock(mutex_);
  return backend_;
}

int64_t ModelInParts::constant_bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t bytes = 0;
  for (const Part* part : parts_)
    if (part->session) bytes += part->session->constant_bytes();
  return bytes;
}

int64_t ModelInParts::cached_bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t bytes = 0;
  for (const Part* part : parts_)
    if (part->session) bytes += part->session->cached_bytes();
  return bytes;
}

}  // namespace sparkle
