#include "backends/vulkan/driver/enabled_features.h"

#include <cstring>

#include "backends/vulkan/driver/cooperative.h"

namespace sparkle::vulkan {
namespace {

// The structure of this type in a chain; nullptr: none.
template <class T>
const T* find(const void* chain, VkStructureType type) {
  for (auto* at = static_cast<const VkBaseInStructure*>(chain); at; at = at->pNext)
    if (at->sType == type) return reinterpret_cast<const T*>(at);
  return nullptr;
}
template <class T>
T* find(void* chain, VkStructureType type) {
  return const_cast<T*>(find<T>(static_cast<const void*>(chain), type));
}

bool extension_enabled(const VkDeviceCreateInfo& info, const char* name) {
  for (uint32_t i = 0; i < info.enabledExtensionCount; ++i)
    if (std::strcmp(info.ppEnabledExtensionNames[i], name) == 0) return true;
  return false;
}

// A feature is on where either structure says so: that of its Vulkan version or that of the extension it came from.
class Asked {
 public:
  explicit Asked(const void* chain) : chain_(chain) {}
  template <class T>
  bool by(VkStructureType type, VkBool32 T::* feature) const {
    const T* s = find<T>(chain_, type);
    return s && s->*feature;
  }

 private:
  const void* chain_;
};

}  // namespace

void keep_enabled(const VkDeviceCreateInfo& made_with, VkPhysicalDeviceFeatures2& features) {
  const Asked asked(made_with.pNext);
  const auto* ten = made_with.pEnabledFeatures;
  if (const auto* f = find<VkPhysicalDeviceFeatures2>(made_with.pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2))
    ten = &f->features;
  features.features.shaderInt16 &= ten && ten->shaderInt16;
  features.features.shaderInt64 &= ten && ten->shaderInt64;
  features.features.shaderFloat64 &= ten && ten->shaderFloat64;

  constexpr auto k11 = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  constexpr auto k12 = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  constexpr auto k13 = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
  using F11 = VkPhysicalDeviceVulkan11Features;
  using F12 = VkPhysicalDeviceVulkan12Features;
  using F13 = VkPhysicalDeviceVulkan13Features;
  if (auto* f = find<F11>(features.pNext, k11))
    f->storageBuffer16BitAccess &= asked.by(k11, &F11::storageBuffer16BitAccess) ||
                                   asked.by(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES,
                                            &VkPhysicalDevice16BitStorageFeatures::storageBuffer16BitAccess);
  if (auto* f = find<F12>(features.pNext, k12)) {
    constexpr auto kFloat16Int8 = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
    using Float16Int8 = VkPhysicalDeviceShaderFloat16Int8Features;
    f->shaderFloat16 &= asked.by(k12, &F12::shaderFloat16) || asked.by(kFloat16Int8, &Float16Int8::shaderFloat16);
    f->shaderInt8 &= asked.by(k12, &F12::shaderInt8) || asked.by(kFloat16Int8, &Float16Int8::shaderInt8);
    f->storageBuffer8BitAccess &=
        asked.by(k12, &F12::storageBuffer8BitAccess) || asked.by(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES,
                                                                 &VkPhysicalDevice8BitStorageFeatures::storageBuffer8BitAccess);
    f->bufferDeviceAddress &=
        asked.by(k12, &F12::bufferDeviceAddress) || asked.by(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES,
                                                             &VkPhysicalDeviceBufferDeviceAddressFeatures::bufferDeviceAddress);
    f->timelineSemaphore &=
        asked.by(k12, &F12::timelineSemaphore) || asked.by(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
                                                           &VkPhysicalDeviceTimelineSemaphoreFeatures::timelineSemaphore);
    f->scalarBlockLayout &=
        asked.by(k12, &F12::scalarBlockLayout) || asked.by(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SCALAR_BLOCK_LAYOUT_FEATURES,
                                                           &VkPhysicalDeviceScalarBlockLayoutFeatures::scalarBlockLayout);
    f->vulkanMemoryModel &=
        asked.by(k12, &F12::vulkanMemoryModel) || asked.by(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES,
                                                           &VkPhysicalDeviceVulkanMemoryModelFeatures::vulkanMemoryModel);
  }
  if (auto* f = find<F13>(features.pNext, k13)) {
    constexpr auto kSizes = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
    using Sizes = VkPhysicalDeviceSubgroupSizeControlFeatures;
    f->subgroupSizeControl &= asked.by(k13, &F13::subgroupSizeControl) || asked.by(kSizes, &Sizes::subgroupSizeControl);
    f->computeFullSubgroups &= asked.by(k13, &F13::computeFullSubgroups) || asked.by(kSizes, &Sizes::computeFullSubgroups);
    f->synchronization2 &=
        asked.by(k13, &F13::synchronization2) || asked.by(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES,
                                                          &VkPhysicalDeviceSynchronization2Features::synchronization2);
    f->maintenance4 &= asked.by(k13, &F13::maintenance4) || asked.by(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES,
                                                                     &VkPhysicalDeviceMaintenance4Features::maintenance4);
    f->shaderIntegerDotProduct &= asked.by(k13, &F13::shaderIntegerDotProduct) ||
                                  asked.by(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
                                           &VkPhysicalDeviceShaderIntegerDotProductFeatures::shaderIntegerDotProduct);
  }
  using Cooperative = VkPhysicalDeviceCooperativeMatrixFeaturesKHR;
  constexpr auto kCooperative = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
  if (auto* f = find<Cooperative>(features.pNext, kCooperative))
    f->cooperativeMatrix &= asked.by(kCooperative, &Cooperative::cooperativeMatrix) &&
                            extension_enabled(made_with, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
  using Groups = VkPhysicalDeviceCooperativeMatrix2FeaturesNV;
  constexpr auto kGroups = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV;
  if (auto* f = find<Groups>(features.pNext, kGroups)) {
    const bool extension = extension_enabled(made_with, VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME);
    f->cooperativeMatrixWorkgroupScope &= extension && asked.by(kGroups, &Groups::cooperativeMatrixWorkgroupScope);
    f->cooperativeMatrixFlexibleDimensions &= extension && asked.by(kGroups, &Groups::cooperativeMatrixFlexibleDimensions);
  }
  using Executable = VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR;
  constexpr auto kExecutable = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR;
  if (auto* f = find<Executable>(features.pNext, kExecutable))
    f->pipelineExecutableInfo &= asked.by(kExecutable, &Executable::pipelineExecutableInfo) &&
                                 extension_enabled(made_with, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
}

}  // namespace sparkle::vulkan
