// Shapes of a model's inputs in words, and what to do with a tensor whose shape it does not take.
#pragma once

#include <string>

#include "prepare/model_inputs.h"

namespace sparkle {

// "1x3xHx?", the names of open sizes or '?'; "scalar".
std::string declared_shape(const SessionInput& input);
// "'image' (f32 1x3xHxW), 'mask' (i64 1)"; "no inputs".
std::string listed_inputs(const std::vector<SessionInput>& inputs);

// "; put an axis of 1 in front of it", "; its channels are last, ...": where that alone is wrong. Else empty.
std::string shape_advice(const SessionInput& want, const Dims& have);

}  // namespace sparkle
