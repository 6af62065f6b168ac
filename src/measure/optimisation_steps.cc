#include "measure/optimisation_steps.h"

#include "families/common.h"
#include "families/copy/copy.h"
#include "families/gemm/gemm.h"
#include "families/gemm/scalar_unit.h"
#include "families/pad/pad.h"
#include "families/registry.h"
#include "families/loops/tile_schedule.h"
#include "plan/choose/cost.h"
#include "measure/prepared_layer.h"

namespace sparkle {
namespace {

void add_stage(Choice& choice, StageUse use, Schedule schedule, const Device& device) {
  Footprint footprint = info(use.stage.family()).footprint(use.stage, schedule, device);
  const Cost cost = cost_of(footprint, schedule, device);
  choice.cost = choice.costs.empty() ? cost : add(choice.cost, cost);
  choice.plan.stages.push_back(std::move(use));
  choice.schedules.push_back(std::move(schedule));
  choice.footprints.push_back(std::move(footprint));
  choice.costs.push_back(cost);
}

// A stage by the schedule that the planner gives it. Algorithm and variant are the step's own.
Status add_planned(Choice& choice, StageUse use, const Device& device, PlanOptions options) {
  options.algorithm.clear(), options.variant.clear();
  SPARKLE_TRY(planned, choose(use.stage, device, options));
  add_stage(choice, std::move(use), planned.schedules[0], device);
  return ok();
}

// The planner's implicit GEMM.
Result<Choice> gemm_of(const AnchorCall& call, const Device& device, PlanOptions options) {
  options.algorithm = "gemm", options.variant.clear();
  return choose(call, device, options);
}

template <class S>
const S* schedule_of(const Choice& gemm) {
  return gemm.schedules.size() == 1 ? get_if<S>(&gemm.schedules[0]) : nullptr;
}
const GemmSchedule* tiles_of(const Choice& gemm) { return schedule_of<GemmSchedule>(gemm); }

// The same stage by a schedule in which `change` has switched something off.
template <class S = GemmSchedule, class Change>
Choice changed(const Choice& gemm, const Device& device, Change change) {
  S schedule = *schedule_of<S>(gemm);
  change(schedule);
  Choice choice;
  choice.algorithm = "gemm";
  add_stage(choice, gemm.plan.stages[0], schedule, device);
  return choice;
}

void one_by_one(GemmSchedule& s) { s.variant = "tile1x1", s.mr = s.nr = 1; }

template <class S>
void scalar(S& s) {
  s.unit = kScalarUnit;
}

// The window's pixels of every output side by side in memory, [pixels, C*R*S], then a product of two matrices.
Result<Choice> im2col_of(const AnchorCall& call, const Device& device, const PlanOptions& options) {
  const Problem& p = call.problem;
  const Window& w = p.window;
  const int x_at = 0, w_at = 1, y_at = static_cast<int>(call.inputs.size());
  Choice choice;
  choice.algorithm = "im2col";
  int from = x_at;
  TensorDesc source = call.inputs[0];
  const auto temporary = [&](const TensorDesc& desc) {
    choice.plan.temporaries.push_back(desc);
    return y_at + static_cast<int>(choice.plan.temporaries.size());
  };
  if (w.pad_begin != Triple{} || w.pad_end != Triple{}) {
    PadParams pad;
    pad.begin = {0, 0, w.pad_begin[1], w.pad_begin[2]}, pad.end = {0, 0, w.pad_end[1], w.pad_end[2]};
    TensorDesc padded{source.dtype, source.shape, {}};
    for (int a = 0; a < 4; ++a) padded.shape[a] += pad.begin[a] + pad.end[a];
    padded.layout = channels_last(padded.shape);
    from = temporary(padded);
    SPARKLE_CHECK(add_planned(choice, {{pad, {source}, {padded}}, {x_at}, {from}}, device, options));
    source = padded;
  }
  // What each output sees, as a view: pixels and taps of one axis of x are two axes here.
  const Layout& l = source.layout;
  const Dims seen{p.n, p.out[1], p.out[2], p.c, w.filter[1], w.filter[2]};
  TensorDesc view{source.dtype, seen, row_major(seen)};
  view.layout.strides = {l.strides[0], l.strides[2] * w.stride[1],   l.strides[3] * w.stride[2],
                         l.strides[1], l.strides[2] * w.dilation[1], l.strides[3] * w.dilation[2]};
  view.layout.offset = l.offset;
  const TensorDesc columns = dense_desc(source.dtype, seen);
  const int columns_at = temporary(columns);
  SPARKLE_CHECK(add_planned(choice, {{CopyParams{"im2col"}, {view}, {columns}}, {from}, {columns_at}}, device, options));

  const int64_t pixels = p.n * p.out[1] * p.out[2], depth = p.c * w.taps();
  const TensorDesc a = dense_desc(source.dtype, {pixels, depth}), y = dense_desc(source.dtype, {pixels, p.k});
  TensorDesc b = dense_desc(source.dtype, {depth, p.k});
  b.layout.strides = {1, depth};
  GemmParams product;
  product.loader = Loader::dense, product.epilogue = p.epilogue;
  StageUse use{{product, {a, b}, {y}}, {columns_at, w_at}, {y_at}};
  for (size_t i = 2; i < call.inputs.size(); ++i)
    use.stage.inputs.push_back(call.inputs[i]), use.inputs.push_back(static_cast<int>(i));
  SPARKLE_CHECK(add_planned(choice, std::move(use), device, options));
  return choice;
}

// The sums alone, then bias and activation in a pass of their own.
Result<Choice> unfused(const AnchorCall& call, const Choice& gemm, const Device& device, const PlanOptions& options) {
  const int y_at = static_cast<int>(call.inputs.size()), sums_at = y_at + 1;
  Choice choice;
  choice.algorithm = "gemm, pointwise";
  choice.plan.temporaries.push_back(call.output);
  StageUse sums = gemm.plan.stages[0];
  get<GemmParams>(sums.stage.params).epilogue = Epilogue{};
  sums.stage.inputs.resize(2), sums.inputs.resize(2);
  sums.outputs = {sums_at};
  add_stage(choice, std::move(sums), gemm.schedules[0], device);
  TensorDesc bias = call.inputs[2];
  bias.shape = call.output.shape;
  bias.layout.strides = Dims::filled(bias.shape.size(), 0);
  bias.layout.strides[1] = 1;
  PointwiseParams after;
  after.inputs = 2;
  after.program.push_back({PointwiseOp::add, 0, 1, 0, 0, 0});
  after.program.push_back({PointwiseOp::relu, 2, 0, 0, 0, 0});
  SPARKLE_CHECK(add_planned(choice, {{after, {call.output, bias}, {call.output}}, {sums_at, 2}, {y_at}}, device, options));
  return choice;
}

// Steps of a CPU: from plain loops to the planner's product.
Status add_cpu_steps(std::vector<OptimisationStep>& steps, const Problem& problem, const AnchorCall& call, const Device& device,
                     const PlanOptions& options) {
  PlanOptions plain = options;
  plain.algorithm = "gemm", plain.variant = "plain";
  SPARKLE_TRY(naive, choose(call, device, plain));
  steps.push_back({"naive", "plain loops in double precision, one core", true, naive, ""});
  steps.push_back({"threaded", "the same loops on all cores", false, naive, ""});
  SPARKLE_TRY(gemm, gemm_of(call, device, options));
  if (tiles_of(gemm) && variant_of(gemm.schedules[0]) != "plain") {
    steps.push_back({"cache-blocked", "packed filters, loops cut to the caches, one sum at a time", false,
                     changed(gemm, device, [](GemmSchedule& s) { one_by_one(s), scalar(s); }), ""});
    steps.push_back({"vectorised", "a vector of filters at a time, one sum", false, changed(gemm, device, one_by_one), ""});
    OptimisationStep tiled{"register-tiled", "im2col in memory, then a product by tiles of sums in registers", false, {}, ""};
    if (problem.kind == ProblemKind::conv && problem.rank == 2 && problem.groups == 1) {
      SPARKLE_TRY(im2col, im2col_of(call, device, options));
      tiled.choice = std::move(im2col);
    } else {
      tiled.absent = "im2col is shown for convolutions of two dimensions without groups";
    }
    steps.push_back(std::move(tiled));
    steps.push_back({"implicit GEMM", "no im2col, taps in the padding left out, what comes next fetched", false, gemm, ""});
  }
  return ok();
}

constexpr std::string_view kMatrix = "matrix_f16";  // the algorithm of the variants for matrix units

// Steps of a GPU: the gemm family's variants for it, in the order of their table.
Status add_gpu_steps(std::vector<OptimisationStep>& steps, const AnchorCall& call, const Device& device,
                     const PlanOptions& options) {
  for (const Variant& variant : info(Family::gemm).variants) {
    if (!variant.runs_on(device) || variant.unit == UnitKind::dot_product) continue;
    const bool matrix = variant.unit == UnitKind::matrix;
    PlanOptions forced = options;
    forced.algorithm = matrix ? kMatrix : "gemm", forced.variant = variant.name;
    const std::string_view note = variant.note.substr(reason_of(variant).size());
    OptimisationStep step{std::string(variant.name), std::string(note), false, {}, ""};
    auto choice = choose(call, device, forced);
    if (device.denies(name_of(Family::gemm), variant.name)) step.absent = "it failed its self-test on this driver";
    else if (choice.ok() && !choice->without_kernel) step.choice = std::move(*choice);
    else step.absent = matrix ? "no matrix unit of this device supports it" : "its shape, type or layout is not this variant's";
    steps.push_back(std::move(step));
  }
  return ok();
}

}  // namespace

Result<std::vector<OptimisationStep>> optimisation_steps_of(const Problem& problem, const Device& device,
                                                            const PlanOptions& options, bool planes) {
  SPARKLE_CHECK(check_type(problem, device));
  const AnchorCall call = call_of(problem, device, planes);
  std::vector<OptimisationStep> steps;
  SPARKLE_CHECK(device.has_workgroups() ? add_gpu_steps(steps, call, device, options)
                                        : add_cpu_steps(steps, problem, call, device, options));
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.name == "gemm" || (algorithm.name == kMatrix && device.has_workgroups())) continue;
    OptimisationStep step{std::string(algorithm.name), std::string(algorithm.note), false, {}, ""};
    if (const Reason reason = algorithm.applies(call); reason != Reason::none) {
      step.absent = sentence_of(reason);
    } else {
      PlanOptions forced = options;
      forced.algorithm = algorithm.name;
      auto choice = choose(call, device, forced);
      // Plain loops stand for an algorithm only where there is nothing else.
      const auto plain_loops = [&] { return variant_of(choice->schedules[0]) == "plain" && best_vector_unit(device); };
      const bool supported = choice.ok() && choice->algorithm == algorithm.name && !choice->without_kernel && !plain_loops();
      if (supported) step.choice = std::move(*choice);
      else step.absent = choice.ok() ? "no kernel of this device supports it" : choice.error().message;
    }
    steps.push_back(std::move(step));
  }
  SPARKLE_TRY(planned, choose(call, device, options));
  steps.push_back({"as planned", "what the planner takes: " + planned.algorithm, false, planned, ""});
  return steps;
}

namespace {

// Bias and activation apart, where the layer has just these.
Result<OptimisationStep> without_fusion(const Problem& problem, const AnchorCall& call, const Choice& gemm,
                                        const Device& device, const PlanOptions& options) {
  OptimisationStep fuse{"fuse", "bias and activation in a pass of their own over the sums", false, {}, ""};
  const Epilogue& e = problem.epilogue;
  if (problem.dtype == "f32" && e.bias && e.operands() == 1 && !e.has_post_op() && e.activation == Activation::relu) {
    SPARKLE_TRY(apart, unfused(call, gemm, device, options));
    fuse.choice = std::move(apart);
  } else {
    fuse.absent = "this problem has nothing to fuse";
  }
  return fuse;
}

Error no_tiles(const Problem& problem, const Device& device) {
  return Error{Reason::no_kernel, "There is no implicit GEMM by tiles for " + short_name(problem) + " on " + device.name +
                                      ", so no pattern can be switched off; --ladder shows what there is."};
}

std::string times(int a, int b) { return std::to_string(a) + " x " + std::to_string(b); }

Result<std::vector<OptimisationStep>> cpu_ablation(const Problem& problem, const AnchorCall& call, const Device& device,
                                                   const PlanOptions& options) {
  SPARKLE_TRY(gemm, gemm_of(call, device, options));
  const GemmSchedule* s = tiles_of(gemm);
  if (!s || variant_of(gemm.schedules[0]) == "plain") return no_tiles(problem, device);
  std::vector<OptimisationStep> steps;
  steps.push_back({"all on", "the planner's implicit GEMM", false, gemm, ""});
  steps.push_back(
      {"tile",
       "one sum instead of a tile of " + std::to_string(s->mr) + " rows by " + std::to_string(s->nr) + " vectors in registers",
       false, changed(gemm, device, one_by_one), ""});
  OptimisationStep block{"block", "loops not cut to the caches: for each tile of rows all weights pass", false, {}, ""};
  if (s->order == GemmOrder::rows && s->kc == 0 && s->mc == 0)
    block.absent = "all weights stay in half of the L2: nothing is cut";
  else block.choice = changed(gemm, device, [](GemmSchedule& g) { g.order = GemmOrder::rows, g.kc = g.mc = 0, g.split = 0; });
  steps.push_back(std::move(block));
  steps.push_back(
      {"vectorise", "one number in the place of each vector", false, changed(gemm, device, scalar<GemmSchedule>), ""});
  OptimisationStep pipeline{
      "pipeline", "nothing fetched ahead by the program; the core's own prefetching stays", false, {}, ""};
  if (s->prefetch == 0) pipeline.absent = "this schedule fetches nothing ahead";
  else pipeline.choice = changed(gemm, device, [](GemmSchedule& g) { g.prefetch = 0; });
  steps.push_back(std::move(pipeline));
  SPARKLE_TRY(fuse, without_fusion(problem, call, gemm, device, options));
  steps.push_back(std::move(fuse));
  return steps;
}

// A GPU's base is the variant with tiles of both operands in shared memory. Its lanes cannot be switched off, so "vectorise" is
// what a lane moves at once.
Result<std::vector<OptimisationStep>> gpu_ablation(const Problem& problem, const AnchorCall& call, const Device& device,
                                                   const PlanOptions& options) {
  PlanOptions forced = options;
  forced.algorithm = "gemm", forced.variant = "implicit";
  SPARKLE_TRY(gemm, choose(call, device, forced));
  const auto* s = schedule_of<TileSchedule>(gemm);
  if (!s || s->variant != "implicit" || gemm.without_kernel) return no_tiles(problem, device);
  std::vector<OptimisationStep> steps;
  steps.push_back({"all on", "the planner's implicit GEMM by tiles", false, gemm, ""});
  OptimisationStep tile{"tile",
                        "one output a thread, operands from caches, instead of tiles of " + times(s->m, s->n) +
                            " in shared memory and " + times(s->thread_m, s->thread_n) + " in a thread's registers",
                        false,
                        {},
                        ""};
  for (const char* variant : {"fours", "groups"}) {
    forced.variant = variant;
    auto apart = choose(call, device, forced);
    if (!apart.ok() || apart->without_kernel || variant_of(apart->schedules[0]) != variant) continue;
    tile.choice = std::move(*apart);
    break;
  }
  if (tile.choice.schedules.empty()) tile.absent = "no kernel without tiles supports it";
  steps.push_back(std::move(tile));
  steps.push_back({"vectorise", "single numbers instead of four at a time between memory and a thread", false,
                   changed<TileSchedule>(gemm, device, scalar<TileSchedule>), ""});
  steps.push_back({"pipeline", "the next tiles are loaded when these are done; other workgroups of a core go on meanwhile",
                   false, changed<TileSchedule>(gemm, device, [](TileSchedule& t) { t.depth = 1; }), ""});
  SPARKLE_TRY(fuse, without_fusion(problem, call, gemm, device, options));
  steps.push_back(std::move(fuse));
  return steps;
}

}  // namespace

Result<std::vector<OptimisationStep>> ablation_of(const Problem& problem, const Device& device, const PlanOptions& options) {
  SPARKLE_CHECK(check_type(problem, device));
  const AnchorCall call = call_of(problem, device);
  return device.has_workgroups() ? gpu_ablation(problem, call, device, options) : cpu_ablation(problem, call, device, options);
}

static Status try_steps(Backend& backend, const std::vector<OptimisationStep>& steps) {
  std::vector<const Choice*> choices;
  for (const OptimisationStep& step : steps)
    if (step.absent.empty()) choices.push_back(&step.choice);
  return try_variants(backend, choices);
}

Result<std::vector<OptimisationStep>> optimisation_steps_on(Backend& backend, const Problem& problem,
                                                            const PlanOptions& options, bool planes) {
  return plan_until_usable([&] { return optimisation_steps_of(problem, backend.device(), options, planes); },
                           [&](const auto& steps) { return try_steps(backend, steps); });
}

Result<std::vector<OptimisationStep>> ablation_on(Backend& backend, const Problem& problem, const PlanOptions& options) {
  return plan_until_usable([&] { return ablation_of(problem, backend.device(), options); },
                           [&](const auto& steps) { return try_steps(backend, steps); });
}

}  // namespace sparkle
