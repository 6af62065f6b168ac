// Mutations of ONNX models that stay models: blind changes of bytes seldom get past the reader, these reach shape inference
// and the planner. Sizes and attributes take values at the edges of what can be counted, operands change places, inputs become
// constants.
#pragma once

#include <onnx.pb.h>

#include <cmath>
#include <iterator>
#include <random>
#include <string>

namespace sparkle::fuzz {

class ModelMutator {
 public:
  explicit ModelMutator(unsigned seed) : random_(seed) {}

  void mutate(::onnx::ModelProto& model) {
    ::onnx::GraphProto& g = *model.mutable_graph();
    do {
      switch (below(9)) {
        case 0:
        case 1: attribute(g); break;
        case 2: declared_size(g); break;
        case 3: constant_value(g); break;
        case 4: constant_shape(g); break;
        case 5: input_to_constant(g); break;
        case 6: operand(g); break;
        case 7: node(g); break;
        default:
          if (model.opset_import_size() > 0)
            model.mutable_opset_import(below(model.opset_import_size()))->set_version(below(26));
      }
    } while (below(3) == 0);
  }

 private:
  int below(int count) { return count > 0 ? static_cast<int>(random_() % static_cast<unsigned>(count)) : 0; }

  int64_t number() {
    const auto power = static_cast<int64_t>(uint64_t{1} << below(64));
    switch (below(6)) {
      case 0: return power;
      case 1: return static_cast<int64_t>(static_cast<uint64_t>(power) - 1);
      case 2: return static_cast<int64_t>(0 - static_cast<uint64_t>(power));
      default: return below(20) - 4;
    }
  }
  float real() {
    constexpr float kEdges[] = {0.f, -0.f, 1e-30f, 1e30f, -1e30f, INFINITY, 0.5f, 1.5f};
    return below(3) == 0 ? kEdges[below(std::size(kEdges))] : below(3) == 0 ? NAN : static_cast<float>(number());
  }

  // A random element of a repeated field; nullptr where there is none.
  template <class List>
  auto* any(List* list) {
    return list->empty() ? nullptr : list->Mutable(below(list->size()));
  }

  void attribute(::onnx::GraphProto& g) {
    ::onnx::NodeProto* node = any(g.mutable_node());
    ::onnx::AttributeProto* a = node ? any(node->mutable_attribute()) : nullptr;
    if (!a) return;
    if (below(8) == 0) {  // gone, or another node's
      ::onnx::NodeProto* other = any(g.mutable_node());
      if (other->attribute_size() == 0 || below(2) == 0) a->Swap(node->mutable_attribute(node->attribute_size() - 1));
      else *node->add_attribute() = other->attribute(below(other->attribute_size()));
      if (other->attribute_size() == 0 || below(2) == 0) node->mutable_attribute()->RemoveLast();
    } else if (a->ints_size() > 0) {
      if (below(4) == 0) a->add_ints(number());
      else a->set_ints(below(a->ints_size()), number());
    } else if (a->floats_size() > 0) {
      a->set_floats(below(a->floats_size()), real());
    } else if (a->has_f()) {
      a->set_f(real());
    } else if (a->has_i()) {
      a->set_i(number());
    } else if (a->has_t()) {
      value(*a->mutable_t());
    }
  }

  void declared_size(::onnx::GraphProto& g) {
    ::onnx::ValueInfoProto* info = any(g.mutable_input());
    if (!info || !info->type().has_tensor_type()) return;
    auto& type = *info->mutable_type()->mutable_tensor_type();
    auto& shape = *type.mutable_shape()->mutable_dim();
    switch (below(8)) {
      case 0: type.set_elem_type(below(17)); break;
      case 1: shape.Add()->set_dim_value(number()); break;
      case 2:
        if (!shape.empty()) shape.RemoveLast();
        break;
      default:
        if (auto* size = any(&shape)) size->set_dim_value(number());
    }
  }

  // One element of a tensor, of a type that parameters have.
  void value(::onnx::TensorProto& t) {
    const auto put = [&](auto v) {
      std::string& raw = *t.mutable_raw_data();
      if (raw.size() >= sizeof v)
        raw.replace(sizeof v * static_cast<size_t>(below(static_cast<int>(raw.size() / sizeof v))), sizeof v,
                    reinterpret_cast<const char*>(&v), sizeof v);
    };
    if (t.int64_data_size() > 0) t.set_int64_data(below(t.int64_data_size()), number());
    else if (t.int32_data_size() > 0) t.set_int32_data(below(t.int32_data_size()), static_cast<int32_t>(number()));
    else if (t.float_data_size() > 0) t.set_float_data(below(t.float_data_size()), real());
    else if (t.data_type() == ::onnx::TensorProto::INT64) put(number());
    else if (t.data_type() == ::onnx::TensorProto::FLOAT) put(real());
    else put(static_cast<int32_t>(number()));
  }
  void constant_value(::onnx::GraphProto& g) {
    if (auto* t = any(g.mutable_initializer())) value(*t);
  }
  // Other sizes, the bytes with them where they are few.
  void constant_shape(::onnx::GraphProto& g) {
    auto* t = any(g.mutable_initializer());
    if (!t || t->dims_size() == 0) return;
    t->set_dims(below(t->dims_size()), below(3) == 0 ? number() : below(6));
    fill(*t);
  }
  void fill(::onnx::TensorProto& t) {
    constexpr int kBytes[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 0, 0, 2};
    const int type = t.data_type();
    int64_t bytes = type > 0 && type < static_cast<int>(std::size(kBytes)) ? kBytes[type] : 0;
    for (const int64_t size : t.dims()) bytes = size < 0 || size > 4096 || bytes > 4096 ? -1 : bytes * size;
    if (bytes < 0 || bytes > 4096) return;
    t.clear_float_data(), t.clear_int32_data(), t.clear_int64_data(), t.clear_double_data(), t.clear_uint64_data();
    t.mutable_raw_data()->resize(static_cast<size_t>(bytes), '\x01');
  }
  void input_to_constant(::onnx::GraphProto& g) {
    if (g.input_size() == 0) return;
    const int at = below(g.input_size());
    auto& t = *g.add_initializer();
    t.set_name(g.input(at).name());
    const auto& type = g.input(at).type().tensor_type();
    t.set_data_type(type.elem_type());
    for (const auto& size : type.shape().dim()) t.add_dims(size.has_dim_value() ? size.dim_value() : 1 + below(4));
    fill(t);
    for (int i = 0; i < 4; ++i) value(t);
    g.mutable_input()->SwapElements(at, g.input_size() - 1);
    g.mutable_input()->RemoveLast();
  }

  // Another tensor's name, or none.
  void operand(::onnx::GraphProto& g) {
    ::onnx::NodeProto *node = any(g.mutable_node()), *other = any(g.mutable_node());
    if (!node) return;
    const bool from_output = below(2) == 0 && other->output_size() > 0;
    const std::string name = below(6) == 0         ? ""
                             : from_output         ? other->output(below(other->output_size()))
                             : other->input_size() ? other->input(below(other->input_size()))
                                                   : "";
    if (node->input_size() == 0 || below(6) == 0) node->add_input(name);
    else node->set_input(below(node->input_size()), name);
  }
  // A copy of a node that reads the result of another and gives an output of its own; or another operator's name.
  void node(::onnx::GraphProto& g) {
    ::onnx::NodeProto *node = any(g.mutable_node()), *other = any(g.mutable_node());
    if (!node || node->output_size() == 0 || g.node_size() > 20) return;
    if (below(4) == 0) {
      node->set_op_type(other->op_type());
      return;
    }
    ::onnx::NodeProto copy = *other;
    if (copy.input_size() > 0) copy.set_input(0, node->output(0));
    for (int i = 0; i < copy.output_size(); ++i)
      copy.set_output(i, copy.output(i) + "_" + std::to_string(g.node_size()) + std::to_string(i));
    if (copy.output_size() > 0) g.add_output()->set_name(copy.output(0));
    *g.add_node() = std::move(copy);
  }

  std::minstd_rand random_;
};

// LLVMFuzzerCustomMutator's work: three times of four as above, else, and where the bytes are no model, on the bytes
// themselves.
template <class Bytes>
size_t mutate_model(uint8_t* data, size_t size, size_t most, unsigned seed, Bytes&& mutate_bytes) {
  ::onnx::ModelProto model;
  if (seed % 4 == 0 || !model.ParseFromArray(data, static_cast<int>(size)) || !model.has_graph())
    return mutate_bytes(data, size, most);
  ModelMutator(seed).mutate(model);
  const size_t bytes = model.ByteSizeLong();
  if (bytes > most) return mutate_bytes(data, size, most);
  model.SerializeToArray(data, static_cast<int>(most));
  return bytes;
}

}  // namespace sparkle::fuzz
