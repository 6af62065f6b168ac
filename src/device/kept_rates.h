// Measured rates kept in the user's cache: one small JSON file per machine, way of measuring and build.
#pragma once

#include <ctime>
#include <optional>
#include <string>

#include "device/device.h"

namespace sparkle {

struct KeptRates {
  std::string path;             // of the file; empty when there is nowhere to write
  std::time_t measured_at = 0;  // 0 where it cannot be told
};

// Rates kept earlier for this device, put into it; none, and `device` as it was, where there is no such file. `how`: what else
// the measurement depended on ("width 2"). `folder`: empty for the user's cache folder.
std::optional<KeptRates> kept_rates(Device& device, const std::string& how, const std::string& folder = {});

// Keeps the device's rates. A file that cannot be written leaves `path` empty.
KeptRates keep_rates(const Device& device, const std::string& how, const std::string& folder = {});

}  // namespace sparkle
