#include "prepare/model_inputs.h"

#include <algorithm>

#include "base/system/out_of_memory.h"
#include "prepare/shape_advice.h"

namespace sparkle {

std::vector<SessionInput> declared_tensors(const Graph& graph, const std::vector<TensorId>& ids) {
  std::vector<SessionInput> list;
  for (TensorId id : ids) {
    const GraphTensor& t = graph.tensor(id);
    list.push_back({t.name, t.dtype, t.shape, t.axis_names, t.rank_known});
  }
  return list;
}

bool same_names(const std::vector<SessionInput>& before, const Graph& graph, const std::vector<TensorId>& ids) {
  return std::equal(before.begin(), before.end(), ids.begin(), ids.end(), [&](const SessionInput& was, TensorId id) {
    return graph.tensor(id).name == was.name && graph.tensor(id).dtype == was.dtype;
  });
}

bool same_shapes(const std::vector<SessionInput>& before, const Graph& graph, const std::vector<TensorId>& ids) {
  return std::equal(before.begin(), before.end(), ids.begin(), ids.end(), [&](const SessionInput& was, TensorId id) {
    return graph.tensor(id).rank_known == was.rank_known && graph.tensor(id).shape == was.shape;
  });
}

void correct_sizes(SessionInput& declared, const GraphTensor& real) {
  bool fits = !declared.rank_known || declared.shape.size() == real.shape.size();
  for (int a = 0; fits && declared.rank_known && a < real.shape.size(); ++a)
    fits = declared.shape[a] < 0 || declared.shape[a] == real.shape[a];
  if (fits || real.open) return;
  declared.shape = real.shape;
  declared.axis_names = {};
}

bool all_fixed(const std::vector<SessionInput>& inputs) {
  return std::all_of(inputs.begin(), inputs.end(), [](const SessionInput& in) {
    return in.rank_known && !in.by_value && std::all_of(in.shape.begin(), in.shape.end(), [](int64_t d) { return d >= 0; });
  });
}

Status check_inputs(const std::vector<SessionInput>& wanted, const std::vector<HostTensor>& given, bool compiled) {
  if (given.size() != wanted.size())
    return Error{Reason::bad_input, "The model takes " + std::to_string(wanted.size()) + " inputs, " +
                                        std::to_string(given.size()) + " were given."};
  for (size_t i = 0; i < given.size(); ++i) {
    const SessionInput& want = wanted[i];
    const HostTensor& have = given[i];
    const std::string who = "Input '" + want.name + "' ";
    if (have.dtype != want.dtype)
      return Error{Reason::bad_input, who + "is " + std::string(name_of(want.dtype)) + " in the model, " +
                                          std::string(name_of(have.dtype)) + " was given; convert it."};
    if (!tensor_bytes(have.dtype, have.shape))
      return Error{Reason::size_overflow, who + "of shape " + have.shape.to_string() + " is more than can be addressed."};
    if (want.by_value && !have.bytes && have.elements() > 0)
      return Error{Reason::bad_input, who + "decides shapes; its values must be given."};
    if (!want.rank_known) continue;
    bool fits = have.shape.size() == want.shape.size();
    for (int a = 0; fits && a < have.shape.size(); ++a) fits = want.shape[a] < 0 || want.shape[a] == have.shape[a];
    if (!fits) {
      const std::string advice = compiled ? "; compile the model for this shape" : shape_advice(want, have.shape);
      return Error{Reason::bad_input, who + "has shape " + declared_shape(want) +
                                          (compiled ? " in the compiled file, " : " in the model, ") + have.shape.to_string() +
                                          " was given" + advice + "."};
    }
  }
  return ok();
}

}  // namespace sparkle
