// A model of fp16 tensors in f32, as a place to begin from: what it computes has more digits then, its inputs and outputs keep
// their types.
#pragma once

#include "fix/document/document.h"

namespace sparkle::fix {

// Whether products of the model read 16-bit floats.
bool has_narrow_products(const Document& doc, const std::map<std::string, TensorInfo>& tensors);
void make_wide(Document& doc, const std::map<std::string, TensorInfo>& tensors);

}  // namespace sparkle::fix
