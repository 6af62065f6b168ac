#include "fix/paddings.h"

#include <algorithm>
#include <memory>

#include "fix/pad/plan.h"
#include "fix/rewrites/exact.h"

namespace sparkle::fix {
namespace {

struct Outline {
  Document doc;
  std::map<std::string, TensorInfo> tensors;
};

// The shapes that the graph was bound to.
std::vector<InputBinding> bindings_of(const Graph& as_read, const Graph& bound) {
  std::vector<InputBinding> bindings;
  for (const TensorId id : as_read.inputs) {
    const GraphTensor& t = as_read.tensor(id);
    Dims shape = t.shape;
    for (int64_t& size : shape) size = std::max<int64_t>(1, size);
    for (const TensorId other : bound.inputs)
      if (bound.tensor(other).name == t.name) shape = bound.tensor(other).shape;
    bindings.push_back({shape, std::nullopt});
  }
  return bindings;
}

// As `fix` has the model when it comes to padding: constants folded, Transposes merged. BatchNormalization lets channels pass
// whether it was folded or not.
Result<Outline> outline_of(const ModelToCheck& model, const std::string& path) {
  SPARKLE_TRY(doc, Document::outline(path));
  const std::vector<InputBinding> bindings = bindings_of(model.as_read, model.graph);
  SPARKLE_TRY(tensors, infer_tensors(model.as_read, bindings));
  SPARKLE_TRY(values, constants_of(model.as_read, bindings));
  (void)fold_constants(doc, values);
  (void)merge_layouts(doc);
  return Outline{std::move(doc), std::move(tensors)};
}

Paddings paddings_of(const PadPlan& plan, const Document& doc) {
  Paddings paddings;
  for (const auto& p : plan.products) {
    PaddedLayer layer{
        plan.channels.size(p.in), plan.channels.grown(p.in), plan.channels.size(p.out), plan.channels.grown(p.out), {}};
    for (const Runs& list : {p.in, p.out})
      for (const Run& run : plan.channels.expand(list))
        for (const auto& refused : plan.refused)
          if (refused.run == run.id && layer.refused.empty()) layer.refused = refused.why;
    paddings.layers[p.name] = layer;
    paddings.layers[doc.graph().node(p.node).output(0)] = layer;
  }
  for (const auto& chain : plan.chains) paddings.border_seconds += chain.border_seconds;
  return paddings;
}

}  // namespace

Result<ModelToCheck> model_to_check(const std::string& path, const std::function<Result<Graph>(Graph)>& bind) {
  SPARKLE_TRY(model, open_model_to_check(path, bind));
  auto outline = outline_of(model, path);
  if (!outline.ok()) return model;  // `fix` would refuse it: nothing is said to mend it
  model.options.paddings = [at = std::make_shared<Outline>(std::move(*outline))](const Device& device, Precision precision) {
    return paddings_of(plan_padding(at->doc, at->tensors, default_padding(device, precision)), at->doc);
  };
  return model;
}

}  // namespace sparkle::fix
