#include "backends/vulkan/driver/instance.h"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace sparkle::vulkan {
namespace {

constexpr const char* kValidation = "VK_LAYER_KHRONOS_validation";

bool layer_installed(const char* name) {
  uint32_t count = 0;
  if (vkEnumerateInstanceLayerProperties(&count, nullptr) != VK_SUCCESS) return false;
  std::vector<VkLayerProperties> layers(count);
  if (vkEnumerateInstanceLayerProperties(&count, layers.data()) < 0) return false;
  return std::any_of(layers.begin(), layers.end(), [&](const auto& l) { return std::strcmp(l.layerName, name) == 0; });
}

bool extension_offered(const char* name) {
  uint32_t count = 0;
  if (vkEnumerateInstanceExtensionProperties(nullptr, &count, nullptr) != VK_SUCCESS) return false;
  std::vector<VkExtensionProperties> all(count);
  if (vkEnumerateInstanceExtensionProperties(nullptr, &count, all.data()) < 0) return false;
  return std::any_of(all.begin(), all.end(), [&](const auto& e) { return std::strcmp(e.extensionName, name) == 0; });
}

VKAPI_ATTR VkBool32 VKAPI_CALL count_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                             const VkDebugUtilsMessengerCallbackDataEXT*, void* user) {
  ++*static_cast<int*>(user);
  return VK_FALSE;
}

Error no_vulkan(const std::string& why) {
  return {Reason::device_unusable, "There is no Vulkan here: " + why + "; use --device cpu."};
}

std::mutex table_mutex;  // volk's table of functions is one for the process

Status load() {
  static const VkResult loaded = volkInitialize();
  if (loaded != VK_SUCCESS) return no_vulkan("the loader libvulkan.so.1 is not installed");
  if (vkEnumerateInstanceVersion == nullptr) return no_vulkan("the loader is older than Vulkan 1.1");
  return ok();
}

}  // namespace

bool PhysicalDevice::has(std::string_view extension) const {
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

Result<std::shared_ptr<Instance>> Instance::open(bool validation) {
  const std::lock_guard lock(table_mutex);
  SPARKLE_CHECK(load());
  std::shared_ptr<Instance> instance(new Instance);

  auto application = structure<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  application.pEngineName = "Sparkle";
  application.apiVersion = VK_API_VERSION_1_3;
  std::vector<const char*> layers, extensions;
  const bool validates = validation && layer_installed(kValidation);
  if (validates) layers.push_back(kValidation);
  instance->names_steps_ = validates || extension_offered(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  if (instance->names_steps_) extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  auto info = structure<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  if (extension_offered(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME)) {  // MoltenVK shows itself only to those who ask
    extensions.push_back(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
    info.flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
  }
  info.pApplicationInfo = &application;
  info.enabledLayerCount = static_cast<uint32_t>(layers.size());
  info.ppEnabledLayerNames = layers.data();
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  const VkResult created = vkCreateInstance(&info, nullptr, &instance->handle_);
  if (created != VK_SUCCESS) return no_vulkan("no driver could be opened (vkCreateInstance said " + name_of(created) + ")");
  volkLoadInstanceOnly(instance->handle_);
  if (validates) {
    auto messenger = structure<VkDebugUtilsMessengerCreateInfoEXT>(VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT);
    messenger.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
    messenger.pfnUserCallback = count_message;
    messenger.pUserData = &instance->messages_;
    SPARKLE_VK(vkCreateDebugUtilsMessengerEXT(instance->handle_, &messenger, nullptr, &instance->messenger_),
               "vkCreateDebugUtilsMessengerEXT");
  }
  SPARKLE_CHECK(instance->find_devices());
  return instance;
}

Result<std::shared_ptr<Instance>> Instance::lent(VkInstance handle, VkPhysicalDevice device,
                                                 const VkDeviceCreateInfo& made_with) {
  const std::lock_guard lock(table_mutex);
  SPARKLE_CHECK(load());
  std::shared_ptr<Instance> instance(new Instance);
  instance->handle_ = handle;
  instance->lent_ = true;
  // The loader's functions serve any instance; those that are there may be in use.
  if (vkEnumeratePhysicalDevices == nullptr) volkLoadInstanceOnly(handle);
  uint32_t count = 0;
  SPARKLE_VK(vkEnumeratePhysicalDevices(handle, &count, nullptr), "vkEnumeratePhysicalDevices");
  std::vector<VkPhysicalDevice> handles(count);
  SPARKLE_VK(vkEnumeratePhysicalDevices(handle, &count, handles.data()), "vkEnumeratePhysicalDevices");
  if (std::find(handles.begin(), handles.end(), device) == handles.end())
    return Error{Reason::device_unusable, "The caller's VkPhysicalDevice is not one of the caller's VkInstance."};
  PhysicalDevice described;
  described.handle = device;
  describe(described, handle, &made_with);
  instance->devices_.push_back(std::move(described));
  return instance;
}

Status Instance::find_devices() {
  uint32_t count = 0;
  // A driver that finds no device may call that an error.
  VkResult result = vkEnumeratePhysicalDevices(handle_, &count, nullptr);
  std::vector<VkPhysicalDevice> handles(count);
  if (result == VK_SUCCESS && count > 0) result = vkEnumeratePhysicalDevices(handle_, &count, handles.data());
  if (result != VK_SUCCESS && result != VK_INCOMPLETE)
    return no_vulkan("no device was found (vkEnumeratePhysicalDevices said " + name_of(result) + ")");
  if (count == 0) return no_vulkan("the installed drivers find no device");
  for (VkPhysicalDevice handle : handles) {
    PhysicalDevice device;
    device.handle = handle;
    describe(device, handle_);
    devices_.push_back(std::move(device));
  }
  return ok();
}

Instance::~Instance() {
  if (messenger_) vkDestroyDebugUtilsMessengerEXT(handle_, messenger_, nullptr);
  if (handle_ && !lent_) vkDestroyInstance(handle_, nullptr);
}

}  // namespace sparkle::vulkan
