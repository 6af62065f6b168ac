// For tests: trials of every family, by which each of its variants for Vulkan is tried.
#pragma once

#include "backends/vulkan/trials/trial.h"
#include "families/attention/attention.h"
#include "families/common.h"
#include "families/copy/copy.h"
#include "families/deform/deform.h"
#include "families/depthwise/depthwise.h"
#include "families/fft/fft.h"
#include "families/gather/gather.h"
#include "families/gemm/gemm.h"
#include "families/non_max/non_max.h"
#include "families/normalize/normalize.h"
#include "families/pad/pad.h"
#include "families/pool/pool.h"
#include "families/quantize/quantize.h"
#include "families/reduce/reduce.h"
#include "families/registry.h"
#include "families/resize/resize.h"
#include "families/rotary/rotary.h"
#include "families/sample/sample.h"
#include "families/scan/scan.h"
#include "families/scatter/scatter.h"
#include "families/softmax/softmax.h"
#include "families/top_k/top_k.h"
#include "families/triangle/triangle.h"
#include "families/winograd/winograd.h"

namespace sparkle::vulkan {

// What a plan's step of the family may be, element types last.
inline std::vector<Trial> samples(Family family) {
  constexpr DType kF = DType::f32;
  const auto of = [](StageParams params, std::vector<DType> inputs, std::vector<DType> outputs = {DType::f32}) {
    return Trial{{}, std::move(params), std::move(inputs), std::move(outputs)};
  };
  Window window;
  window.filter = {1, 3, 3}, window.pad_begin = window.pad_end = {0, 1, 1};
  const std::vector<DType> bytes{DType::u8, DType::i8, kF, DType::u8, DType::i8, DType::i8};
  switch (family) {
    case Family::gemm: {
      GemmParams p, halves, integers;
      p.window = halves.window = window;
      halves.operands = OperandType::f16;
      integers.window = window, integers.epilogue.scale = true;
      return {of(p, {kF, kF}), of(halves, {kF, kF}), of(integers, bytes, {DType::i8})};
    }
    case Family::winograd: {
      WinogradParams p;
      p.window = window, p.tile = 4;
      return {of(p, {kF, kF})};
    }
    case Family::depthwise: {
      DepthwiseParams p, integers;
      p.window = integers.window = window;
      integers.epilogue.scale = true;
      return {of(p, {kF, kF}), of(integers, bytes, {DType::i8})};
    }
    case Family::pool: {
      PoolParams p, longer;
      p.window = longer.window = window;
      longer.window.filter = {1, 9, 9}, longer.window.pad_begin = longer.window.pad_end = {0, 4, 4};
      return {of(p, {kF}), of(longer, {kF})};
    }
    case Family::pointwise: return {of(PointwiseParams{2, {{PointwiseOp::add, 0, 1, 0, 0, 0}}}, {kF, kF})};
    case Family::reduce: return {of(ReduceParams{ReduceKind::sum, {1}}, {kF})};
    case Family::softmax: return {of(SoftmaxParams{1, 1, false}, {kF})};
    case Family::normalize: return {of(NormalizeParams{}, {kF, kF, kF})};
    case Family::copy: return {of(CopyParams{}, {kF}), of(CopyParams{}, {DType::u8}, {DType::u8})};
    case Family::pad: {
      std::vector<Trial> list;
      for (const PadMode mode : {PadMode::constant, PadMode::reflect, PadMode::edge, PadMode::wrap})
        for (const DType type : {kF, DType::i64})
          list.push_back(of(PadParams{mode, {0, 0, 300, 1}, {0, 0, 2, -1}, 1.5}, {type}, {type}));
      list.push_back(of(PadParams{PadMode::constant, {1, 0, 2, 9, -5, 1, 1, 1}, {0, 0, 0, 0, 0, 3, 0, 1}, 2}, {kF}));
      return list;
    }
    case Family::gather: {
      std::vector<Trial> list;
      for (const DType index : {DType::i32, DType::i64})
        for (const int axis : {0, 1, 5, 7}) {
          list.push_back(of(GatherParams{axis, GatherForm::slices, 0}, {kF, index}));
          list.push_back(of(GatherParams{axis, GatherForm::elements, 0}, {kF, index}));
          list.push_back(of(GatherParams{0, GatherForm::tuples, axis / 2}, {DType::i32, index}, {DType::i32}));
        }
      return list;
    }
    case Family::resize: {
      ResizeParams linear, nearest;
      linear.mode = ResizeMode::linear, nearest.mode = ResizeMode::nearest;
      linear.scales = nearest.scales = {1, 1, 2, 0.5};
      return {of(linear, {kF}), of(nearest, {kF}), of(nearest, {DType::i64}, {DType::i64})};
    }
    case Family::attention: {
      AttentionParams p, masked;
      p.scale = 0.3;
      masked = p;
      masked.mask = masked.lengths = true, masked.right = 0, masked.offset = 5000, masked.scores = ScoreOutput::softmax;
      return {of(p, {kF, kF, kF}), of(masked, {kF, kF, kF, DType::boolean, DType::i64}, {kF, kF}),
              of(masked, {kF, kF, kF, kF, DType::i64}, {kF, kF})};
    }
    case Family::triangle:
      return {of(TriangleParams{true, INT64_MIN}, {kF}), of(TriangleParams{false, 1}, {DType::i64}, {DType::i64})};
    case Family::rotary:
      return {of(RotaryParams{true}, {kF, kF, kF}), of(RotaryParams{false}, {kF, kF, kF}),
              of(RotaryParams{true}, {DType::f16, DType::f16, DType::f16}, {DType::f16})};
    case Family::scan:
      return {of(ScanParams{0, false, true}, {kF}), of(ScanParams{1, true, false}, {DType::f16}, {DType::f16}),
              of(ScanParams{1, true, false}, {DType::f64}, {DType::f64}),
              of(ScanParams{1, false, false}, {DType::i64}, {DType::i64}),
              of(ScanParams{1, false, false}, {DType::u8}, {DType::u8})};
    case Family::top_k:
      return {of(TopKParams{0, 7}, {kF}, {kF, DType::i64}), of(TopKParams{1, 1, false, true, true}, {kF}, {DType::i64}),
              of(TopKParams{0, 3}, {DType::i64}, {DType::i64, DType::i64}),
              of(TopKParams{0, 3, false}, {DType::u8}, {DType::u8, DType::i64}),
              of(TopKParams{0, 3, false}, {DType::f16}, {DType::f16, DType::i64})};
    case Family::scatter: {
      std::vector<Trial> list{of(ScatterParams{ScatterForm::one_hot, ScatterReduction::none, 1}, {DType::i64, kF})};
      for (const DType type : {kF, DType::f16, DType::i64, DType::u8})
        for (const ScatterForm form : {ScatterForm::elements, ScatterForm::tuples})
          for (const ScatterReduction reduction : {ScatterReduction::none, ScatterReduction::add, ScatterReduction::max})
            list.push_back(of(ScatterParams{form, reduction, static_cast<int>(list.size())}, {type, DType::i64, type}, {type}));
      return list;
    }
    case Family::non_max: {
      NonMaxParams corners, centers;
      corners.most = 1000, corners.overlap = 0.3, centers.overlap = 0.5;
      centers.centers = centers.has_threshold = true, centers.most = 10, centers.threshold = -7;
      return {of(corners, {kF, kF}, {DType::i64}), of(centers, {kF, kF}, {DType::i64})};
    }
    case Family::fft: {
      FftParams p;
      p.window.filter = {1, 15, 15}, p.window.pad_begin = p.window.pad_end = {0, 7, 7};
      return {of(p, {kF, kF})};
    }
    case Family::sample: {
      std::vector<Trial> list;
      for (const SampleMode mode : {SampleMode::nearest, SampleMode::linear, SampleMode::cubic})
        for (const SamplePadding padding : {SamplePadding::zeros, SamplePadding::border, SamplePadding::reflection})
          list.push_back(of(SampleParams{mode, padding, mode == SampleMode::linear}, {kF, kF}));
      return list;
    }
    case Family::deform: {
      DeformParams p, full;
      full.filter = {3, 3}, full.pad_begin = {1, 1}, full.groups = full.offset_groups = 2, full.bias = full.mask = true;
      return {of(p, {kF, kF, kF}), of(full, {kF, kF, kF, kF, kF})};
    }
    case Family::quantize: return {of(QuantizeParams{}, {kF, kF, DType::u8}, {DType::u8})};
    default: return {};
  }
}

// A schedule of the variant for one of the trial's stages, as a planner on this device finds it.
inline bool schedule_for(Trial& t, const Variant& variant, const Device& device) {
  Reason why = Reason::none;
  for (const Stage& stage : stages_of(t)) {
    const auto found = info(t.family()).schedules(stage, variant, device, why);
    if (found.empty()) continue;
    t.schedule = found.back();
    return true;
  }
  // Kernels that serve what a trial has, but are not worth it there.
  if (why != Reason::costlier) return false;
  t.schedule = LoopSchedule{std::string(variant.name), "fma-f32", 16};
  return true;
}

}  // namespace sparkle::vulkan
