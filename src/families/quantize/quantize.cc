// What the quantize family tells the planner, and its scalar definitions.
#include "families/quantize/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "families/common.h"
#include "families/loops/grain.h"
#include "families/quantize/channels.h"
#include "families/quantize/quantize_reference.h"
#include "families/windows/samples.h"

namespace sparkle {
namespace {

constexpr std::array<std::string_view, 6> kKinds = {"quantize", "dequantize", "dynamic", "add", "average", "factor"};

constexpr Variant kVariants[] = {
#include "families/quantize/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"", "QuantizeLinear, DequantizeLinear, QLinearConv and other quantised operators",
     TypeSet{DType::f32, DType::f16, DType::bf16, DType::i8, DType::u8, DType::i16, DType::u16, DType::i32} | kNarrow,
     "8-bit integers by the kernels, the others by the variant plain; f8e8m0 as a scale alone", "all but f8e8m0"},
};

Footprint footprint(const Stage& stage, const Schedule&, const Device& device) {
  return streaming_footprint(stage, device, 2 * static_cast<double>(stage.inputs[0].elements()));
}

bool is_byte(const TensorDesc& desc) { return desc.dtype == DType::u8 || desc.dtype == DType::i8; }

// Neighbours in memory in one order: dense, and with the strides of `model`.
bool alike(const TensorDesc& desc, const TensorDesc& model) {
  if (!(desc.shape == model.shape) || !is_dense(desc.shape, desc.layout)) return false;
  for (int i = 0; i < desc.shape.size(); ++i)
    if (desc.shape[i] > 1 && desc.layout.strides[i] != model.layout.strides[i]) return false;
  return true;
}

// One value, seen as a tensor.
bool is_splat(const TensorDesc& desc) {
  for (int i = 0; i < desc.shape.size(); ++i)
    if (desc.shape[i] > 1 && desc.layout.strides[i] != 0) return false;
  return true;
}

constexpr int64_t kShortestLine = 2;  // elements: calls for two are worth it beside plain loops

// What the vector loops cannot do.
Reason refused(const Stage& stage) {
  const auto& p = get<QuantizeParams>(stage.params);
  const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
  const auto splats = [&](std::initializer_list<size_t> scales, std::initializer_list<size_t> zeros) {
    for (size_t i : scales)
      if (stage.inputs[i].dtype != DType::f32) return Reason::type_not_served;
    for (size_t i : zeros)
      if (!is_byte(stage.inputs[i])) return Reason::type_not_served;
    for (const auto& list : {scales, zeros})
      for (size_t i : list)
        if (!is_splat(stage.inputs[i])) return Reason::layout_not_served;
    return Reason::none;
  };
  if (p.kind == QuantizeKind::factor || p.block > 0) return Reason::layout_not_served;
  if (p.kind == QuantizeKind::average) {
    const FeatureMap from = feature_map(x), to = feature_map(y);
    if (!is_byte(x) || !is_byte(y)) return Reason::type_not_served;
    if ((from.c > 1 && from.channel_stride != 1) || from.pixels() > 1 << 20 || to.pixels() != 1)
      return Reason::layout_not_served;
    return splats({1, 3}, {2, 4});
  }
  const bool from_real = p.kind == QuantizeKind::quantize || p.kind == QuantizeKind::dynamic;
  if (from_real ? x.dtype != DType::f32 || !is_byte(y) : !is_byte(x)) return Reason::type_not_served;
  if (p.kind == QuantizeKind::dequantize && y.dtype != DType::f32) return Reason::type_not_served;
  if (p.kind == QuantizeKind::add && (!is_byte(stage.inputs[3]) || !is_byte(y))) return Reason::type_not_served;
  if (!is_dense(y.shape, y.layout) || !alike(x, y) || (p.kind == QuantizeKind::add && !alike(stage.inputs[3], y))) {
    // With one scale, parts of other tensors do, where lines of them are neighbours: a part of a concatenation.
    const bool lines = (p.kind == QuantizeKind::quantize || p.kind == QuantizeKind::dequantize) && x.shape == y.shape &&
                       common_run(x, y) >= kShortestLine;
    return lines ? splats({1}, {2}) : Reason::layout_not_served;
  }
  if (p.kind == QuantizeKind::dynamic) return Reason::none;
  if (p.kind == QuantizeKind::add) return splats({1, 4, 6}, {2, 5, 7});
  if (stage.inputs[1].dtype != DType::f32 || !is_byte(stage.inputs[2])) return Reason::type_not_served;
  return channel_runs(stage) ? Reason::none : Reason::layout_not_served;
}

// What the kernels for GPUs cannot do: they serve any layout, and all but narrow types.
Reason refused_on_gpu(const Stage& stage, const Variant& variant, const Device& device) {
  const auto& p = get<QuantizeParams>(stage.params);
  // Element by element, real numbers may be of 16 bits.
  const bool elements =
      p.kind == QuantizeKind::quantize || p.kind == QuantizeKind::dequantize || p.kind == QuantizeKind::factor;
  const DType type = elements && stores_reals(variant, device, stage.inputs[1].dtype) ? stage.inputs[1].dtype : DType::f32;
  const auto real = [&](const TensorDesc& desc) { return desc.dtype == type; };
  const auto whole = [](const TensorDesc& desc) {
    return is_byte(desc) || desc.dtype == DType::u16 || desc.dtype == DType::i16;
  };
  const auto all = [&](auto fits, std::initializer_list<size_t> operands) {
    return std::all_of(operands.begin(), operands.end(), [&](size_t i) { return fits(stage.inputs[i]); });
  };
  const auto few_bits = [&](const TensorDesc& desc) { return whole(desc) || is_narrow_integer(desc.dtype); };
  const auto summand = [&](const TensorDesc& desc) { return few_bits(desc) || desc.dtype == DType::i32; };
  const auto both_narrow = [](const TensorDesc& a, const TensorDesc& b) {
    return is_narrow_float(a.dtype) && a.dtype != DType::f8e8m0 && a.dtype == b.dtype;
  };
  const TensorDesc& y = stage.outputs[0];
  bool supported = false;
  switch (p.kind) {
    case QuantizeKind::quantize:
      supported = all(real, {0, 1}) && ((all(few_bits, {2}) && few_bits(y)) || both_narrow(stage.inputs[2], y));
      break;
    case QuantizeKind::dequantize:
      supported = (all(summand, {0, 2}) || both_narrow(stage.inputs[0], stage.inputs[2])) && all(real, {1}) && real(y);
      break;
    case QuantizeKind::dynamic: supported = all(real, {0}) && y.dtype == DType::u8; break;
    case QuantizeKind::add: supported = all(whole, {0, 2, 3, 5, 7}) && all(real, {1, 4, 6}) && whole(y); break;
    case QuantizeKind::average: supported = all(is_byte, {0, 2, 4}) && all(real, {1, 3}) && is_byte(y); break;
    case QuantizeKind::factor: supported = all(real, {0, 1, 2}) && (real(y) || y.dtype == DType::f32); break;
  }
  return supported ? Reason::none : Reason::type_not_served;
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  if (variant.for_workgroups()) {
    why_not = refused_on_gpu(stage, variant, device);
  } else if (variant.name != "plain") {
    why_not = refused(stage);
  }
  if (why_not != Reason::none) return {};
  std::vector<Schedule> found = loop_schedules(stage, variant, device, why_not);
  // Bytes take their 5 us later than numbers.
  const int64_t elements = stage.outputs[0].elements();
  cut_into(found, device, elements, even_tasks(static_cast<double>(elements), 6 * kLeastElements, 4, device));
  return found;
}

std::vector<SampleForm> sample_forms() {
  constexpr DType kF = DType::f32, kHalf = DType::f16, kU = DType::u8, kI = DType::i8;
  const auto of = [](QuantizeKind kind, std::vector<DType> inputs, std::vector<DType> outputs, int64_t block = 0) {
    QuantizeParams p;
    p.kind = kind, p.block = block, p.axis = block > 0 ? 3 : 0;
    return SampleForm{p, std::move(inputs), std::move(outputs)};
  };
  using enum QuantizeKind;
  return {of(quantize, {kF, kF, kU}, {kU}),
          of(quantize, {kF, kF, DType::i16}, {DType::i16}),
          of(quantize, {kF, kF, kI}, {kI}, 64),
          of(quantize, {kHalf, kHalf, kI}, {kI}),
          of(dequantize, {kI, kF, kI}, {kF}),
          of(dequantize, {kU, kF, kU}, {kF}, 2),
          of(dequantize, {kU, kHalf, kU}, {kHalf}),
          of(dynamic, {kF}, {kU, kF, kU}),
          of(QuantizeKind::add, {kU, kF, kU, kI, kF, kI, kF, kU}, {kU}),
          of(average, {kI, kF, kI, kF, kI}, {kI}),
          of(factor, {kF, kF, kF}, {kF}),
          of(factor, {kHalf, kHalf, kHalf}, {kHalf}),
          of(quantize, {kF, kF, DType::i4}, {DType::i4}),
          of(dequantize, {DType::u2, kF, DType::u2}, {kF})};
}

// Small tensors with gaps and without; parameters for all, of blocks with a rest, or shaped like x, as the kind has them.
std::vector<Stage> samples(const SampleRequest& t) {
  auto p = get<QuantizeParams>(t.params);
  const Dims shape{3, 5, 8};
  Dims listed = shape;
  // How long blocks are and along which axis is no matter of the kernel's.
  if (p.block > 0) p.axis = std::clamp(p.axis, 0, 2), p.block = 3, listed[p.axis] = (shape[p.axis] + 2) / 3;
  std::vector<Stage> stages;
  for (const int64_t gap : {0, 1}) {
    Stage stage;
    stage.params = p;
    const auto input = [&](const Dims& dims, int64_t between_rows) {
      stage.inputs.push_back(described(t.inputs[stage.inputs.size()], dims, false, between_rows));
    };
    const auto output = [&](const Dims& dims, int64_t between_rows) {
      stage.outputs.push_back(described(t.outputs[stage.outputs.size()], dims, false, between_rows));
    };
    const auto numbers = [&](int count) {
      for (int i = 0; i < count; ++i) input({}, 0);
    };
    switch (p.kind) {
      case QuantizeKind::quantize:
      case QuantizeKind::dequantize:
        input(shape, gap), input(listed, 0), input(listed, 0);
        output(shape, 0);
        break;
      case QuantizeKind::dynamic:
        input(shape, gap);
        output(shape, 0), output({}, 0), output({}, 0);
        break;
      case QuantizeKind::add:
        input(shape, gap), numbers(2), input(shape, 0), numbers(4);
        output(shape, 0);
        break;
      case QuantizeKind::average: {
        // More channels than a workgroup has.
        const Dims map{2, 37, 3, 5};
        stage.inputs.push_back(described(t.inputs[0], map, gap == 0, gap));
        numbers(4);
        output({2, 37, 1, 1}, gap);
        break;
      }
      case QuantizeKind::factor:
        input(shape, gap), input(shape, 0), input(shape, 0);
        output(shape, 0);
        for (int axis = 0; axis < 2; ++axis) stage.inputs[1].layout.strides[axis] = 0;
        break;
    }
    stages.push_back(std::move(stage));
  }
  return stages;
}

double sample_value(const Stage& stage, size_t operand, std::mt19937& random) {
  const QuantizeKind kind = get<QuantizeParams>(stage.params).kind;
  std::normal_distribution<double> normal;
  if (!is_float(stage.inputs[operand].dtype)) return 60 * normal(random);
  const bool scale = kind == QuantizeKind::add || kind == QuantizeKind::average || kind == QuantizeKind::factor;
  return scale ? std::exp(0.5 * normal(random)) : normal(random);
}

}  // namespace

std::string_view name_of(QuantizeKind kind) { return kKinds[static_cast<size_t>(kind)]; }
bool parse_name(std::string_view text, QuantizeKind& kind) {
  const auto at = std::find(kKinds.begin(), kKinds.end(), text);
  if (at == kKinds.end()) return false;
  kind = static_cast<QuantizeKind>(at - kKinds.begin());
  return true;
}

IntegerRange output_range(DType type, const QuantizeParams& params) {
  IntegerRange range = range_of(type);
  if (params.clip) {
    range.low = std::clamp(params.low, range.low, range.high);
    range.high = std::clamp(params.high, range.low, range.high);
  }
  return range;
}

DynamicScale dynamic_scale(float least, float most) {
  least = std::min(least, 0.0f), most = std::max(most, 0.0f);
  DynamicScale result;
  result.scale = (most - least) / 255.0f;
  if (!(result.scale > 0)) return {1, 0};  // nothing but zeros: any scale is right
  result.zero = static_cast<uint8_t>(std::nearbyint(std::clamp(-least / result.scale, 0.0f, 255.0f)));
  return result;
}

int32_t quantized(float x, float scale, int32_t zero, const IntegerRange& range) {
  const float low = static_cast<float>(range.low - zero), high = static_cast<float>(range.high - zero);
  const float value = x / scale;
  if (std::isnan(value)) return static_cast<int32_t>(std::clamp<int64_t>(zero, range.low, range.high));
  return static_cast<int32_t>(std::nearbyint(std::min(std::max(value, low), high))) + zero;
}

const FamilyInfo& quantize_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<QuantizeParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .reference = quantize_reference,
      .footprint = footprint,
      .schedules = schedules,
      .sample_forms = sample_forms,
      .samples = samples,
      .sample_value = sample_value,
  };
  return family;
}

}  // namespace sparkle
