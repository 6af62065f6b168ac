#include "run_command/model_inputs.h"

#include <algorithm>
#include <sstream>

#include "base/record.h"
#include "prepare/shape_advice.h"

namespace sparkle::cli {
namespace {

Result<Dims> parse_shape(const std::string& text) {
  Dims shape;
  std::istringstream stream(text +
                            (text.ends_with('x') ? "x" : ""));  // so that a size behind the last x is missing, not left out
  for (std::string size; std::getline(stream, size, 'x');) {
    int64_t value = 0;
    if (!record_detail::parse_number(size, value) || value < 0 || value > (int64_t{1} << 40) || shape.size() == kMaxRank)
      return Error{Reason::bad_usage, "'" + text + "' is not a shape; write sizes with x between, as in 1x3x224x224."};
    shape.push_back(value);
  }
  return shape;
}

// "1x3x224x224": the sizes that the model says, and some for those it leaves open.
std::string example_shape(const Dims& shape) {
  Dims sizes = shape;
  for (int a = 0; a < sizes.size(); ++a)
    if (sizes[a] < 0) sizes[a] = a == 0 ? 1 : sizes.size() == 4 ? 224 : 16;
  return sizes.to_string();
}

}  // namespace

Result<std::vector<Dims>> input_shapes(const std::vector<SessionInput>& inputs, const std::vector<std::string>& given) {
  std::vector<Dims> shapes(inputs.size());
  std::vector<bool> set(inputs.size(), false);
  for (const std::string& text : given) {
    const size_t equals = text.find('=');
    const std::string name = equals == std::string::npos ? (inputs.size() == 1 ? inputs[0].name : "") : text.substr(0, equals);
    SPARKLE_TRY(shape, parse_shape(equals == std::string::npos ? text : text.substr(equals + 1)));
    bool found = false;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].name == name) shapes[i] = shape, set[i] = found = true;
    if (!found && equals == std::string::npos)
      return Error{Reason::bad_usage, "--shape " + text +
                                          " does not say of which input, as in NAME=1x3x224x224; the model has " +
                                          listed_inputs(inputs) + "."};
    if (!found)
      return Error{Reason::bad_usage,
                   "--shape " + text + ": the model has no input '" + name + "'; it has " + listed_inputs(inputs) + "."};
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (set[i]) continue;
    shapes[i] = inputs[i].shape;
    for (int a = 0; a < shapes[i].size(); ++a) {
      if (shapes[i][a] >= 0) continue;
      if (a > 0)
        return Error{Reason::bad_usage, "The model leaves sizes of input " + listed_inputs({inputs[i]}) +
                                            " open; give them with --shape '" + inputs[i].name + "=" +
                                            example_shape(inputs[i].shape) + "'."};
      shapes[i][a] = 1;
    }
  }
  return shapes;
}

Result<Graph> bound_graph(Graph graph, const std::vector<std::string>& given) {
  SPARKLE_CHECK(simplify(graph));
  std::vector<SessionInput> inputs;
  for (TensorId id : graph.inputs) {
    const GraphTensor& t = graph.tensor(id);
    inputs.push_back({t.name, t.dtype, t.shape, t.axis_names, t.rank_known});
  }
  SPARKLE_TRY(shapes, input_shapes(inputs, given));
  std::vector<InputBinding> bindings;
  for (const Dims& shape : shapes) bindings.push_back({shape, std::nullopt});
  auto bound = sparkle::bind(graph, bindings);
  if (!bound.ok()) {
    const std::vector<bool> by_value = inputs_needed_by_value(graph);
    const auto first = std::find(by_value.begin(), by_value.end(), true);
    if (bound.error().reason != Reason::operator_not_served || first == by_value.end()) return bound.take_error();
    return Error{Reason::operator_not_served, "The input '" + inputs[static_cast<size_t>(first - by_value.begin())].name +
                                                  "' decides shapes by its value, which is not known before a run; give it to "
                                                  "'sparkle run' or to 'sparkle bench --model' with --input."};
  }
  SPARKLE_CHECK(simplify(*bound));
  return bound;
}

}  // namespace sparkle::cli
