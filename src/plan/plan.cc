#include "plan/plan.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/system/out_of_memory.h"
#include "plan/choose/blocks.h"
#include "plan/memory/budget.h"
#include "plan/choose/choose.h"
#include "plan/memory/crossings.h"
#include "plan/memory/host_moves.h"
#include "plan/memory/memory.h"
#include "plan/memory/copy_elimination.h"
#include "plan/fuse/post_op_choice.h"

namespace sparkle {
namespace {

constexpr std::array<std::string_view, 5> kPlaces = {"arena", "input", "output", "constant", "host"};
constexpr std::array<std::string_view, 3> kSides = {"device", "host", "link"};

Stage stage_of(const Draft& draft, const DraftStep& step, const StageParams& params) {
  Stage stage{params, {}, {}};
  for (int v : step.inputs) stage.inputs.push_back(draft.desc(v));
  for (int v : step.outputs) stage.outputs.push_back(draft.desc(v));
  return stage;
}

// Writes the chosen stages of one draft step into the plan. Plan tensors are draft values at first (same numbers), temporaries
// follow.
void append_steps(Plan& plan, const Draft& draft, const DraftStep& draft_step, const Choice& choice, PlanBuffers& buffers) {
  std::vector<int> operands = draft_step.inputs;
  operands.insert(operands.end(), draft_step.outputs.begin(), draft_step.outputs.end());
  for (const TensorDesc& desc : choice.plan.temporaries) {
    operands.push_back(static_cast<int>(plan.tensors.size()));
    plan.tensors.push_back({draft_step.name + "/temporary", desc, PlaceKind::arena, 0, 0});
    buffers.of_tensor.push_back(static_cast<int>(buffers.lives.size()));
    buffers.lives.push_back({extent(desc.shape, desc.layout) * size_of(desc.dtype), 1 << 30, -1, 0});
    buffers.kinds.push_back(PlaceKind::arena);
  }
  for (size_t i = 0; i < choice.plan.stages.size(); ++i) {
    const StageUse& use = choice.plan.stages[i];
    PlanStep step;
    step.name = draft_step.name;
    if (choice.plan.stages.size() > 1) step.name += "/" + std::to_string(i);
    step.nodes = draft_step.nodes;
    step.algorithm = choice.algorithm;
    if (choice.on_host()) step.runs_on = RunsOn::host, step.host_reason = choice.host_reason;
    if (const auto* problem = std::get_if<Problem>(&draft_step.work)) step.problem = to_text(*problem);
    step.stage = use.stage;
    step.schedule = choice.schedules[i];
    step.footprint = choice.footprints[i];
    step.cost = choice.costs[i];
    step.workspace_bytes = choice.footprints[i].workspace_bytes;
    if (i == 0) step.candidates = choice.candidates;
    for (int o : use.inputs) step.inputs.push_back(operands[static_cast<size_t>(o)]);
    for (int o : use.outputs) step.outputs.push_back(operands[static_cast<size_t>(o)]);
    plan.steps.push_back(std::move(step));
  }
  (void)draft;
}

Error at_step(const DraftStep& step, Error error) {
  error.message = "Step '" + step.name + "': " + error.message + ".";
  return error;
}

Result<Choice> choice_on(const Device& device, const Draft& draft, const DraftStep& step, const PlanOptions& options,
                         Approximation approximation, int64_t most_packed) {
  const auto* problem = std::get_if<Problem>(&step.work);
  return problem ? choose(draft.call_of(step, *problem), device, options, approximation, most_packed)
                 : choose(stage_of(draft, step, std::get<StageParams>(step.work)), device, options);
}

// The host's choice for a step; what the device would have taken, or could not take, stands behind it.
std::optional<Choice> choice_of_host(const Draft& draft, const DraftStep& step, const std::vector<Candidate>& of_device,
                                     const PlanOptions& options, Approximation approximation) {
  PlanOptions own = options;  // names of algorithms and variants, and measurements, are the device's
  own.algorithm.clear(), own.variant.clear(), own.tuning = nullptr;
  auto choice = choice_on(*options.host_device, draft, step, own, approximation, std::numeric_limits<int64_t>::max());
  if (!choice.ok() || choice->without_kernel) return std::nullopt;
  choice->host_reason = Reason::no_kernel;
  choice->candidates.insert(choice->candidates.end(), of_device.begin(), of_device.end());
  return std::move(*choice);
}

Result<Choice> choice_of(const Draft& draft, const DraftStep& step, const Device& device, const PlanOptions& options,
                         Approximation approximation, int64_t most_packed = std::numeric_limits<int64_t>::max()) {
  auto choice = choice_on(device, draft, step, options, approximation, most_packed);
  const bool lacking = choice.ok() ? choice->without_kernel : choice.error().reason == Reason::no_kernel;
  if (lacking && options.host_device)
    if (auto of_host =
            choice_of_host(draft, step, choice.ok() ? choice->candidates : std::vector<Candidate>(), options, approximation))
      return std::move(*of_host);
  if (!choice.ok()) return at_step(step, choice.take_error());
  return choice;
}

// Rounding errors add up over the layers of a network, so they are judged for the whole: algorithms with errors of their own
// must spare this share of its time.
constexpr double kLeastShareSpared = 0.05;

// The fastest candidate of each step that computes something, blocks in the place of their layers; `approximation`: whether
// errors were worth it.
Result<std::vector<ChosenStep>> fastest_steps(const Draft& draft, const Device& device, const PlanOptions& options,
                                              Approximation& approximation) {
  std::vector<ChosenStep> chosen(draft.steps.size());
  double seconds = 0, spared = 0;
  for (size_t i = 0; i < chosen.size(); ++i) {
    chosen[i].dropped = draft.desc(draft.steps[i].outputs[0]).elements() == 0;  // nothing to compute
    if (chosen[i].dropped) continue;
    SPARKLE_TRY(found, choice_of(draft, draft.steps[i], device, options, Approximation::allowed));
    seconds += found.cost.seconds, spared += found.spared_seconds;
    chosen[i].choice = std::move(found);
  }
  approximation = spared >= kLeastShareSpared * (seconds + spared) ? Approximation::allowed : Approximation::exact;
  for (size_t i = 0; i < chosen.size(); ++i)
    if (approximation == Approximation::exact && chosen[i].choice.spared_seconds > 0) {
      SPARKLE_TRY(plain, choice_of(draft, draft.steps[i], device, options, approximation));
      chosen[i].choice = std::move(plain);
    }
  choose_blocks(draft, device, options, chosen);
  eliminate_copies(
      draft, [&](const DraftStep& step) { return choice_of(draft, step, device, options, approximation); }, chosen);
  return chosen;
}

// Lives of buffers from first to last touch, workspaces for their own step; then places in the arena of each side.
void assign_memory(Plan& plan, PlanBuffers& buffers) {
  std::vector<BufferLife>& lives = buffers.lives;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const auto touch = [&](int tensor) {
      BufferLife& life = lives[static_cast<size_t>(buffers.of_tensor[static_cast<size_t>(tensor)])];
      life.first = std::min(life.first, static_cast<int>(s));
      life.last = std::max(life.last, static_cast<int>(s));
    };
    for (int t : plan.steps[s].inputs) touch(t);
    for (int t : plan.steps[s].outputs) touch(t);
  }
  for (const PlaceKind kind : {PlaceKind::arena, PlaceKind::host}) {
    const bool host = kind == PlaceKind::host;
    std::vector<BufferLife> arena;
    std::vector<int> place(lives.size(), -1);
    for (size_t b = 0; b < lives.size(); ++b)
      if (buffers.kinds[b] == kind && lives[b].last >= 0) place[b] = static_cast<int>(arena.size()), arena.push_back(lives[b]);
    std::vector<int> workspace(plan.steps.size(), -1);
    for (size_t s = 0; s < plan.steps.size(); ++s)
      if (plan.steps[s].workspace_bytes > 0 && (plan.steps[s].runs_on == RunsOn::host) == host) {
        workspace[s] = static_cast<int>(arena.size());
        arena.push_back({plan.steps[s].workspace_bytes, static_cast<int>(s), static_cast<int>(s), 0});
      }
    (host ? plan.host_arena_bytes : plan.arena_bytes) = place_buffers(arena);
    for (const BufferLife& life : arena)
      for (int s = life.first; s <= life.last; ++s) plan.steps[static_cast<size_t>(s)].live_bytes += life.bytes;
    for (size_t t = 0; t < plan.tensors.size(); ++t)
      if (const int p = place[static_cast<size_t>(buffers.of_tensor[t])]; p >= 0)
        plan.tensors[t].offset = arena[static_cast<size_t>(p)].offset;
    for (size_t s = 0; s < plan.steps.size(); ++s)
      if (workspace[s] >= 0) plan.steps[s].workspace_offset = arena[static_cast<size_t>(workspace[s])].offset;
  }
}

// Each tensor alone can be addressed; their sum is what places and totals are computed with.
Status check_addressable(const Plan& plan, const std::vector<BufferLife>& lives) {
  double bytes = 0;
  for (const BufferLife& life : lives) bytes += static_cast<double>(life.bytes);
  for (const PlanStep& step : plan.steps) bytes += static_cast<double>(step.workspace_bytes);
  if (bytes < 0x1p60) return ok();
  return Error{Reason::size_overflow,
               "The tensors of the model '" + plan.model + "' are more in all than can be addressed; give smaller inputs."};
}

// The plan of a draft whose steps are done as chosen.
Result<Plan> assembled(const Graph& graph, const Draft& draft, const std::vector<const DraftStep*>& steps,
                       const std::vector<Choice>& choices, const Device& device, const Device* host_device) {
  Plan plan;
  plan.model = graph.name;
  plan.device = device.name;
  plan.calibrated = device.calibrated;
  for (const MathUnit& unit : device.units)
    if (unit.kind == UnitKind::matrix) plan.matrix_units.push_back(unit.name);
  plan.constants = draft.constants;
  plan.inputs = draft.inputs, plan.outputs = draft.outputs;
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    if (graph.tensor(graph.outputs[i]).open) plan.open.push_back(static_cast<int>(i));
  PlanBuffers buffers;
  for (const DraftValue& v : draft.values) {
    const DraftBuffer& buffer = draft.buffers[static_cast<size_t>(v.buffer)];
    plan.tensors.push_back({v.name, v.desc, buffer.kind, buffer.index, 0});
    buffers.of_tensor.push_back(v.buffer);
  }
  for (const DraftBuffer& buffer : draft.buffers) {
    buffers.lives.push_back({buffer.elements * size_of(buffer.dtype), 1 << 30, -1, 0});
    buffers.kinds.push_back(buffer.kind);
  }
  for (size_t i = 0; i < steps.size(); ++i) append_steps(plan, draft, *steps[i], choices[i], buffers);
  // Where a kernel is still to be written the roofs give a bound, whatever was measured.
  plan.calibrated &= has_all_kernels(plan);
  add_crossings(plan, buffers, device);
  if (std::any_of(choices.begin(), choices.end(), [](const Choice& c) { return c.on_host(); }))
    plan.host = host_device->name, plan.calibrated &= host_device->calibrated;
  SPARKLE_CHECK(check_addressable(plan, buffers.lives));
  assign_memory(plan, buffers);
  return plan;
}

// The plan in which steps between those of the host go there too where that is cheaper; nothing where none is.
Result<std::optional<Plan>> with_host_moves(const Graph& graph, const Draft& draft, const std::vector<const DraftStep*>& steps,
                                            std::vector<Choice> choices, const Device& device, const PlanOptions& options,
                                            Approximation approximation) {
  const auto on_host = [&](size_t i) {
    return choice_of_host(draft, *steps[i], choices[i].candidates, options, approximation);
  };
  if (!move_to_host(draft, steps, device, on_host, options.host_moves, choices)) return std::optional<Plan>();
  SPARKLE_TRY(plan, assembled(graph, draft, steps, choices, device, options.host_device));
  return std::optional<Plan>(std::move(plan));
}

Result<Plan> planned(const Graph& graph, const Device& device, const PlanOptions& options) {
  SPARKLE_CHECK(check_forced(options));
  PostOpsApart apart;
  SPARKLE_TRY(draft, draft_with_post_ops(graph, device, options, apart));
  Approximation approximation = Approximation::allowed;
  SPARKLE_TRY(chosen, fastest_steps(draft, device, options, approximation));
  std::vector<const DraftStep*> steps;
  std::vector<Choice> choices;
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i].dropped) continue;
    if (const auto at = apart.find(draft.steps[i].anchor); at != apart.end()) chosen[i].choice.candidates.push_back(at->second);
    steps.push_back(chosen[i].block ? &*chosen[i].block : &draft.steps[i]);
    choices.push_back(std::move(chosen[i].choice));
  }
  SPARKLE_TRY(plan, assembled(graph, draft, steps, choices, device, options.host_device));
  SPARKLE_TRY(moved, with_host_moves(graph, draft, steps, choices, device, options, approximation));
  const auto fits = [&](const Plan& p) {
    return options.memory_budget <= 0 || planned_bytes(p, device) <= options.memory_budget;
  };
  if (moved && fits(*moved) && (options.host_moves || moved->predicted_seconds() < plan.predicted_seconds()))
    return std::move(*moved);
  if (options.memory_budget <= 0) return plan;
  const double fastest = plan.predicted_seconds();
  const auto again = [&](size_t step, int64_t most) {
    return choice_of(draft, *steps[step], device, options, approximation, most);
  };
  int64_t need = planned_bytes(plan, device);
  const std::vector<Choice> first = choices;
  while (need > options.memory_budget && save_memory(choices, need - options.memory_budget, device, again)) {
    SPARKLE_TRY(smaller, assembled(graph, draft, steps, choices, device, options.host_device));
    plan = std::move(smaller);
    need = planned_bytes(plan, device);
  }
  SPARKLE_CHECK(check_budget("With these inputs the model '" + plan.model + "'", need, options.memory_budget));
  plan.budget_seconds = plan.predicted_seconds() - fastest;
  for (size_t i = 0; i < choices.size(); ++i)
    plan.budget_steps += packed_bytes(choices[i], device) != packed_bytes(first[i], device);
  return plan;
}

}  // namespace

std::string_view name_of(PlaceKind kind) { return kPlaces[static_cast<size_t>(kind)]; }
bool parse_name(std::string_view text, PlaceKind& kind) {
  for (size_t i = 0; i < kPlaces.size(); ++i)
    if (kPlaces[i] == text) return kind = static_cast<PlaceKind>(i), true;
  return false;
}

std::string_view name_of(RunsOn side) { return kSides[static_cast<size_t>(side)]; }

int64_t Plan::constant_bytes() const {
  int64_t bytes = 0;
  for (const PlanConstant& c : constants) bytes += c.value.size_bytes();
  return bytes;
}
double Plan::predicted_seconds() const {
  double seconds = 0;
  for (const PlanStep& step : steps) seconds += step.cost.seconds;
  return seconds;
}

Result<Plan> make_plan(const Graph& graph, const Device& device, const PlanOptions& options) {
  return guard_memory("The plan of the model", [&] { return planned(graph, device, options); });
}

}  // namespace sparkle
