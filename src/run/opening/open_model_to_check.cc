#include "run/opening/open_model_to_check.h"

#include <algorithm>
#include <filesystem>

#include "prepare/model_inputs.h"
#include "prepare/shape_advice.h"
#include "run/opening/open_model.h"

namespace sparkle {

Result<ModelToCheck> open_model_to_check(const std::string& path, const std::function<Result<Graph>(Graph)>& bind) {
  SPARKLE_TRY(graph, read_onnx_model(path, ExternalData::mapped));
  ModelToCheck model;
  model.options.open = open_inputs(graph);
  assume_rounded_weights(graph);
  model.as_read = graph;
  SPARKLE_TRY(bound, bind(std::move(graph)));
  assume_rounded_weights(bound);
  model.graph = std::move(bound);
  model.graph.name = std::filesystem::path(path).stem().string();  // exporters call most graphs alike
  return model;
}

Result<Graph> bound_by_name(Graph graph, const std::vector<std::pair<std::string, Dims>>& shapes) {
  SPARKLE_CHECK(simplify(graph));
  const std::vector<SessionInput> inputs = declared_tensors(graph, graph.inputs);
  for (const auto& [name, shape] : shapes)
    if (std::none_of(inputs.begin(), inputs.end(), [&, &called = name](const SessionInput& in) { return in.name == called; }))
      return Error{Reason::bad_usage, "The model has no input '" + name + "' to give a shape for."};
  std::vector<InputBinding> bindings;
  for (const SessionInput& in : inputs) {
    const auto given = std::find_if(shapes.begin(), shapes.end(), [&](const auto& s) { return s.first == in.name; });
    Dims shape = given == shapes.end() ? in.shape : given->second;
    if (given == shapes.end() && shape.size() > 0 && shape[0] < 0) shape[0] = 1;
    for (const int64_t size : shape)
      if (size < 0 || (!in.rank_known && given == shapes.end()))
        return Error{Reason::bad_usage,
                     "The model leaves sizes of input '" + in.name + "' (" + declared_shape(in) + ") open; give its shape."};
    bindings.push_back({shape, std::nullopt});
  }
  SPARKLE_TRY(bound, sparkle::bind(graph, bindings));
  SPARKLE_CHECK(simplify(bound));
  return bound;
}

}  // namespace sparkle
