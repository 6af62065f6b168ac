// Instance: the Vulkan loader and its drivers, opened at run time, and what devices they offer.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "backends/vulkan/driver/vk.h"
#include "device/device.h"

namespace sparkle::vulkan {

// What shaders may use on a device, and what of it a program has to ask for.
struct Features {
  bool f16 = false;  // arithmetic and storage
  bool i8 = false;   // 8-bit integers and their storage
  bool i16 = false;
  bool i64 = false;
  bool f64 = false;                 // arithmetic in double precision
  bool dot = false;                 // integer dot products that the hardware speeds up
  bool subgroup_size = false;       // the size of subgroups may be demanded
  bool cooperative = false;         // VK_KHR_cooperative_matrix
  bool cooperative_groups = false;  // matrices of whole workgroups in sizes of one's own: VK_NV_cooperative_matrix2
  bool keeps_nan = false;           // shaders may demand that NaN, infinities and the sign of zero are kept
  bool exact_f16 = false;           // and that numbers become f16 rounded to even, denormal ones and NaN kept
  bool statistics = false;          // what the driver made of a shader may be read
  uint32_t least_subgroup = 0, most_subgroup = 0;
  bool host_sees_memory = false;  // device memory is the host's: integrated and software devices
};

struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  std::string name;
  std::string driver;                   // "NVIDIA 580.65.06", "radv Mesa 25.0.7"
  std::array<uint8_t, 16> driver_id{};  // identifies driver and version: key of caches on disk
  std::string unusable;                 // why it is; empty: it may be used
  Features features;
  Device description;  // rates unknown
  std::vector<std::string> extensions;
  bool has(std::string_view extension) const;
};

class Instance {
 public:
  // Errors: device_unusable where there is no loader, no driver or no device, saying which.
  static Result<std::shared_ptr<Instance>> open(bool validation = false);
  // The caller's instance with one device of it, which was made with `made_with` (read here); both stay the caller's and
  // outlive this. Errors: device_unusable where there is no loader or the device is not the instance's.
  static Result<std::shared_ptr<Instance>> lent(VkInstance handle, VkPhysicalDevice device,
                                                const VkDeviceCreateInfo& made_with);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  VkInstance handle() const { return handle_; }
  const std::vector<PhysicalDevice>& devices() const { return devices_; }
  // Messages of the validation layer so far; 0 where it was not asked for or is not installed.
  int validation_messages() const { return messages_; }
  bool validates() const { return messenger_ != VK_NULL_HANDLE; }
  // Whether command buffers may carry names for profilers (VK_EXT_debug_utils).
  bool names_steps() const { return names_steps_; }

 private:
  Instance() = default;
  Status find_devices();

  VkInstance handle_ = VK_NULL_HANDLE;
  bool lent_ = false, names_steps_ = false;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  int messages_ = 0;
  std::vector<PhysicalDevice> devices_;
};

// Fills what the driver says of the device: features, description, or why it is unusable. `made_with`: the device is made
// already, and has no features but those that were switched on.
void describe(PhysicalDevice& device, VkInstance instance, const VkDeviceCreateInfo* made_with = nullptr);

// Whether the device that describe() told of is made of the machine's own cores, which something else may be using.
bool is_software(const Device& description);

}  // namespace sparkle::vulkan
