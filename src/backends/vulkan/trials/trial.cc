#include "backends/vulkan/trials/trial.h"

#include <algorithm>

#include "backends/vulkan/trials/trial_elements.h"
#include "backends/vulkan/trials/trial_moves.h"
#include "backends/vulkan/trials/trial_run.h"
#include "families/depthwise/depthwise.h"
#include "families/fft/fft.h"
#include "families/fft/fft_axis.h"
#include "families/gemm/gemm.h"
#include "families/gemm/gemm_tiles.h"
#include "families/normalize/normalize.h"
#include "families/pool/pool.h"
#include "families/reduce/reduce.h"
#include "families/registry.h"
#include "families/scan/scan.h"
#include "families/softmax/softmax.h"
#include "families/tails.h"
#include "families/top_k/top_k.h"
#include "families/winograd/winograd.h"

namespace sparkle::vulkan {
namespace {

void add_epilogue(Stage& stage, const Epilogue& e, int64_t channels) {
  for (int i = 0; i < e.scale + e.bias; ++i) stage.inputs.push_back(dense_desc(DType::f32, {channels}));
  for (int i = 0; i < e.residuals(); ++i) stage.inputs.push_back(stage.outputs[0]);
  // Of what a tail reads every other one is a number per channel.
  const int axis = holds<GemmParams>(stage.params) && get<GemmParams>(stage.params).loader == Loader::dense
                       ? stage.outputs[0].shape.size() - 1
                       : 1;
  for (int i = 0; i < e.tail_operands(); ++i) {
    stage.inputs.push_back(stage.outputs[0]);
    for (int a = 0; i % 2 == 0 && a < stage.outputs[0].shape.size(); ++a)
      if (a != axis) stage.inputs.back().layout.pitch[a] = 0;
  }
}

// A window with its own filter on planes a little larger than it: channels in whole vectors and not.
Stage window_stage(const StageParams& params, const Window& w, const Epilogue* e, int64_t groups, bool depthwise, int64_t wide,
                   int64_t gap) {
  Stage stage;
  stage.params = params;
  const int64_t channels = depthwise ? wide : groups * wide, filters = depthwise ? wide : groups * (wide + 4);
  Dims x{2, channels}, y{2, filters}, f{filters, depthwise ? 1 : wide};
  for (size_t i = 0; i < 3; ++i) {
    const int64_t out = i == 0 ? 1 : 4 + static_cast<int64_t>(i);
    const int64_t in = std::max<int64_t>(
        1, (out - 1) * w.stride[i] + (w.filter[i] - 1) * w.dilation[i] + 1 - w.pad_begin[i] - (i == 0 ? 0 : 1));
    x.push_back(in), y.push_back(out), f.push_back(w.filter[i]);
  }
  stage.inputs.push_back(described(DType::f32, x, true, gap));
  stage.outputs.push_back(described(DType::f32, y, true, gap));
  if (e) {
    stage.inputs.push_back(dense_desc(DType::f32, f));
    add_epilogue(stage, *e, filters);
  }
  return stage;
}

Stage dense_stage(const GemmParams& p, int64_t m, int64_t n, int64_t k, int64_t gap) {
  Stage stage;
  stage.params = p;
  stage.inputs = {described(DType::f32, {2, m, k}, false, gap), described(DType::f32, {2, k, n}, false, gap)};
  stage.outputs = {described(DType::f32, {2, m, n}, false, gap)};
  add_epilogue(stage, p.epilogue, n);
  return stage;
}

// The same stage on the trial's types: integer sums have zero points behind the operands of their epilogue.
Stage with_types(Stage stage, const Trial& t) {
  while (stage.inputs.size() < t.inputs.size()) stage.inputs.push_back(dense_desc(DType::f32, {1}));
  for (size_t i = 0; i < t.inputs.size(); ++i) stage.inputs[i].dtype = t.inputs[i];
  stage.outputs[0].dtype = t.outputs[0];
  return stage;
}

// Rows along one axis of three, or all of it.
Stage rows_stage(const StageParams& params, size_t operands, const Dims& result) {
  Stage stage;
  stage.params = params;
  for (size_t i = 0; i < operands; ++i) stage.inputs.push_back(described(DType::f32, {3, 5, 37}, false, i % 2 ? 0 : 2));
  stage.outputs.push_back(described(DType::f32, result, false, 1));
  return stage;
}

// Few groups, or as many as channels where each has a filter of its own: how many there are is no matter of the kernel's.
Stage fft_stage(const Trial& t, int64_t wide, int64_t gap) {
  auto p = get<FftParams>(t.params);
  const bool single = variant_of(t.schedule) == "whole";
  p.groups = single ? wide : std::min<int64_t>(p.groups, 2);
  Stage stage = window_stage(p, p.window, &p.epilogue, p.groups, single, wide, gap);
  // Transforms of maps that are smaller than their filters are too short for others.
  const auto* schedule = get_if<FftTileSchedule>(&t.schedule);
  Dims x = stage.inputs[0].shape;
  for (const int axis : {3, 4})
    for (bool served = !schedule; !served && x[axis] > 1;) {
      FftAxis cut_axis = fft_axis(stage, static_cast<size_t>(axis - 2));
      served = cut(cut_axis, axis == 3 ? schedule->rows : schedule->columns);
      if (!served) --x[axis], stage.inputs[0] = described(DType::f32, x, true, gap);
    }
  return stage;
}

// Positions of maxima are integers behind the maxima.
std::vector<Stage> pool_stages(const Trial& t) {
  const auto& p = get<PoolParams>(t.params);
  std::vector<Stage> stages{window_stage(p, p.window, nullptr, 1, true, 5, 1),
                            window_stage(p, p.window, nullptr, 1, true, 8, 0)};
  for (Stage& stage : stages) {
    stage.inputs[0].dtype = t.inputs[0];
    stage.outputs[0].dtype = t.outputs[0];
    if (t.outputs.size() > 1) stage.outputs.push_back(described(t.outputs[1], stage.outputs[0].shape, false, 1));
  }
  return stages;
}

// Rows of one piece and of several, along the last axis and across it.
std::vector<Stage> top_k_stages(const Trial& t) {
  const auto& params = get<TopKParams>(t.params);
  std::vector<Stage> stages;
  const auto add = [&](TopKParams p, const Dims& shape, int axis) {
    p.axis = axis;
    p.k = p.k <= 1 ? p.k : std::min<int64_t>(shape[axis], 300);
    Dims result = shape;
    result[axis] = p.k;
    Stage stage{p, {described(t.inputs[0], shape, false, 1)}, {}};
    for (const DType type : t.outputs) stage.outputs.push_back(described(type, result, false, 1));
    stages.push_back(stage);
  };
  add(params, {2, 5, 37}, 2);
  add(params, {40, 7}, 0);
  add(params, {2, 2100}, 1);
  return stages;
}

bool all_of_type(const Trial& t, DType wanted) {
  const auto same = [&](DType type) { return type == wanted; };
  return std::all_of(t.inputs.begin(), t.inputs.end(), same) && std::all_of(t.outputs.begin(), t.outputs.end(), same);
}

std::string types_text(const std::vector<DType>& types) {
  std::string text;
  for (const DType t : types) text += (text.empty() ? "" : ",") + std::string(name_of(t));
  return text;
}

Result<std::vector<DType>> types_from(std::string_view text) {
  std::vector<DType> types;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const auto type = dtype_from(text.substr(0, comma));
    if (!type) return Error{Reason::bad_format, "'" + std::string(text) + "' is no list of element types."};
    types.push_back(*type);
    text.remove_prefix(std::min(text.size(), comma + 1));
  }
  return types;
}

}  // namespace

Trial trial_of(const Stage& stage, const Schedule& schedule) {
  Trial t{schedule, stage.params, {}, {}};
  for (const TensorDesc& d : stage.inputs) t.inputs.push_back(d.dtype);
  for (const TensorDesc& d : stage.outputs) t.outputs.push_back(d.dtype);
  return t;
}

std::string Trial::variant() const {
  const Epilogue* e = epilogue_of(params);
  return std::string(name_of(family())) + "/" + (e && e->has_tail() ? tail_name(e->tail) : variant_of(schedule));
}

std::string Trial::to_text() const {
  return std::string(name_of(family())) + "\t" + sparkle::to_text(schedule) + "\t" + sparkle::to_text(params) + "\t" +
         types_text(inputs) + "\t" + types_text(outputs);
}

Result<Trial> Trial::from_text(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find('\t', begin), line.size());
    fields.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  Family family{};
  if (fields.size() != 5 || !parse_name(fields[0], family))
    return Error{Reason::bad_format, "'" + std::string(line.substr(0, 60)) + "' is no trial of a kernel."};
  SPARKLE_TRY(schedule, schedule_from_text(family, fields[1]));
  SPARKLE_TRY(params, params_from_text(family, fields[2]));
  SPARKLE_TRY(inputs, types_from(fields[3]));
  SPARKLE_TRY(outputs, types_from(fields[4]));
  return Trial{std::move(schedule), std::move(params), std::move(inputs), std::move(outputs)};
}

std::vector<Stage> stages_of(const Trial& t) {
  if (variant_of(t.schedule) == "no_kernel") return {};
  switch (t.family()) {
    case Family::quantize: return quantize_stages(t);
    case Family::copy: return copy_stages(t);
    case Family::pad: return pad_stages(t);
    case Family::gather: return gather_stages(t);
    case Family::scatter: return scatter_stages(t);
    case Family::triangle: return triangle_stages(t);
    case Family::resize: return resize_stages(t);
    case Family::attention: return attention_stages(t);
    case Family::non_max: return non_max_stages(t);
    case Family::sample: return sample_stages(t);
    case Family::deform: return deform_stages(t);
    case Family::pointwise: return pointwise_stages(t);
    case Family::pool: return pool_stages(t);
    case Family::top_k: return top_k_stages(t);
    case Family::scan: {
      ScanParams along = get<ScanParams>(t.params), across = along;
      along.axis = 2, across.axis = 0;
      return {with_types(rows_stage(along, 1, {3, 5, 37}), t), with_types(rows_stage(across, 1, {3, 5, 37}), t)};
    }
    case Family::reduce: {
      const auto kind = get<ReduceParams>(t.params).kind;
      return {with_types(rows_stage(ReduceParams{kind, {2}}, 1, {3, 5, 1}), t),
              with_types(rows_stage(ReduceParams{kind, {0, 1}}, 1, {1, 1, 37}), t)};
    }
    default: break;
  }
  if (!all_of_type(t, DType::f32)) {  // the stages of the same on f32
    const DType type = t.inputs.empty() ? DType::f32 : t.inputs[0];
    const bool sums =
        (type == DType::u8 || type == DType::i8) && (t.family() == Family::gemm || t.family() == Family::depthwise);
    const bool alike = (type == DType::f16 || type == DType::f64) && all_of_type(t, type);
    if (!sums && !alike && variant_of(t.schedule) != kOwnType) return {};
    Trial floats = t;
    floats.inputs.assign(t.inputs.size(), DType::f32);
    floats.outputs.assign(t.outputs.size(), DType::f32);
    std::vector<Stage> stages = stages_of(floats);
    for (Stage& stage : stages) stage = with_types(std::move(stage), t);
    return stages;
  }
  switch (t.family()) {
    case Family::gemm: {
      const auto& p = get<GemmParams>(t.params);
      if (p.loader == Loader::dense) return {dense_stage(p, 7, 5, 9, 3), dense_stage(p, 9, 12, 8, 0)};
      return {window_stage(p, p.window, &p.epilogue, p.groups, false, 3, 1),
              window_stage(p, p.window, &p.epilogue, p.groups, false, 8, 0)};
    }
    case Family::winograd: {
      const auto& p = get<WinogradParams>(t.params);
      return {window_stage(p, p.window, &p.epilogue, 1, false, 3, 1), window_stage(p, p.window, &p.epilogue, 1, false, 8, 0)};
    }
    case Family::fft: return {fft_stage(t, 3, 1), fft_stage(t, 8, 0)};
    case Family::depthwise: {
      const auto& p = get<DepthwiseParams>(t.params);
      return {window_stage(p, p.window, &p.epilogue, 1, true, 5, 1), window_stage(p, p.window, &p.epilogue, 1, true, 8, 0)};
    }
    case Family::rotary: {
      std::vector<Stage> stages;
      for (const Dims& shape : {Dims{2, 9, 37}, Dims{2, 3, 64}}) {
        const TensorDesc x = described(DType::f32, shape, false, shape[2] % 2);
        const TensorDesc angle = described(DType::f32, {2, shape[1], 16}, false, 0);
        stages.push_back({t.params, {x, angle, angle}, {x}});
      }
      return stages;
    }
    case Family::softmax: {
      const bool logarithm = get<SoftmaxParams>(t.params).logarithm;
      if (variant_of(t.schedule) == "parts_gpu") {
        const TensorDesc rows = described(DType::f32, {2, 8200}, false, 1);
        return {{SoftmaxParams{1, 1, logarithm}, {rows}, {rows}}};
      }
      return {rows_stage(SoftmaxParams{2, 2, logarithm}, 1, {3, 5, 37}),
              rows_stage(SoftmaxParams{0, 1, logarithm}, 1, {3, 5, 37})};
    }
    case Family::normalize: {
      auto p = get<NormalizeParams>(t.params);
      std::vector<Stage> stages;
      for (const Dims& axes : {Dims{2}, Dims{0, 1}}) {
        p.axes = axes;
        stages.push_back(rows_stage(p, t.inputs.size(), {3, 5, 37}));
      }
      return stages;
    }
    default: return {};
  }
}

Status run_trial(VulkanBackend& backend, const Trial& trial, std::chrono::nanoseconds timeout) {
  for (const Stage& stage : stages_of(trial))
    for (const uint32_t constants : {0u, 2u})
      if (constants == 0 || stage.inputs.size() > 1)
        SPARKLE_CHECK(try_stage(backend, stage, trial.schedule, constants, timeout));
  return ok();
}

}  // namespace sparkle::vulkan
