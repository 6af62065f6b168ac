// What in a model keeps its layers off the fast path of the device that serves it, by the rules of `sparkle check`, on the plan
// that runs.
#pragma once

#include <string>

#include "report/page/page.h"
#include "run/opening/open_model.h"

namespace sparkle::serve {

// `file`: the model's, which is read without its weights. `inputs`: shapes that `session` takes. Errors: bad_usage for a
// compiled model, which nobody can change; file_unreadable for a file that was written since; those of reading and binding, as
// where an input's value decides shapes.
Result<PageTarget> changes_of(const FileStamp& file, Session& session, const std::vector<HostTensor>& inputs);

}  // namespace sparkle::serve
