// Names of classes: from a file, from what a model says of itself, and whether there are enough of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "vision/tasks/task.h"

namespace sparkle {

// One name per line; "n01440764 tench, ..." loses its number. Empty for an empty path. Errors: file_unreadable.
Result<std::vector<std::string>> read_labels(const std::string& path);
// Those that exporters write into the model's metadata; empty where there are none.
std::vector<std::string> labels_of(const std::map<std::string, std::string>& metadata);
// Errors: bad_usage where no output is a row of classes, or the smallest row has more than there are names.
Status check_labels(const std::vector<OutputForm>& outputs, const std::vector<std::string>& labels);

}  // namespace sparkle
