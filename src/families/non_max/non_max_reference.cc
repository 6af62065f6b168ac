// The non_max family: plain loops, written without non_max.cc's sorting, and what it tells the planner.
#include <algorithm>
#include <cstring>

#include "families/common.h"
#include "families/non_max/non_max_gpu.h"
#include "families/windows/samples.h"
#include "families/loops/walk.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#include "families/non_max/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"", "NonMaxSuppression", TypeSet{DType::f32}, ""},
};

float float_at(const TensorView& x, const Dims& at) { return *reinterpret_cast<const float*>(element_at(x, at)); }

// Takes the best of the boxes that are left and strikes out what it overlaps, until none is left.
void non_max_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const NonMaxParams& p = get<NonMaxParams>(params);
  const TensorView &boxes = inputs[0], &scores = inputs[1], &rows = outputs[0];
  const int64_t images = scores.desc.shape[0], classes = scores.desc.shape[1], count = scores.desc.shape[2];
  int64_t row = 0;
  const auto write = [&](int64_t a, int64_t b, int64_t c) {
    const int64_t values[3] = {a, b, c};
    for (int64_t i = 0; i < 3; ++i) std::memcpy(element_at(rows, {row, i}), &values[i], sizeof values[i]);
    ++row;
  };
  for (int64_t image = 0; image < images; ++image) {
    std::vector<Box> all;
    for (int64_t i = 0; i < count; ++i) {
      float four[4];
      for (int64_t k = 0; k < 4; ++k) four[k] = float_at(boxes, {image, i, k});
      all.push_back(box_of(p, four));
    }
    for (int64_t c = 0; c < classes; ++c) {
      std::vector<bool> out(static_cast<size_t>(count), false);
      for (int64_t taken = 0; taken < p.most; ++taken) {
        int64_t best = -1;
        for (int64_t i = 0; i < count; ++i) {
          const float score = float_at(scores, {image, c, i});
          if (out[static_cast<size_t>(i)] || score != score) continue;
          if (p.has_threshold && !(score > static_cast<float>(p.threshold))) continue;
          if (best < 0 || score > float_at(scores, {image, c, best})) best = i;
        }
        if (best < 0) break;
        write(image, c, best);
        out[static_cast<size_t>(best)] = true;
        for (int64_t i = 0; i < count; ++i)
          if (overlaps(all[static_cast<size_t>(i)], all[static_cast<size_t>(best)], static_cast<float>(p.overlap)))
            out[static_cast<size_t>(i)] = true;
      }
    }
  }
  while (row < rows.desc.shape[0]) write(-1, -1, -1);
}

// Every candidate is held against every box that stays: 12 operations a pair.
Footprint footprint(const Stage& stage, const Schedule&, const Device& device) {
  const NonMaxParams& p = get<NonMaxParams>(stage.params);
  const auto scores = static_cast<double>(stage.inputs[1].elements());
  const double kept = static_cast<double>(std::min(p.most, stage.inputs[1].shape[2]));
  Footprint result = streaming_footprint(stage, device, 12 * scores * kept);
  result.parallel_items = std::max(1.0, static_cast<double>(stage.inputs[1].shape[0] * stage.inputs[1].shape[1]));
  if (device.has_workgroups()) {
    result.workspace_bytes = 4 * non_max_offsets(stage).end;
    result.launches = 3;
  }
  return result;
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  bool rows = is_row_major(stage.outputs[0].shape, stage.outputs[0].layout);
  for (const TensorDesc& x : stage.inputs) {
    rows = rows && is_row_major(x.shape, x.layout);
    if (x.dtype == DType::f32) continue;
    why_not = Reason::type_not_served;
    return {};
  }
  if (variant.name == "classes" && !rows) {
    why_not = Reason::layout_not_served;
    return {};
  }
  std::vector<Schedule> found = loop_schedules(stage, variant, device, why_not);
  // Every class of every image.
  const int64_t lists = stage.inputs[1].shape[0] * stage.inputs[1].shape[1];
  cut_into(found, device, lists, lists);
  return found;
}

std::vector<SampleForm> sample_forms() {
  NonMaxParams corners, centers;
  corners.most = 1000, corners.overlap = 0.3, centers.overlap = 0.5;
  centers.centers = centers.has_threshold = true, centers.most = 10, centers.threshold = -7;
  return {{corners, {DType::f32, DType::f32}, {DType::i64}}, {centers, {DType::f32, DType::f32}, {DType::i64}}};
}

std::vector<Stage> samples(const SampleRequest& t) {
  NonMaxParams p = get<NonMaxParams>(t.params);
  p.threshold = std::clamp(p.threshold, -1.0, 1.0);
  std::vector<Stage> stages;
  for (const int64_t boxes : {37, 300}) {
    p.most = std::clamp<int64_t>(p.most, 5, boxes);
    stages.push_back({p,
                      {described(DType::f32, {2, boxes, 4}, false, boxes % 2), described(DType::f32, {2, 3, boxes}, false, 1)},
                      {described(DType::i64, {2 * 3 * p.most, 3}, false, boxes % 2)}});
  }
  return stages;
}

}  // namespace

const FamilyInfo& non_max_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<NonMaxParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .reference = non_max_reference,
      .footprint = footprint,
      .schedules = schedules,
      .sample_forms = sample_forms,
      .samples = samples,
  };
  return family;
}

}  // namespace sparkle
