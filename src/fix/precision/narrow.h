// A model in 16-bit floats: tensors, weights and the nodes between them, with casts where layers stay wide; the inputs and
// outputs of the model keep their types.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "fix/precision/ranges.h"

namespace sparkle::fix {

// Layers, by the name of their first result.
using Layers = std::set<std::string>;

// Why layers cannot be narrow: values beyond what fp16 holds (65504, with a factor of two to spare), operators without such a
// form. By first result, with the reason.
std::map<std::string, std::string> must_stay_wide(const Document& doc, DType to, const Ranges& ranges);

// `to`: f16 or bf16 (which raises the model to opset 22, the first in which convolutions take it). Errors: operator_not_served
// where a node cannot be raised.
Status make_narrow(Document& doc, DType to, const Layers& wide, const std::map<std::string, TensorInfo>& tensors);

// The same model in f32 in which constants and the result of each narrow layer are rounded to `to`: what a device with such
// units computes, on one whose plans keep more digits between layers. Tensors have the names of `doc`.
Document rounded(Document doc, DType to, const Layers& wide, const std::map<std::string, TensorInfo>& tensors);

}  // namespace sparkle::fix
