#include "measure/steps/step_choices.h"

#include <algorithm>

#include "families/common.h"
#include "families/copy/copy.h"
#include "families/pad/pad.h"
#include "families/pointwise/pointwise.h"
#include "measure/prepared_layer.h"
#include "plan/choose/cost.h"

namespace sparkle {

void add_stage(Choice& choice, StageUse use, Schedule schedule, const Device& device) {
  Footprint footprint = info(use.stage.family()).footprint(use.stage, schedule, device);
  const Cost cost = cost_of(footprint, schedule, device);
  choice.cost = choice.costs.empty() ? cost : add(choice.cost, cost);
  choice.plan.stages.push_back(std::move(use));
  choice.schedules.push_back(std::move(schedule));
  choice.footprints.push_back(std::move(footprint));
  choice.costs.push_back(cost);
}

Status add_planned(Choice& choice, StageUse use, const Device& device, PlanOptions options) {
  options.algorithm.clear(), options.variant.clear();
  SPARKLE_TRY(planned, choose(use.stage, device, options));
  add_stage(choice, std::move(use), planned.schedules[0], device);
  return ok();
}

Result<Choice> gemm_of(const AnchorCall& call, const Device& device, PlanOptions options) {
  options.algorithm = "gemm", options.variant.clear();
  return choose(call, device, options);
}

Result<Choice> choice_of(std::string_view variant, const AnchorCall& call, const Device& device, PlanOptions options) {
  options.variant = variant;
  const auto variants = info(Family::gemm).variants;
  const bool on_matrix_units = std::any_of(variants.begin(), variants.end(),
                                           [&](const Variant& v) { return v.name == variant && v.unit == UnitKind::matrix; });
  Error last{Reason::no_kernel, "no kernel of this device supports it"};
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.name != "gemm" && !(on_matrix_units && algorithm.name.starts_with(kMatrix))) continue;
    options.algorithm = algorithm.name;
    auto choice = choose(call, device, options);
    if (choice.ok() && !choice->without_kernel && choice->schedules.size() == 1 && variant_of(choice->schedules[0]) == variant)
      return choice;
  }
  return last;
}

void one_by_one(GemmSchedule& s) { s.variant = "tile1x1", s.mr = s.nr = 1; }

Result<Choice> im2col_of(const AnchorCall& call, const Device& device, const PlanOptions& options, bool permuted) {
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
  const TensorDesc a = dense_desc(source.dtype, {pixels, depth});
  TensorDesc y = dense_desc(source.dtype, {pixels, p.k});
  if (permuted) y.layout.strides = {1, pixels};
  const int sums_at = permuted ? temporary(y) : y_at;
  TensorDesc b = dense_desc(source.dtype, {depth, p.k});
  b.layout.strides = {1, depth};
  GemmParams product;
  product.loader = Loader::dense, product.epilogue = p.epilogue;
  StageUse use{{product, {a, b}, {y}}, {columns_at, w_at}, {sums_at}};
  for (size_t i = 2; i < call.inputs.size(); ++i)
    use.stage.inputs.push_back(call.inputs[i]), use.inputs.push_back(static_cast<int>(i));
  SPARKLE_CHECK(add_planned(choice, std::move(use), device, options));
  if (!permuted) return choice;
  TensorDesc planes{y.dtype, call.output.shape, {}};
  planes.layout = row_major(planes.shape);
  planes.layout.strides = {p.out[1] * p.out[2], pixels, p.out[2], 1};
  SPARKLE_CHECK(add_planned(choice, {{CopyParams{"permute"}, {planes}, {call.output}}, {sums_at}, {y_at}}, device, options));
  return choice;
}

void set_im2col(OptimisationStep& step, const AnchorCall& call, const Device& device, const PlanOptions& options,
                bool permuted) {
  const Problem& p = call.problem;
  if (p.kind != ProblemKind::conv || p.rank != 2 || p.groups != 1) {
    step.absent = "im2col is shown for convolutions of two dimensions without groups";
    return;
  }
  auto choice = im2col_of(call, device, options, permuted);
  if (choice.ok()) step.choice = std::move(*choice);
  else step.absent = choice.error().message;
}

OptimisationStep in_other_layout(const Problem& problem, const Device& device, const PlanOptions& options, bool planes,
                                 const TileSchedule* tiles) {
  // Where channels are neighbours a thread moves four of a pixel at once between memory and itself; in planes one by one.
  OptimisationStep step{planes ? "NHWC" : "NCHW",
                        planes ? "implicit on feature maps channels last, four channels of a pixel at a time"
                               : "implicit on feature maps plane by plane, whose channels are moved one by one",
                        false,
                        {},
                        ""};
  step.other_layout = true;
  if (problem.kind == ProblemKind::matmul) {
    step.absent = "a product of two matrices has no feature maps";
    return step;
  }
  auto choice = choice_of("implicit", call_of(problem, device, !planes), device, options);
  if (!choice.ok()) step.absent = "no product by tiles in shared memory supports maps in this order";
  else if (!tiles) step.choice = std::move(*choice);
  else step.choice = changed<TileSchedule>(*choice, device, [&](TileSchedule& s) { s = *tiles; });
  return step;
}

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

}  // namespace sparkle
