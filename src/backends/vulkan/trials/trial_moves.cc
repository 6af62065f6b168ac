#include "backends/vulkan/trials/trial_moves.h"

#include <algorithm>

#include "backends/vulkan/trials/trial_elements.h"
#include "families/attention/attention.h"
#include "families/deform/deform.h"
#include "families/gather/gather.h"
#include "families/non_max/non_max.h"
#include "families/pad/pad.h"
#include "families/resize/resize.h"
#include "families/scatter/scatter.h"
#include "families/triangle/triangle.h"

namespace sparkle::vulkan {
namespace {

constexpr int64_t kPicked = 4;  // elements along each axis that indices point into, at least

}  // namespace

TensorDesc described(DType type, const Dims& shape, bool channels_innermost, int64_t gap) {
  TensorDesc d{type, shape, channels_innermost ? channels_last(shape) : row_major(shape)};
  int64_t step = 1;
  for (int i = d.layout.order.size() - 1; i >= 0; --i) {
    const int axis = static_cast<int>(d.layout.order[i]);
    d.layout.pitch[axis] = step;
    step = step * shape[axis] + gap;
  }
  return d;
}

bool moves(Family family) {
  return family == Family::copy || family == Family::pad || family == Family::gather || family == Family::resize ||
         family == Family::triangle;
}

std::vector<Stage> copy_stages(const Trial& t) {
  const TensorDesc planes = described(t.inputs[0], {2, 37, 5, 9}, false, 1),
                   pixels = described(t.inputs[0], {2, 37, 5, 9}, true, 0);
  return {{t.params, {planes}, {pixels}}, {t.params, {pixels}, {planes}}};
}

std::vector<Stage> pad_stages(const Trial& t) {
  PadParams p = get<PadParams>(t.params);
  const int rank = p.begin.size();
  // Mirrored axes are longer than what is added to them; tensors of many axes stay small.
  const int64_t most = rank <= 4 ? 4 : 1;
  for (Dims* pads : {&p.begin, &p.end})
    for (int64_t& pad : *pads) pad = std::clamp<int64_t>(pad, -1, most);
  std::vector<Stage> stages;
  for (const int64_t last : {3, 8}) {
    Dims x, y;
    for (int i = 0; i < rank; ++i) {
      const bool padded = p.begin[i] != 0 || p.end[i] != 0;
      x.push_back(padded ? most + 1 : i == rank - 1 || i == 1 ? last : 2);
      if (rank > 4 && i != 1) x[i] = 2 + (padded && p.begin[i] + p.end[i] < 0);
      y.push_back(std::max<int64_t>(1, x[i] + p.begin[i] + p.end[i]));
      x[i] = y[i] - p.begin[i] - p.end[i];
    }
    if (rank > 0)
      stages.push_back({p, {described(t.inputs[0], x, rank > 2, last == 3)}, {described(t.inputs[0], y, rank > 2, 0)}});
  }
  return stages;
}

// Updates that meet among others that do not.
std::vector<Stage> scatter_stages(const Trial& t) {
  auto p = get<ScatterParams>(t.params);
  const DType x = t.inputs[0], index = t.inputs[p.form == ScatterForm::one_hot ? 0 : 1];
  const Dims data{kPicked, kPicked + 1, 9};
  if (p.form == ScatterForm::one_hot) {
    p.axis = std::min(p.axis, 2);
    Dims y{3, 7};
    y.insert(p.axis, kPicked);
    return {{p,
             {described(index, {3, 7}, false, 1), described(t.inputs[1], {2}, false, 0)},
             {described(t.outputs[0], y, false, 1)}}};
  }
  Dims indices, updates;
  if (p.form == ScatterForm::elements) {
    p.axis = std::min(p.axis, 2);
    indices = {3, 4, 7};
    indices[p.axis] = 11;
    for (int i = 0; i < 3; ++i)
      if (i != p.axis) indices[i] = std::min(indices[i], data[i]);
    updates = indices;
  } else {
    indices = {3, 5, 2}, updates = {3, 5, data[2]};
  }
  return {{p,
           {described(x, data, false, 1), described(index, indices, false, 0), described(t.inputs[2], updates, false, 1)},
           {described(t.outputs[0], data, false, 0)}}};
}

std::vector<Stage> triangle_stages(const Trial& t) {
  auto p = get<TriangleParams>(t.params);
  p.diagonal = std::clamp<int64_t>(p.diagonal, -5, 5);
  std::vector<Stage> stages;
  for (const Dims& shape : {Dims{2, 9, 37}, Dims{3, 33, 8}})
    stages.push_back(
        {p, {described(t.inputs[0], shape, shape[1] == 33, 1)}, {described(t.inputs[0], shape, shape[1] == 33, 0)}});
  return stages;
}

std::vector<Stage> gather_stages(const Trial& t) {
  const auto& p = get<GatherParams>(t.params);
  std::vector<Stage> stages;
  for (const int64_t last : {3, 8}) {
    Dims x, indices, y;
    const int before = p.form == GatherForm::tuples ? p.batch_axes : p.axis;
    for (int i = 0; i < before; ++i) x.push_back(2);
    x.push_back(kPicked);
    if (p.form == GatherForm::tuples) x.push_back(kPicked + 1);
    if (before < 5) x.push_back(last);
    if (p.form == GatherForm::elements) {
      indices = x;
      indices[p.axis] = 5;
      y = indices;
    } else if (p.form == GatherForm::slices) {
      indices = before < 5 ? Dims{2, 3} : Dims{3};
      for (int i = 0; i < before; ++i) y.push_back(x[i]);
      for (const int64_t size : indices) y.push_back(size);
      for (int i = before + 1; i < x.size(); ++i) y.push_back(x[i]);
    } else {
      for (int i = 0; i < before; ++i) indices.push_back(x[i]);
      indices.push_back(3);
      y = indices;
      indices.push_back(2);
      for (int i = before + 2; i < x.size(); ++i) y.push_back(x[i]);
    }
    if (y.size() > kMaxRank || x.size() > kMaxRank) continue;
    stages.push_back({p,
                      {described(t.inputs[0], x, false, last == 3), described(t.inputs[1], indices, false, 0)},
                      {described(t.inputs[0], y, false, last == 3)}});
  }
  return stages;
}

std::vector<Stage> resize_stages(const Trial& t) {
  const auto& p = get<ResizeParams>(t.params);
  std::vector<Stage> stages;
  for (const int64_t wide : {3, 8}) {
    Dims x, y;
    for (size_t i = 0; i < p.scales.size(); ++i) {
      x.push_back(p.scales[i] == 1 ? (i == 1 ? wide : 2) : 7);
      y.push_back(std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(x.back()) * std::min(p.scales[i], 16.0))));
    }
    if (x.size() > 1) stages.push_back({p, {described(t.inputs[0], x, true, 0)}, {described(t.inputs[0], y, true, 0)}});
  }
  return stages;
}

std::vector<Stage> sample_stages(const Trial& t) {
  std::vector<Stage> stages;
  for (const int spatial : {1, 2, 3}) {
    Dims x{2, spatial == 2 ? 5 : 8}, grid{2}, y = x;
    for (int i = 0; i < spatial; ++i) x.push_back(4 + i), y.push_back(5 - i), grid.push_back(5 - i);
    grid.push_back(spatial);
    stages.push_back({t.params,
                      {described(t.inputs[0], x, spatial != 1, spatial % 2), described(t.inputs[1], grid, false, 1)},
                      {described(t.outputs[0], y, spatial != 1, spatial % 2)}});
  }
  return stages;
}

std::vector<Stage> deform_stages(const Trial& t) {
  auto p = get<DeformParams>(t.params);
  for (size_t i = 0; i < 2; ++i) p.filter[i] = std::min<int64_t>(p.filter[i], 5);
  p.groups = std::min<int64_t>(p.groups, 2), p.offset_groups = std::min<int64_t>(p.offset_groups, 2);
  const DType type = t.inputs[0];
  const int64_t taps = p.filter[0] * p.filter[1];
  std::vector<Stage> stages;
  for (const int64_t wide : {2, 70}) {
    const bool last = wide == 2;
    const auto desc = [&](const Dims& shape) { return described(type, shape, last, last); };
    Stage stage;
    stage.params = p;
    stage.inputs = {desc({2, 2 * p.groups * p.offset_groups, 6, 7}),
                    desc({p.groups * wide, 2 * p.offset_groups, p.filter[0], p.filter[1]}),
                    desc({2, p.offset_groups * taps * 2, 5, 4})};
    if (p.bias) stage.inputs.push_back(desc({p.groups * wide}));
    if (p.mask) stage.inputs.push_back(desc({2, p.offset_groups * taps, 5, 4}));
    stage.outputs = {desc({2, p.groups * wide, 5, 4})};
    stages.push_back(stage);
  }
  return stages;
}

std::vector<Stage> attention_stages(const Trial& t) {
  AttentionParams p = get<AttentionParams>(t.params);
  const DType type = t.inputs[0];
  // Most queries see some keys.
  p.offset = std::clamp<int64_t>(p.offset, -5, 30);
  p.left = std::min<int64_t>(p.left, 20), p.right = std::min<int64_t>(p.right, 20);
  struct Sizes {
    int64_t queries, keys, size, columns;
  };
  std::vector<Stage> stages;
  for (const Sizes& s : {Sizes{35, 37, 9, 5}, Sizes{7, 67, 8, 72}}) {
    Stage stage;
    stage.params = p;
    const int64_t gap = s.size % 2;
    stage.inputs = {described(type, {2, s.queries, s.size}, false, gap), described(type, {2, s.keys, s.size}, false, 0),
                    described(type, {2, s.keys, s.columns}, false, gap)};
    if (p.mask)
      stage.inputs.push_back(described(t.inputs[static_cast<size_t>(mask_operand(p))], {2, s.queries, s.keys}, false, 0));
    if (p.lengths) stage.inputs.push_back(dense_desc(DType::i64, {2}));
    stage.outputs.push_back(described(type, {2, s.queries, s.columns}, false, gap));
    if (p.scores != ScoreOutput::none) stage.outputs.push_back(described(type, {2, s.queries, s.keys}, false, 1));
    stages.push_back(stage);
  }
  return stages;
}

std::vector<Stage> non_max_stages(const Trial& t) {
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

double trial_value(const Stage& stage, size_t operand, std::mt19937& random) {
  const auto between = [&](int64_t least, int64_t most) {
    return static_cast<double>(least + static_cast<int64_t>(random() % static_cast<uint32_t>(most - least + 1)));
  };
  const DType type = stage.inputs[operand].dtype;
  if (stage.family() == Family::pointwise) return pointwise_value(stage, operand, random);
  if (stage.family() == Family::quantize) return quantize_value(stage, operand, random);
  const auto* scatter = get_if<ScatterParams>(&stage.params);
  const size_t indices = scatter && scatter->form == ScatterForm::one_hot ? 0 : 1;
  if ((stage.family() == Family::gather || scatter) && operand == indices) return between(-kPicked, kPicked - 1);
  if (stage.family() == Family::attention && type == DType::i64) return between(1, stage.inputs[1].shape[1]);
  if (type == DType::boolean) return between(0, 1);
  std::normal_distribution<double> normal;
  // Sums of such wrap around.
  if (stage.family() == Family::gemm && !is_float(type) && size_of(type) >= 4 && stage.inputs[0].dtype == type)
    return std::round(std::ldexp(normal(random), static_cast<int>(between(0, 8 * size_of(type) - 5))));
  return (is_float(type) ? 1 : 60) * normal(random);
}

}  // namespace sparkle::vulkan
