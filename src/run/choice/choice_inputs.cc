#include "run/choice/choice_inputs.h"

#include <algorithm>

#include "prepare/random_inputs.h"
#include "prepare/shape_advice.h"

namespace sparkle {

Result<std::vector<HostTensor>> choice_inputs(const std::vector<SessionInput>& wanted,
                                              const std::vector<std::pair<std::string, Dims>>& shapes, int64_t rows) {
  std::vector<Dims> sizes;
  for (const SessionInput& in : wanted) {
    const auto given = std::find_if(shapes.begin(), shapes.end(), [&](const auto& named) {
      return named.first == in.name || (named.first.empty() && wanted.size() == 1);
    });
    sizes.push_back(given == shapes.end() ? in.shape : given->second);
    if (given != shapes.end()) continue;
    Dims& own = sizes.back();
    if (own.size() > 0 && own[0] < 0) own[0] = rows;
    if (!in.rank_known || std::any_of(own.begin(), own.end(), [](int64_t size) { return size < 0; }))
      return Error{Reason::bad_usage, "The model leaves sizes of input " + listed_inputs({in}) +
                                          " open, and which device is the fastest depends on them."};
  }
  for (const auto& [name, shape] : shapes)
    if (!name.empty() &&
        std::none_of(wanted.begin(), wanted.end(), [&name = name](const SessionInput& in) { return in.name == name; }))
      return Error{Reason::bad_usage, "The model has no input '" + name + "'; it has " + listed_inputs(wanted) + "."};
  SPARKLE_TRY(tensors, unfilled_inputs(wanted, sizes));
  SPARKLE_CHECK(fill_inputs(wanted, tensors, 1));
  return tensors;
}

}  // namespace sparkle
