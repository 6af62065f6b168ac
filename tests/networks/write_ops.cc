#include "networks/write_ops.h"

#include <algorithm>
#include <limits>

#include "graph/evaluate/values.h"
#include "onnx/tensor_proto.h"

namespace sparkle {
using ::onnx::AttributeProto;
using ::onnx::NodeProto;

namespace {
AttributeProto& add(NodeProto& node, std::string_view name, AttributeProto::AttributeType type) {
  AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(std::string(name));
  attribute.set_type(type);
  return attribute;
}
}  // namespace

void set(NodeProto& node, std::string_view name, int64_t value) { add(node, name, AttributeProto::INT).set_i(value); }
void set(NodeProto& node, std::string_view name, double value) {
  add(node, name, AttributeProto::FLOAT).set_f(static_cast<float>(value));
}
void set(NodeProto& node, std::string_view name, std::string_view value) {
  add(node, name, AttributeProto::STRING).set_s(std::string(value));
}
void set(NodeProto& node, std::string_view name, const std::vector<int64_t>& values) {
  AttributeProto& attribute = add(node, name, AttributeProto::INTS);
  for (int64_t v : values) attribute.add_ints(v);
}
std::vector<int64_t> values_of(const Dims& dims) { return {dims.begin(), dims.end()}; }

namespace {

// One overload per kind of operator; `in` and `out` are the op's names.
struct OpWriter {
  ModelWriter& model;
  const Op& op;
  std::vector<std::string> in, out;

  NodeProto& node(std::string_view type) { return model.node(op.name, type, in, out); }
  Status plain(std::string_view type) {
    node(type);
    return ok();
  }
  Status refuse(const std::string& why) const {
    return Error{Reason::operator_not_served, "Operator '" + op.name + "' (" + op.type + ") cannot be written: " + why + "."};
  }
  void set_dims(NodeProto& proto, std::string_view name, const Dims& dims) {
    if (!dims.empty()) set(proto, name, values_of(dims));
  }
  // Input `i` from the parameters where the graph gives none.
  void fill(size_t i, std::string_view what, const std::vector<int64_t>& values) {
    if (in.size() <= i) in.resize(i + 1);
    if (in[i].empty()) in[i] = model.integers(op.name + "." + std::string(what), values);
  }
  bool given(size_t i) const { return i < in.size() && !in[i].empty(); }

  void pads(NodeProto& proto, const Dims& begin, const Dims& end) {
    std::vector<int64_t> both = values_of(begin);
    both.insert(both.end(), end.begin(), end.end());
    if (!both.empty()) set(proto, "pads", both);
  }
  template <class W>
  void window(NodeProto& proto, const W& w) {
    set_dims(proto, "kernel_shape", w.kernel);
    set_dims(proto, "strides", w.strides);
    set_dims(proto, "dilations", w.dilations);
    if (w.auto_pad == AutoPad::notset) {
      pads(proto, w.pads_begin, w.pads_end);
    } else {
      constexpr std::string_view kNames[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
      set(proto, "auto_pad", kNames[static_cast<size_t>(w.auto_pad)]);
    }
  }

  Status operator()(const UnknownOp& p) { return refuse(p.why); }
  Status operator()(const PointwiseNode& p) { return write_pointwise(model, op, p); }

  Status operator()(const ConvOp& p) {
    NodeProto& proto = node(p.transposed ? "ConvTranspose" : "Conv");
    window(proto, p);
    set(proto, "group", p.groups);
    set_dims(proto, "output_padding", p.output_padding);
    set_dims(proto, "output_shape", p.output_shape);
    return ok();
  }
  Status operator()(const DeformConvOp& p) {
    NodeProto& proto = node("DeformConv");
    set_dims(proto, "kernel_shape", p.kernel);
    set_dims(proto, "strides", p.strides);
    set_dims(proto, "dilations", p.dilations);
    pads(proto, p.pads_begin, p.pads_end);
    set(proto, "group", p.groups);
    set(proto, "offset_group", p.offset_groups);
    return ok();
  }
  Status operator()(const PoolOp& p) {
    constexpr std::string_view kTypes[] = {"MaxPool", "AveragePool", "LpPool"};
    NodeProto& proto = node(kTypes[static_cast<size_t>(p.kind)]);
    window(proto, p);
    set(proto, "ceil_mode", int64_t{p.ceil_mode});
    if (p.kind == PoolKind::average) set(proto, "count_include_pad", int64_t{p.count_pad});
    if (p.kind == PoolKind::lp) set(proto, "p", p.p);
    if (p.kind == PoolKind::max && p.storage_order != 0) set(proto, "storage_order", int64_t{p.storage_order});
    return ok();
  }
  Status operator()(const MatMulOp& p) {
    if (!p.gemm) return plain("MatMul");
    NodeProto& proto = node("Gemm");
    set(proto, "alpha", p.alpha);
    set(proto, "beta", p.beta);
    set(proto, "transA", int64_t{p.transpose_a});
    set(proto, "transB", int64_t{p.transpose_b});
    return ok();
  }
  Status operator()(const CastOp& p) {
    NodeProto& proto = node(op.inputs.size() > 1 ? "CastLike" : "Cast");
    if (op.inputs.size() < 2) set(proto, "to", int64_t{onnx_type_of(p.to)});
    if (!p.saturate) set(proto, "saturate", int64_t{0});
    if (p.rounding != PowerRounding::up) set(proto, "round_mode", name_of(p.rounding));
    return ok();
  }
  Status operator()(const BatchNormalizationOp& p) {
    set(node("BatchNormalization"), "epsilon", p.epsilon);
    return ok();
  }
  Status operator()(const InstanceNormalizationOp& p) {
    set(node("InstanceNormalization"), "epsilon", p.epsilon);
    return ok();
  }
  Status operator()(const LayerNormalizationOp& p) {
    NodeProto& proto = node(p.centred ? "LayerNormalization" : "RMSNormalization");
    set(proto, "axis", p.axis);
    set(proto, "epsilon", p.epsilon);
    return ok();
  }
  Status operator()(const GroupNormalizationOp& p) {
    NodeProto& proto = node("GroupNormalization");
    set(proto, "num_groups", p.groups);
    set(proto, "epsilon", p.epsilon);
    return ok();
  }
  Status operator()(const LocalResponseOp& p) {
    NodeProto& proto = node("LRN");
    set(proto, "size", p.size);
    set(proto, "alpha", p.alpha);
    set(proto, "beta", p.beta);
    set(proto, "bias", p.bias);
    return ok();
  }
  Status operator()(const ReduceOp& p) {
    constexpr std::string_view kTypes[] = {"ReduceSum", "ReduceMean", "ReduceMax",       "ReduceMin",    "ReduceProd",
                                           "ReduceL1",  "ReduceL2",   "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"};
    if (p.all_spatial) {
      if (p.kind == ReduceKind::mean) return plain("GlobalAveragePool");
      if (p.kind == ReduceKind::max) return plain("GlobalMaxPool");
      if (p.kind != ReduceKind::l1 && p.kind != ReduceKind::l2) return refuse("ONNX has no global form of it");
      set(node("GlobalLpPool"), "p", int64_t{p.kind == ReduceKind::l1 ? 1 : 2});
      return ok();
    }
    if (!p.axes.empty()) fill(1, "axes", values_of(p.axes));
    NodeProto& proto = node(kTypes[static_cast<size_t>(p.kind)]);
    set(proto, "keepdims", int64_t{p.keep_dims});
    if (p.noop_if_no_axes) set(proto, "noop_with_empty_axes", int64_t{1});
    return ok();
  }
  Status operator()(const SoftmaxOp& p) {
    // The old form over several axes has no counterpart unless it is the last axis.
    const GraphTensor& x = model.graph().tensor(op.inputs[0]);
    const bool last = p.axis == -1 || (x.rank_known && p.axis == x.shape.size() - 1);
    if (p.to_the_end && !last) return refuse("its softmax over several axes is not in today's ONNX");
    set(node(p.logarithm ? "LogSoftmax" : "Softmax"), "axis", p.axis);
    return ok();
  }
  Status operator()(const ConcatOp& p) {
    set(node("Concat"), "axis", p.axis);
    return ok();
  }
  Status operator()(const SplitOp& p) {
    if (!p.sizes.empty()) fill(1, "sizes", values_of(p.sizes));
    NodeProto& proto = node("Split");
    set(proto, "axis", p.axis);
    if (!given(1)) set(proto, "num_outputs", static_cast<int64_t>(out.size()));
    return ok();
  }
  Status operator()(const SliceOp& p) {
    if (!given(1)) {
      std::vector<int64_t> starts = values_of(p.starts), ends = values_of(p.ends), axes = values_of(p.axes);
      std::vector<int64_t> steps = p.steps.empty() ? std::vector<int64_t>(starts.size(), 1) : values_of(p.steps);
      if (axes.empty())
        for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
      if (ends.empty()) {  // resolved: the sizes are the output's
        const GraphTensor& y = model.graph().tensor(op.outputs[0]);
        if (!y.known || y.shape.size() != static_cast<int>(starts.size())) return refuse("its output's shape is not known");
        for (size_t i = 0; i < starts.size(); ++i) {
          const int64_t end = starts[i] + y.shape[static_cast<int>(i)] * steps[i];
          ends.push_back(steps[i] < 0 && end < 0 ? std::numeric_limits<int64_t>::min() : end);
        }
      }
      fill(1, "starts", starts);
      fill(2, "ends", ends);
      fill(3, "axes", axes);
      fill(4, "steps", steps);
    }
    return plain("Slice");
  }
  Status operator()(const ReshapeOp& p) {
    using Form = ReshapeOp::Form;
    if (p.form == Form::flatten) {
      const int64_t axis = p.target.empty() ? 1 : p.target[0];
      in.resize(1);
      set(node("Flatten"), "axis", axis);
      return ok();
    }
    if (p.target_given || (!given(1) && !p.target.empty())) {
      in.resize(1);
      fill(1, "target", values_of(p.target));
    }
    if (p.form == Form::squeeze) return plain("Squeeze");
    if (p.form == Form::unsqueeze) return plain("Unsqueeze");
    if (!given(1)) return refuse("its shape is not given");
    NodeProto& proto = node("Reshape");
    if (p.allow_zero) set(proto, "allowzero", int64_t{1});
    return ok();
  }
  Status operator()(const TransposeOp& p) {
    set_dims(node("Transpose"), "perm", p.permutation);
    return ok();
  }
  Status operator()(const ExpandOp&) {
    if (!given(1)) fill(1, "shape", values_of(model.graph().tensor(op.outputs[0]).shape));
    return plain("Expand");
  }
  Status operator()(const TileOp& p) {
    if (!given(1)) fill(1, "repeats", values_of(p.repeats));
    return plain("Tile");
  }
  Status operator()(const PadOp& p) {
    if (!given(1)) {
      std::vector<int64_t> pads = values_of(p.begin);
      pads.insert(pads.end(), p.end.begin(), p.end.end());
      fill(1, "pads", pads);
      if (p.mode == PadMode::constant && p.value != 0) {
        const std::string value =
            model.constant(op.name + ".value", HostTensor::of(DType::f32, {}, std::vector<float>{static_cast<float>(p.value)}));
        in.resize(3);
        in[2] = model.fresh(op.name + ".value.typed");
        model.node(in[2], "CastLike", {value, in[0]}, {in[2]});
      }
    }
    set(node("Pad"), "mode", name_of(p.mode));
    return ok();
  }
  Status operator()(const ResizeOp& p) {
    const std::vector<double>& scales = p.params.scales.empty() ? p.given_scales : p.params.scales;
    if (!given(2) && !given(3)) {
      if (scales.empty()) return refuse("its scales are not known");
      const std::vector<float> values(scales.begin(), scales.end());
      in.resize(3);
      in[2] = model.constant(op.name + ".scales", HostTensor::of(DType::f32, {static_cast<int64_t>(values.size())}, values));
    }
    // From opset 11 on one rule serves all axes.
    ResizeNearest nearest = p.params.nearest;
    if (nearest == ResizeNearest::per_axis && p.params.mode == ResizeMode::nearest) {
      const auto shrinks = [](double scale) { return scale < 1; };
      const bool some = std::any_of(scales.begin(), scales.end(), shrinks);
      if (scales.empty() || (some && std::any_of(scales.begin(), scales.end(), [](double scale) { return scale > 1; })))
        return refuse("one of its axes shrinks and another grows, or its scales are not known");
      nearest = some ? ResizeNearest::ceil : ResizeNearest::floor;
    } else {
      nearest = rule_along(nearest, 1);
    }
    NodeProto& proto = node("Resize");
    const bool crop = p.params.coordinates == ResizeCoordinates::tf_crop;
    constexpr std::string_view kKeep[] = {"stretch", "not_larger", "not_smaller"};
    set(proto, "mode", name_of(p.params.mode));
    set(proto, "coordinate_transformation_mode", crop ? "tf_crop_and_resize" : name_of(p.params.coordinates));
    set(proto, "nearest_mode", name_of(nearest));
    set(proto, "cubic_coeff_a", p.params.cubic_a);
    set(proto, "exclude_outside", int64_t{p.params.exclude_outside});
    set(proto, "extrapolation_value", p.params.extrapolation);
    set(proto, "keep_aspect_ratio_policy", kKeep[static_cast<size_t>(p.keep)]);
    set(proto, "antialias", int64_t{p.antialias});
    set_dims(proto, "axes", p.axes);
    return ok();
  }
  Status operator()(const DepthToSpaceOp& p) {
    NodeProto& proto = node("DepthToSpace");
    set(proto, "blocksize", p.block);
    set(proto, "mode", std::string_view(p.columns_first ? "CRD" : "DCR"));
    return ok();
  }
  Status operator()(const SpaceToDepthOp& p) {
    NodeProto& proto = node("SpaceToDepth");
    set(proto, "blocksize", p.block);
    if (p.columns_first) set(proto, "mode", std::string_view("CRD"));
    return ok();
  }
  Status operator()(const GatherOp& p) {
    set(node("Gather"), "axis", p.axis);
    return ok();
  }
  Status operator()(const ShapeOp& p) {
    NodeProto& proto = node("Shape");
    if (p.start != 0) set(proto, "start", p.start);
    if (p.end) set(proto, "end", *p.end);
    return ok();
  }
  Status operator()(const SizeOp&) { return plain("Size"); }
  Status operator()(const RangeOp&) { return plain("Range"); }
  Status operator()(const HostOp&) { return refuse("operators between the parts of a model are not written"); }
  Status operator()(const ConstantOfShapeOp& p) {
    // One element of the wanted type: zero, or a cast of the value.
    if (p.value == 0) {
      put_tensor(HostTensor::zeros(p.dtype, {1}), "",
                 *add(node("ConstantOfShape"), "value", AttributeProto::TENSOR).mutable_t());
      return ok();
    }
    if (is_narrow(p.dtype)) {
      put_tensor(from_doubles(p.dtype, {1}, {p.value}), "",
                 *add(node("ConstantOfShape"), "value", AttributeProto::TENSOR).mutable_t());
      return ok();
    }
    const std::string plain_name = model.fresh(op.name + ".double");
    auto& attribute = add(model.node(plain_name, "ConstantOfShape", in, {plain_name}), "value", AttributeProto::TENSOR);
    put_tensor(HostTensor::of(DType::f64, {1}, std::vector<double>{p.value}), "", *attribute.mutable_t());
    set(model.node(op.name, "Cast", {plain_name}, out), "to", int64_t{onnx_type_of(p.dtype)});
    return ok();
  }
  Status operator()(const ArgOp& p) {
    NodeProto& proto = node(p.smallest ? "ArgMin" : "ArgMax");
    set(proto, "axis", p.axis);
    set(proto, "keepdims", int64_t{p.keep_dims});
    if (p.last) set(proto, "select_last_index", int64_t{1});
    return ok();
  }
  Status operator()(const TopKOp& p) {
    if (!given(1)) fill(1, "k", {p.k});
    NodeProto& proto = node("TopK");
    set(proto, "axis", p.axis);
    set(proto, "largest", int64_t{p.largest});
    return ok();
  }
  // Input `i` as a scalar from the parameters where the graph gives none.
  void fill_scalar(size_t i, std::string_view what, const HostTensor& value) {
    if (given(i)) return;
    if (in.size() <= i) in.resize(i + 1);
    in[i] = model.constant(op.name + "." + std::string(what), value);
  }
  static HostTensor number(int64_t value) { return HostTensor::of(DType::i64, {}, std::vector<int64_t>{value}); }
  Status operator()(const CumSumOp& p) {
    fill_scalar(1, "axis", number(p.axis));
    NodeProto& proto = node("CumSum");
    set(proto, "exclusive", int64_t{p.exclusive});
    set(proto, "reverse", int64_t{p.reverse});
    return ok();
  }
  Status operator()(const TriluOp& p) {
    fill_scalar(1, "k", number(p.diagonal));
    set(node("Trilu"), "upper", int64_t{p.upper});
    return ok();
  }
  Status operator()(const GatherElementsOp& p) {
    set(node("GatherElements"), "axis", p.axis);
    return ok();
  }
  Status operator()(const GatherNDOp& p) {
    set(node("GatherND"), "batch_dims", p.batch_axes);
    return ok();
  }
  Status operator()(const ScatterElementsOp& p) {
    NodeProto& proto = node("ScatterElements");
    set(proto, "axis", p.axis);
    set(proto, "reduction", name_of(p.reduction));
    return ok();
  }
  Status operator()(const ScatterNDOp& p) {
    set(node("ScatterND"), "reduction", name_of(p.reduction));
    return ok();
  }
  Status operator()(const OneHotOp& p) {
    if (in.size() == 2) in.insert(in.begin() + 1, model.constant(op.name + ".depth", number(p.depth)));
    set(node("OneHot"), "axis", p.axis);
    return ok();
  }
  Status operator()(const CenterCropPadOp& p) {
    if (!given(1)) fill(1, "shape", values_of(p.target));
    set_dims(node("CenterCropPad"), "axes", p.axes);
    return ok();
  }
  Status operator()(const QuantizeOp& p) {
    NodeProto& proto = node("QuantizeLinear");
    set(proto, "axis", p.axis);
    if (p.block > 0) set(proto, "block_size", p.block);
    return ok();
  }
  Status operator()(const DequantizeOp& p) {
    NodeProto& proto = node("DequantizeLinear");
    set(proto, "axis", p.axis);
    if (p.block > 0) set(proto, "block_size", p.block);
    return ok();
  }
  Status operator()(const EinsumOp& p) {
    set(node("Einsum"), "equation", std::string_view(p.equation));
    return ok();
  }
  Status operator()(const NonMaxSuppressionOp& p) {
    if (in.size() == 2) {  // resolved
      const auto real = [](double v) { return HostTensor::of(DType::f32, {}, std::vector<float>{static_cast<float>(v)}); };
      fill_scalar(2, "most", number(p.most));
      fill_scalar(3, "overlap", real(p.overlap));
      if (p.has_threshold) fill_scalar(4, "threshold", real(p.threshold));
    }
    set(node("NonMaxSuppression"), "center_point_box", int64_t{p.centers});
    return ok();
  }
  template <class Other>
  Status operator()(const Other&) {
    return refuse("the writer does not know this kind of operator");
  }
};

}  // namespace

Status write_op(ModelWriter& model, const Op& op) {
  if (op.outputs.empty()) return Error{Reason::bad_model, "Operator '" + op.name + "' has no outputs."};
  OpWriter writer{model, op, {}, {}};
  for (TensorId id : op.inputs) writer.in.push_back(model.name(id));
  for (TensorId id : op.outputs) writer.out.push_back(model.name(id));
  return std::visit(writer, op.params);
}

}  // namespace sparkle
