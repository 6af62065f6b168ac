// Operators whose inputs are all constants become constants. What cannot be evaluated or is too large stays.
#include "graph/rewrites/rewrites.h"

namespace sparkle {

bool fold_constants(Editor& editor) {
  bool changed = false;
  for (int i = 0; i < editor.count(); ++i) {
    if (editor.erased(i)) continue;
    Op& op = editor.op(i);
    if (std::holds_alternative<UnknownOp>(op.params) || op.outputs.empty()) continue;
    std::vector<const HostTensor*> inputs;
    bool constant = true;
    for (TensorId id : op.inputs) {
      inputs.push_back(editor.constant(id));
      constant = constant && (id == kAbsent || inputs.back());
    }
    if (!constant) continue;
    // An error in the model is reported by bind(), where the operator is reached.
    auto values = evaluate(op, inputs, editor.graph().folding);
    if (!values.ok()) continue;
    for (size_t k = 0; k < op.outputs.size() && k < values->size(); ++k) {
      if (op.outputs[k] == kAbsent) continue;
      GraphTensor& out = editor.tensor(op.outputs[k]);
      out.constant = std::move((*values)[k]);
      out.dtype = out.constant->dtype;
      out.shape = out.constant->shape;
      out.known = out.rank_known = true;
    }
    editor.erase(i);
    changed = true;
  }
  return changed;
}

}  // namespace sparkle
