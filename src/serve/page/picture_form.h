// What the page at / is told so that a picture fits a model.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "serve/protocol.h"
#include "vision/pictures/preprocess.h"

namespace sparkle::serve {

// How the model's only input takes a picture, by its shapes and the file's metadata; nothing where it takes none.
std::optional<Preprocess> picture_of(const ModelDescription& model, const std::map<std::string, std::string>& metadata);
// Class names of the file's metadata by their numbers.
std::vector<std::string> labels_of(const std::map<std::string, std::string>& metadata);

nlohmann::json picture_form(const ModelDescription& model, const Preprocess& preprocess,
                            const std::vector<std::string>& labels);

}  // namespace sparkle::serve
