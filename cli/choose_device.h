// --device auto for commands that run one model: which of the devices here that is, and when it may be another.
#pragma once

#include "loaded_model.h"
#include "run/choice/device_choice.h"

namespace sparkle::cli {

// The same options with the device that "auto" came to; one line on stderr says why, where there was a choice. Other devices
// stay as they are.
Result<CommonOptions> with_device(const CommonOptions& common, const ModelArguments& arguments);
// The same for a model whose items come later, `rows` of them in a run where it leaves its first axes open; the line names it.
Result<CommonOptions> with_device(const CommonOptions& common, const std::string& model, int64_t rows);
// Asks every device anew: the table of `devices --why`.
Result<DeviceDecision> decide_anew(const CommonOptions& common, const ModelArguments& arguments);

// Whether another device may take the place of the one that is asked for, where that cannot be used or fails: where
// --device auto chose it or --fallback allow is given, and never where --require names a device.
bool may_go_elsewhere(const CommonOptions& common);

}  // namespace sparkle::cli
