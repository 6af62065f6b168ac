// The walk that makes a plan: operators in order, each rule takes the axes of its inputs on to its outputs, or lets padding
// end.
#pragma once

#include <functional>
#include <optional>

#include "fix/pad/plan.h"

namespace sparkle::fix {

class Walk {
 public:
  Walk(const Document& doc, const std::map<std::string, TensorInfo>& tensors);

  // -- what rules ask; all of the node at hand
  const ::onnx::NodeProto& node() const { return doc_.graph().node(node_); }
  int at() const { return node_; }
  int inputs() const { return node().input_size(); }
  bool given(int input) const { return !input_of(node(), input).empty(); }
  bool constant(int input) const { return doc_.is_constant(input_of(node(), input)); }
  std::optional<HostTensor> value(int input) const { return doc_.constant(input_of(node(), input)); }
  std::optional<std::vector<int64_t>> integers(int input) const;
  Dims shape(int input) const { return shape_of(input_of(node(), input)); }
  Dims out_shape(int output = 0) const { return shape_of(node().output(output)); }
  Dims shape_of(const std::string& tensor) const;
  const PadPlan::Axis* axis(int input) const;
  bool used(int output) const { return output < node().output_size() && !node().output(output).empty(); }
  int64_t opset() const { return opset_; }
  bool from_inputs_alone(int input) const;                   // no product lies before
  double others(const std::string& tensor, int axis) const;  // elements per element of the axis

  // -- what rules say
  void set(PadPlan::Axis axis, int output = 0) { plan.axes[node().output(output)] = std::move(axis); }
  void edit(int input, int axis, const Runs& runs, double fill = 0) {
    plan.constants.push_back({node_, input, axis, runs, fill});
  }
  // Padding ends before this input: sliced off where no product follows, else the channels stay as they are.
  void block(int input);
  void block_all();
  void pin(int input);
  // The channels of an input that does not grow by itself: a Pad before this reader.
  Runs enter(int input, int axis);
  // These channels grow behind the last of them alone.
  void grow_at_end(const Runs& list) { ends_.push_back(list); }
  std::string label() const { return label_of(node(), node_); }

  PadPlan plan;

  void run();

 private:
  void find_products();
  const Document& doc_;
  const std::map<std::string, TensorInfo>& tensors_;
  int64_t opset_;
  int node_ = 0;
  std::vector<bool> products_follow_;  // per node: itself or one behind it
  std::map<std::string, bool> behind_product_;
  std::vector<Runs> ends_;
};

bool is_product(const std::string& type);

// The rule for an operator type; nullptr: padding ends there.
using Rule = void (*)(Walk&);
Rule product_rule(const std::string& type);
Rule element_rule(const std::string& type);
Rule move_rule(const std::string& type);

}  // namespace sparkle::fix
