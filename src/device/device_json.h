// Device descriptions as JSON: what devices/*.json hold and `sparkle devices --json` prints. Units stand in the key names. Only
// "schema" is required; a field that is left out is unknown (or its default), a field that is not in the schema is an error.
// "source" is free text saying where the numbers come from, "tried" a list of texts on kernels' self-tests; neither is kept.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "device/device.h"

namespace sparkle {

inline constexpr std::string_view kDeviceSchema = "sparkle-device-1";

// Fields that hold their default are left out; from_json(to_json(d)) equals d, numbers to the last bit. `source` is written
// where it is not empty.
std::string device_to_json(const Device& device, std::string_view source = {}, std::span<const std::string> tried = {});

// Errors (bad_format) name the place in the document: "memory[2].bytes is -5, but ...".
Result<Device> device_from_json(std::string_view text);

// Errors: file_unreadable, or bad_format with the path in front.
Result<Device> load_device(const std::string& path);

}  // namespace sparkle
