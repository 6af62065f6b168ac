// What a backend may be able to do beside running programs: tell how much of its device's memory it has. One that can is a
// DeviceMemory.
#pragma once

#include <cstdint>

namespace sparkle {

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  // Of the device's own memory in buffers that somebody holds now, as the driver was asked for them.
  virtual int64_t device_bytes() const = 0;
};

}  // namespace sparkle
