#include "serve/reports/changes.h"

#include "base/printable.h"
#include "fix/paddings.h"
#include "report/check_page.h"

namespace sparkle::serve {

Result<PageTarget> changes_of(const FileStamp& file, Session& session, const std::vector<HostTensor>& inputs) {
  std::vector<std::pair<std::string, Dims>> shapes;
  for (size_t i = 0; i < inputs.size(); ++i) shapes.emplace_back(session.inputs()[i].name, inputs[i].shape);
  const auto bind = [&](Graph graph) { return bound_by_name(std::move(graph), shapes); };
  SPARKLE_TRY(model, fix::model_to_check(file.path, bind));
  if (stamp_of(file.path) != file)
    return Error{Reason::file_unreadable,
                 "'" + printable(file.path) + "' is no longer the file that the model was loaded from; load it again."};
  SPARKLE_TRY(plan, session.prepare(inputs));
  return check_page(check_plan(model.graph, *plan, session.backend()->device(), model.options), "what to change");
}

}  // namespace sparkle::serve
