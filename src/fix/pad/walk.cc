#include "fix/pad/walk.h"

#include <algorithm>

namespace sparkle::fix {

bool is_product(const std::string& type) {
  return type == "Conv" || type == "ConvTranspose" || type == "Gemm" || type == "MatMul" || type == "Attention" ||
         type == "Einsum" || type == "LSTM" || type == "GRU";
}

Walk::Walk(const Document& doc, const std::map<std::string, TensorInfo>& tensors)
    : doc_(doc), tensors_(tensors), opset_(doc.opset()) {
  find_products();
}

void Walk::find_products() {
  const auto& g = doc_.graph();
  products_follow_.assign(static_cast<size_t>(g.node_size()), false);
  for (int n = g.node_size() - 1; n >= 0; --n) {
    bool follows = is_product(g.node(n).op_type());
    for (const std::string& name : g.node(n).output())
      for (const Use& use : doc_.uses(name)) follows = follows || products_follow_[static_cast<size_t>(use.node)];
    products_follow_[static_cast<size_t>(n)] = follows;
  }
}

Dims Walk::shape_of(const std::string& tensor) const {
  const auto at = tensors_.find(tensor);
  return at == tensors_.end() ? Dims() : at->second.shape;
}

double Walk::others(const std::string& tensor, int axis) const {
  const Dims shape = shape_of(tensor);
  return axis < shape.size() && shape[axis] > 0 ? static_cast<double>(shape.product()) / static_cast<double>(shape[axis]) : 1;
}

std::optional<std::vector<int64_t>> Walk::integers(int input) const {
  const auto found = value(input);
  if (!found || found->dtype != DType::i64) return std::nullopt;
  return std::vector<int64_t>(found->data<int64_t>(), found->data<int64_t>() + found->elements());
}

const PadPlan::Axis* Walk::axis(int input) const {
  const auto at = plan.axes.find(input_of(node(), input));
  return at == plan.axes.end() ? nullptr : &at->second;
}

bool Walk::from_inputs_alone(int input) const {
  const auto at = behind_product_.find(input_of(node(), input));
  return at == behind_product_.end() || !at->second;
}

void Walk::pin(int input) {
  if (const auto* a = axis(input)) plan.channels.pin(a->runs);
}

void Walk::block(int input) {
  const auto* a = axis(input);
  if (!a) return;
  // What asks for the shape itself would compute with the padded one behind a Slice of the value alone.
  if (products_follow_[static_cast<size_t>(node_)] || node().op_type() == "Shape" || node().op_type() == "Size") {
    plan.channels.pin(a->runs);
    return;
  }
  const std::string name = input_of(node(), input);
  const Use use{node_, input};
  for (auto& border : plan.exits)
    if (border.tensor == name) {
      const bool known = std::any_of(border.uses.begin(), border.uses.end(),
                                     [&](const Use& u) { return u.node == use.node && u.input == use.input; });
      if (!known) border.uses.push_back(use);
      return;
    }
  plan.exits.push_back({name, a->axis, a->runs, {use}, false, others(name, a->axis)});
}

void Walk::block_all() {
  for (int i = 0; i < inputs(); ++i) block(i);
}

Runs Walk::enter(int input, int axis) {
  const std::string name = input_of(node(), input);
  for (auto& border : plan.entries)
    if (border.tensor == name && border.axis == axis) {
      border.uses.push_back({node_, input});
      return border.runs;
    }
  const Runs runs = plan.channels.add(shape(input)[axis], name, false);
  plan.entries.push_back({name, axis, runs, {{node_, input}}, false, others(name, axis)});
  return runs;
}

void Walk::run() {
  const auto& g = doc_.graph();
  for (node_ = 0; node_ < g.node_size(); ++node_) {
    Rule rule = nullptr;
    if (is_standard(node()))
      for (auto find : {product_rule, element_rule, move_rule})
        if (!rule) rule = find(node().op_type());
    if (rule) rule(*this);
    else block_all();
    bool behind = is_product(node().op_type());
    for (const std::string& name : node().input()) behind = behind || (behind_product_.contains(name) && behind_product_[name]);
    for (const std::string& name : node().output()) behind_product_[name] = behind;
  }
  for (const Runs& list : ends_) {  // runs may have been cut since
    const Runs runs = plan.channels.expand(list);
    for (const Run& run : runs)
      if (&run != &runs.back() || std::count(runs.begin(), runs.end(), run) > 1) plan.channels.pin({run});
  }
  // The model's outputs keep their shapes.
  for (const auto& info : g.output()) {
    const auto at = plan.axes.find(info.name());
    if (at == plan.axes.end()) continue;
    const auto border =
        std::find_if(plan.exits.begin(), plan.exits.end(), [&](const auto& b) { return b.tensor == info.name(); });
    if (border != plan.exits.end()) border->output = true;
    else plan.exits.push_back({info.name(), at->second.axis, at->second.runs, {}, true, others(info.name(), at->second.axis)});
  }
}

}  // namespace sparkle::fix
