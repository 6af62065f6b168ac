// A model opened on each of the devices of --device A,B or --device all.
#pragma once

#include "command.h"
#include "run/choice/open_together.h"

namespace sparkle::cli {

// `rows`: as open_session() takes them. Errors: those of opening devices and the model; bad_usage for options that one device
// alone takes.
Result<Together> open_model_together(const CommonOptions& common, const std::string& model, Roofs roofs, int64_t rows = 1);

}  // namespace sparkle::cli
