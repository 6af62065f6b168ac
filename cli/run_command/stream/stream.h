// `sparkle run` on many items: files, folders and patterns, or frames of a video, through a pipeline into a file of answers.
#pragma once

#include "run/choice/open_together.h"
#include "run_command/run_options.h"

namespace sparkle::cli {

// Whether the inputs are items of their own, one behind the other, and not one for each input of the model.
bool is_stream(const RunOptions& options, const Session& session);
// On one device or several, which share the items.
int run_stream(const CommonOptions& common, const RunOptions& options, const Together& devices,
               const std::vector<std::string>& labels);

}  // namespace sparkle::cli
