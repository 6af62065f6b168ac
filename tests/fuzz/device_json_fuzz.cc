// libFuzzer target: no text crashes the reader of device descriptions, and what it accepts it prints and reads back unchanged.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "device/device_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto device = sparkle::device_from_json({reinterpret_cast<const char*>(data), size});
  if (!device.ok()) {
    if (device.error().message.empty()) std::abort();
    return 0;
  }
  const auto back = sparkle::device_from_json(sparkle::device_to_json(*device));
  if (!back.ok() || !(*back == *device)) std::abort();
  return 0;
}
