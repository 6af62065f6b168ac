// The machines of devices/*.json, built into the program: what a plan or a check can be made for without the machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/device.h"

namespace sparkle {

struct KnownDevice {
  std::string_view name;   // "rtx3090"
  std::string_view file;   // "rtx-3090" of devices/, without its ending
  std::string_view about;  // "NVIDIA GeForce RTX 3090, CUDA"
};

// Short names first, then those of the other files.
std::vector<KnownDevice> known_devices();

// By short name or by the file's name, letters and digits alone: "rtx3090", "RTX-3090". Errors: bad_usage listing the names.
bool is_known_device(std::string_view name);
Result<Device> known_device(std::string_view name);
// One of these, or what a FILE.json describes: a machine that need not be here.
Result<Device> described_device(const std::string& name);

}  // namespace sparkle
