// Rules on what the plan came to: layouts, steps apart, tiles beside cores, bytes beside flops.
#include <algorithm>

#include "check/rules.h"
#include "families/copy/copy.h"
#include "plan/choose/choose.h"

namespace sparkle::rule {
namespace {

constexpr double kLeastShare = 0.01;  // of the model's time, for a step that is worth a word

Finding of(const Subject& s, Reason code, std::string rule, std::string fix) {
  Finding f;
  f.code = code;
  f.now_seconds = f.then_seconds = s.row.seconds;
  f.rule = std::move(rule), f.fix = std::move(fix);
  return f;
}

bool small(const Subject& s) { return s.row.seconds < kLeastShare * s.model_seconds; }

double moved(const PlanStep& step) {
  double bytes = 0;
  for (const TensorDesc& d : step.stage.inputs) bytes += static_cast<double>(d.bytes());
  for (const TensorDesc& d : step.stage.outputs) bytes += static_cast<double>(d.bytes());
  return bytes;
}

// Whether a tensor of the plan is an input of the model, or an input with something done to each element.
bool comes_from_outside(const Plan& plan, int tensor) {
  while (plan.tensors[static_cast<size_t>(tensor)].kind == PlaceKind::arena) {
    const auto makes = [&](const PlanStep& step) {
      return std::find(step.outputs.begin(), step.outputs.end(), tensor) != step.outputs.end();
    };
    const auto step = std::find_if(plan.steps.begin(), plan.steps.end(), makes);
    if (step == plan.steps.end()) return false;
    const Family family = step->stage.family();
    if (family != Family::pointwise && family != Family::quantize && family != Family::copy && family != Family::pad)
      return false;
    tensor = step->inputs[0];
  }
  return plan.tensors[static_cast<size_t>(tensor)].kind == PlaceKind::input;
}

bool is_one_row(const Problem& p) {
  const ProductSizes size = product_sizes(p);
  return size.rows == 1 && size.depth * size.columns >= 4096;
}

}  // namespace

std::optional<Finding> layout_change(const Subject& s) {
  const auto* copy = get_if<CopyParams>(&s.step.stage.params);
  if (!copy || small(s) || s.step.inputs.empty() || s.step.outputs.empty()) return std::nullopt;
  // Others are operators that move elements by themselves: DepthToSpace, Concat, Pad ...
  if (copy->why != "layout" && copy->why != "reshape" && copy->why != "transpose") return std::nullopt;
  const PlanTensor& to = s.plan.tensors[static_cast<size_t>(s.step.outputs[0])];
  // At the model's ends its callers' layout is what it is.
  if (to.kind == PlaceKind::output || comes_from_outside(s.plan, s.step.inputs[0])) return std::nullopt;
  Finding f = of(s, Reason::layout_change,
                 in_bytes(moved(s.step)) + " moved for a " + copy->why + ": " +
                     name_of(s.step.stage.inputs[0].shape, s.step.stage.inputs[0].layout) + " -> " +
                     name_of(s.step.stage.outputs[0].shape, s.step.stage.outputs[0].layout),
                 "let the layers on both sides agree on a layout: merge the Transpose or Reshape with its opposite, or permute "
                 "the next layer's weights instead");
  f.in_model = true;
  f.then_seconds = 0;
  return f;
}

std::optional<Finding> device_not_filled(const Subject& s) {
  if (!s.problem || !s.device.has_workgroups() || is_one_row(*s.problem) || small(s)) return std::nullopt;
  const int64_t tiles = tiles_of(*s.problem), cores = s.device.cores;
  if (tiles >= cores || s.problem->nominal_flops() < 1e6) return std::nullopt;
  const int64_t times = (cores + tiles - 1) / tiles;
  Problem more = *s.problem;
  if (more.kind == ProblemKind::matmul) more.rows *= times;
  else more.n *= times;
  const ProductSizes size = product_sizes(*s.problem);
  Finding f = of(s, Reason::device_not_filled,
                 in_words(size.rows) + " pixels by " + in_words(size.columns) + " filters are " + in_words(tiles) +
                     (tiles == 1 ? " tile" : " tiles") + " of 64 x 64 for " + in_words(cores) + " cores",
                 "run batches of " + in_words(times) + " or more; or larger pictures");
  if (s.precision) f.then_seconds = std::min(s.row.seconds, s.seconds_if(more, *s.precision) / static_cast<double>(times));
  return f;
}

std::optional<Finding> single_row(const Subject& s) {
  if (!s.problem || !is_one_row(*s.problem) || small(s)) return std::nullopt;
  constexpr int64_t kRows = 16;
  Problem more = *s.problem;
  if (more.kind == ProblemKind::matmul) more.rows *= kRows;
  else more.n *= kRows;
  const ProductSizes size = product_sizes(*s.problem);
  Finding f = of(s, Reason::single_row,
                 "one row: " + in_words(size.depth) + " x " + in_words(size.columns) + " weights are read for one product each",
                 "run batches: " + in_words(kRows) + " rows read the same weights once");
  if (s.precision) f.then_seconds = std::min(s.row.seconds, s.seconds_if(more, *s.precision) / kRows);
  return f;
}

std::optional<Finding> memory_bound(const Subject& s) {
  if (!s.problem || s.row.bound == "compute" || s.row.bound == "launch" || is_one_row(*s.problem) || small(s))
    return std::nullopt;
  if (is_channelwise(*s.problem) || grouped_channels(s) || wide_type(s)) return std::nullopt;
  if (channels_unaligned(s) || features_unaligned(s)) return std::nullopt;  // those bytes are what padding saves
  const MemoryLevel* level = s.device.level(s.row.bound);
  const MathUnit* unit = s.device.unit(s.row.unit);
  if (!level || !unit || level->total_bytes_per_second <= 0) return std::nullopt;
  // Caches inside a core are a matter of tiles, not of the model.
  if (level->shared_by <= 1) return std::nullopt;
  const double intensity = s.row.flops / std::max(1.0, s.row.bytes);
  const double ridge = unit->total_flops_per_second / level->total_bytes_per_second;
  if (intensity >= ridge) return std::nullopt;
  return of(s, Reason::memory_bound,
            in_digits(intensity, 0) + " flops for each byte of " + s.row.bound + ", where " + s.row.unit + " needs " +
                in_digits(ridge, 0) + " to be busy",
            "fuse it with its neighbours, or take a narrower type; no other kernel can be faster");
}

std::optional<Finding> no_device_kernel(const Subject& s) {
  const bool none = s.row.kernel == kNoKernel, plain = s.row.kernel == "plain";
  if ((!none && !plain) || (none && double_type(s))) return std::nullopt;
  const std::string what = s.ops.empty() ? s.row.kind : s.ops.front()->type;
  return of(s, Reason::no_device_kernel,
            what + " in this form and type " + (none ? "has no kernel for " : "runs on plain loops on ") + s.device.name +
                (none ? "; the time is what the roofs allow" : ""),
            "express it by operators that have one, or in f32");
}

std::optional<Finding> batchnorm_apart(const Subject& s) {
  if (s.problem) return std::nullopt;
  for (const Op* op : s.ops) {
    if (op->type != "BatchNormalization") continue;
    Finding f = of(s, Reason::batchnorm_apart,
                   "no convolution in front of it can take it in: its tensor has other readers, or something stands between",
                   "move it behind the convolution before export, or fold it into the one behind it where that has no padding");
    f.in_model = true;
    f.then_seconds = 0;
    return f;
  }
  return std::nullopt;
}

std::optional<Finding> unfused_pointwise(const Subject& s) {
  constexpr double kLeast = 0.05;
  if (s.step.stage.family() != Family::pointwise || s.row.bound == "launch" || s.row.seconds < kLeast * s.model_seconds)
    return std::nullopt;
  if (s.row.kernel == "plain") return std::nullopt;
  for (const Op* op : s.ops) {
    if (!std::holds_alternative<PointwiseNode>(op->params) || op->type == "BatchNormalization") continue;
    for (const TensorId in : op->inputs) {
      const Op* from = in == kAbsent ? nullptr : producer(s.graph, in);
      if (!from || !is_product(*from)) continue;
      Finding f =
          of(s, Reason::unfused_pointwise,
             op->type + " reads and writes " + in_bytes(moved(s.step)) + " on its own behind " + from->type + " '" +
                 from->name + "', whose result something else reads too",
             "let the product be read by this operator alone: compute what the other reader needs from this one's result");
      f.then_seconds = 0;
      return f;
    }
  }
  return std::nullopt;
}

std::optional<Finding> attention_unfused(const Subject& s) {
  if (s.step.stage.family() != Family::softmax || small(s)) return std::nullopt;
  for (const Op* op : s.ops) {
    if (!std::holds_alternative<SoftmaxOp>(op->params)) continue;
    const Op* before = producer(s.graph, op->inputs[0]);
    for (int i = 0; before && i < 3 && std::holds_alternative<PointwiseNode>(before->params); ++i)
      before = producer(s.graph, before->inputs[0]);
    const auto reads = [&](const Op& reader) {
      return std::holds_alternative<MatMulOp>(reader.params) && reader.inputs[0] == op->outputs[0];
    };
    if (!before || !std::holds_alternative<MatMulOp>(before->params)) continue;
    if (std::none_of(s.graph.ops.begin(), s.graph.ops.end(), reads)) continue;
    Finding f = of(s, Reason::attention_unfused,
                   "the scores are " + s.graph.tensor(op->outputs[0]).shape.to_string() + ", " + in_bytes(moved(s.step)) +
                       " read and written between two products",
                   "export attention as one operator, or in the form MatMul, scale, mask, Softmax, MatMul that is recognised");
    f.in_model = true;
    f.then_seconds = 0;
    return f;
  }
  return std::nullopt;
}

}  // namespace sparkle::rule
