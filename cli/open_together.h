// A model opened on each of the devices of --device A,B or --device all.
#pragma once

#include "command.h"
#include "run/choice/open_together.h"

namespace sparkle::cli {

// Errors: those of opening devices and the model; bad_usage for options that one device alone takes.
Result<Together> open_model_together(const CommonOptions& common, const std::string& model, Roofs roofs);

}  // namespace sparkle::cli
