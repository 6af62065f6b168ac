// How a picture becomes a network's input where nobody says it: from the shapes of the model's tensors, and from what its file
// says of itself.
#pragma once

#include <map>

#include "vision/tasks/task.h"

namespace sparkle {

// With `preset`, or where it is empty with the one that networks of such inputs and outputs were trained with, changed by what
// ONNX's metadata for pictures says. Sizes are the input's, 0 where they are open. Errors: bad_usage for an unknown preset.
Result<Preprocess> guess_preprocess(const PictureInput& input, DType type, const std::vector<OutputForm>& outputs,
                                    const std::map<std::string, std::string>& metadata, const std::string& preset = "");

// What a picture is resized to before it is cropped: the share of 224 in 256 is the usual margin of ImageNet's networks; small
// pictures are used whole. 0: just large enough.
int usual_shorter_side(const Preprocess& p);

}  // namespace sparkle
