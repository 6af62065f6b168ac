// What `check` asks of `fix`: the plan of padding that `fix` would carry out for a device if nobody says otherwise. So one
// function decides what is advised, what is counted as mended, and what is done.
#pragma once

#include "run/opening/open_model_to_check.h"

namespace sparkle::fix {

// open_model_to_check() with that question answered. Weights are not read.
Result<ModelToCheck> model_to_check(const std::string& path, const std::function<Result<Graph>(Graph)>& bind);

}  // namespace sparkle::fix
