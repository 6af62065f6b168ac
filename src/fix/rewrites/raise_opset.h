// The same model in a newer opset: attributes that became inputs, operators that were renamed, meanings that changed.
#pragma once

#include <map>
#include <string>

#include "fix/document/document.h"

namespace sparkle::fix {

// Nothing where the model has that opset or a newer one. Errors: operator_not_served naming the node that cannot be raised.
Status raise_opset(Document& doc, int64_t to, const std::map<std::string, TensorInfo>& tensors);

}  // namespace sparkle::fix
