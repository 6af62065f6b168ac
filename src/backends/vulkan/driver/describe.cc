// What a Vulkan driver says of its device, as features for shaders and as a Device for the planner. Vulkan tells no rates, no
// caches and no clock: these stay unknown until they are measured.
#include <algorithm>
#include <cstring>

#include "backends/vulkan/driver/cooperative.h"
#include "backends/vulkan/driver/enabled_features.h"
#include "backends/vulkan/driver/instance.h"
#include "families/gemm/gemm_tiles.h"

namespace sparkle::vulkan {
namespace {

constexpr const char* kSoftware = "llvmpipe";

std::string vendor_of(uint32_t id) {
  switch (id) {
    case 0x1002: return "AMD";
    case 0x10de: return "NVIDIA";
    case 0x8086: return "Intel";
    case 0x106b: return "Apple";
    case 0x13b5: return "Arm";
    case 0x5143: return "Qualcomm";
    case 0x10005: return "Mesa";
    default: return "";
  }
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// By the names that drivers give: RADV ends names with the chip's, NVIDIA's and Intel's are those on the box.
std::string architecture_of(const std::string& vendor, const std::string& name, const Features& f) {
  if (contains(name, kSoftware)) return kSoftware;
  if (vendor == "AMD") {
    for (const char* chip : {"NAVI3", "GFX11", "Radeon RX 7", "PHOENIX", "Radeon 7"})
      if (contains(name, chip)) return "rdna3";
    for (const char* chip : {"NAVI4", "GFX12", "Radeon RX 9"})
      if (contains(name, chip)) return "rdna4";
    for (const char* chip : {"NAVI2", "Radeon RX 6", "GFX103"})
      if (contains(name, chip)) return "rdna2";
    return f.least_subgroup == 64 ? "gcn" : "rdna1";
  }
  if (vendor == "NVIDIA") {
    for (const char* chip : {"H100", "H200", "GH200"})
      if (contains(name, chip)) return "hopper";
    if (contains(name, "RTX 40") || contains(name, "L40") || contains(name, " L4")) return "ada";
    if (contains(name, "RTX 30") || contains(name, "A100") || contains(name, "RTX A")) return "ampere";
    if (contains(name, "RTX 20") || contains(name, "T4")) return "turing";
    return "nvidia";
  }
  if (vendor == "Intel") return "xe";
  return "";
}

// Intel's drivers tell no number of cores: Xe cores by the name of the card (data sheets); 1: unknown.
int cores_of(const std::string& name) {
  constexpr std::pair<const char*, int> kCards[] = {{"A770", 32}, {"A750", 28}, {"A580", 24}, {"A380", 8},
                                                    {"A310", 6},  {"B580", 20}, {"B570", 18}};
  for (const auto& [card, cores] : kCards)
    if (contains(name, "Arc") && contains(name, card)) return cores;
  return 1;
}

// Subgroups that a core computes at once, by public documents of each architecture; 0: unknown.
bool is_battlemage(const std::string& name) {  // "Intel(R) Arc(TM) B580 Graphics", "... Pro B60 ..."
  const size_t at = name.find(" B");
  return at != std::string::npos && at + 2 < name.size() && name[at + 2] >= '0' && name[at + 2] <= '9';
}

int schedulers_of(const std::string& vendor, const std::string& architecture, const std::string& name) {
  if (vendor == "NVIDIA") return 4;
  if (vendor == "AMD") return architecture == "gcn" ? 4 : 2;
  if (vendor == "Intel" && contains(name, "Arc")) return is_battlemage(name) ? 8 : 16;
  return 0;
}

// Registers that a thread can name, likewise.
int registers_of(const std::string& vendor) {
  return vendor == "NVIDIA" ? 255 : vendor == "AMD" ? 256 : vendor == "Intel" ? 128 : 0;
}

MathUnit vector_unit(const char* name, DType type, int lanes, int k) {
  MathUnit unit;
  unit.name = name;
  unit.n = lanes;
  unit.k = k;
  unit.input = unit.accumulator = type;
  return unit;
}

MathUnit matrix_unit(const std::string& name, const Fragment& fragment) {
  MathUnit unit;
  unit.name = name;
  unit.kind = UnitKind::matrix;
  unit.m = fragment.m, unit.n = fragment.n, unit.k = fragment.k;
  unit.input = DType::f16;
  unit.accumulator = DType::f32;
  return unit;
}

void add_matrix_units(PhysicalDevice& device, VkInstance instance) {
  const auto list = reinterpret_cast<PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR>(
      vkGetInstanceProcAddr(instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
  if (!list) return;
  uint32_t count = 0;
  if (list(device.handle, &count, nullptr) != VK_SUCCESS) return;
  std::vector<VkCooperativeMatrixPropertiesKHR> all(
      count, structure<VkCooperativeMatrixPropertiesKHR>(VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR));
  if (list(device.handle, &count, all.data()) < 0) return;
  for (const auto& p : all) {
    const bool fp16 = p.AType == VK_COMPONENT_TYPE_FLOAT16_KHR && p.BType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
                      p.CType == VK_COMPONENT_TYPE_FLOAT32_KHR && p.ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR;
    const Fragment fragment{static_cast<int>(p.MSize), static_cast<int>(p.NSize), static_cast<int>(p.KSize)};
    const std::string name = fragment_unit_name(fragment);
    if (!fp16 || p.scope != VK_SCOPE_SUBGROUP_KHR || device.description.unit(name)) continue;
    device.description.units.push_back(matrix_unit(name, fragment));
  }
}

// Matrices of whole workgroups, in multiples of some size. A driver may keep shared memory for them: what of it is more than
// tiles leave unused is taken from all kernels alike.
void add_group_unit(PhysicalDevice& device, VkInstance instance, const VkPhysicalDeviceCooperativeMatrix2PropertiesNV& limits) {
  const auto list = reinterpret_cast<PFN_vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV>(
      vkGetInstanceProcAddr(instance, "vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV"));
  uint32_t count = 0;
  if (!list || list(device.handle, &count, nullptr) != VK_SUCCESS) return;
  std::vector<VkCooperativeMatrixFlexibleDimensionsPropertiesNV> all(
      count, structure<VkCooperativeMatrixFlexibleDimensionsPropertiesNV>(
                 VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_FLEXIBLE_DIMENSIONS_PROPERTIES_NV));
  if (list(device.handle, &count, all.data()) < 0) return;
  if (limits.cooperativeMatrixWorkgroupScopeMaxWorkgroupSize < kGroupThreads ||
      limits.cooperativeMatrixFlexibleDimensionsMaxDimension < kMostGroupSide)
    return;
  for (const auto& p : all) {
    const bool fp16 = p.AType == VK_COMPONENT_TYPE_FLOAT16_KHR && p.BType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
                      p.CType == VK_COMPONENT_TYPE_FLOAT32_KHR && p.ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR;
    if (!fp16 || p.scope != VK_SCOPE_WORKGROUP_KHR || p.workgroupInvocations != kGroupThreads) continue;
    device.description.units.push_back(matrix_unit(
        kGroupUnit, {static_cast<int>(p.MGranularity), static_cast<int>(p.NGranularity), static_cast<int>(p.KGranularity)}));
    const int64_t kept = limits.cooperativeMatrixWorkgroupScopeReservedSharedMemory;
    device.description.limits.shared_bytes_per_group -= std::max<int64_t>(0, kept - kGroupReserved);
    return;
  }
}

}  // namespace

bool is_software(const Device& description) { return description.is_software(); }

void describe(PhysicalDevice& device, VkInstance instance, const VkDeviceCreateInfo* made_with) {
  uint32_t count = 0;
  if (vkEnumerateDeviceExtensionProperties(device.handle, nullptr, &count, nullptr) == VK_SUCCESS) {
    std::vector<VkExtensionProperties> all(count);
    if (vkEnumerateDeviceExtensionProperties(device.handle, nullptr, &count, all.data()) >= 0)
      for (const auto& e : all) device.extensions.emplace_back(e.extensionName);
  }

  auto core = structure<VkPhysicalDeviceShaderCorePropertiesAMD>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD);
  auto sms = structure<VkPhysicalDeviceShaderSMBuiltinsPropertiesNV>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV);
  auto v13 = structure<VkPhysicalDeviceVulkan13Properties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES);
  auto v12 = structure<VkPhysicalDeviceVulkan12Properties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES);
  auto v11 = structure<VkPhysicalDeviceVulkan11Properties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
  auto group = structure<VkPhysicalDeviceCooperativeMatrix2PropertiesNV>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_PROPERTIES_NV);
  auto properties = structure<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
  VkPhysicalDeviceProperties plain{};
  vkGetPhysicalDeviceProperties(device.handle, &plain);
  device.name = plain.deviceName;
  Device& d = device.description;
  d.kind = DeviceKind::vulkan;
  d.name = device.name;
  d.vendor = vendor_of(plain.vendorID);
  if (plain.apiVersion < VK_API_VERSION_1_3) {
    device.unusable = "its driver offers Vulkan " + std::to_string(VK_API_VERSION_MAJOR(plain.apiVersion)) + "." +
                      std::to_string(VK_API_VERSION_MINOR(plain.apiVersion)) + ", and 1.3 is needed";
    return;
  }
  void** next = &properties.pNext;
  const auto chain = [&](auto& s) {
    *next = &s;
    next = &s.pNext;
  };
  chain(v11), chain(v12), chain(v13);
  if (device.has(VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME)) chain(core);
  if (device.has(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME)) chain(sms);
  if (device.has(VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME)) chain(group);
  vkGetPhysicalDeviceProperties2(device.handle, &properties);
  device.driver = std::string(v12.driverName) + " " + v12.driverInfo;
  std::copy(v11.driverUUID, v11.driverUUID + VK_UUID_SIZE, device.driver_id.begin());
  // Drivers may keep one identity over versions and devices.
  for (int i = 0; i < 4; ++i) {
    device.driver_id[static_cast<size_t>(i)] ^= static_cast<uint8_t>(plain.driverVersion >> 8 * i);
    device.driver_id[static_cast<size_t>(4 + i)] ^= static_cast<uint8_t>(plain.deviceID >> 8 * i);
  }

  auto coop = structure<VkPhysicalDeviceCooperativeMatrixFeaturesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR);
  auto groups = structure<VkPhysicalDeviceCooperativeMatrix2FeaturesNV>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV);
  auto executable = structure<VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR);
  auto f13 = structure<VkPhysicalDeviceVulkan13Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES);
  auto f12 = structure<VkPhysicalDeviceVulkan12Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  auto f11 = structure<VkPhysicalDeviceVulkan11Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
  auto features = structure<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  next = &features.pNext;
  chain(f11), chain(f12), chain(f13);
  if (device.has(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME)) chain(coop);
  if (device.has(VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME)) chain(groups);
  if (device.has(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME)) chain(executable);
  vkGetPhysicalDeviceFeatures2(device.handle, &features);
  if (made_with) keep_enabled(*made_with, features);

  Features& f = device.features;
  f.f16 = f12.shaderFloat16 && f11.storageBuffer16BitAccess;
  f.i8 = f12.shaderInt8 && f12.storageBuffer8BitAccess;
  f.i16 = features.features.shaderInt16;
  f.i64 = features.features.shaderInt64;
  f.f64 = features.features.shaderFloat64;
  f.dot = f13.shaderIntegerDotProduct && v13.integerDotProduct4x8BitPackedSignedAccelerated;
  f.subgroup_size = f13.subgroupSizeControl && f13.computeFullSubgroups &&
                    (v13.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  f.cooperative = coop.cooperativeMatrix && f12.vulkanMemoryModel && f.f16;
  f.cooperative_groups = f.cooperative && groups.cooperativeMatrixWorkgroupScope && groups.cooperativeMatrixFlexibleDimensions;
  f.keeps_nan = v12.shaderSignedZeroInfNanPreserveFloat32;
  f.exact_f16 = f.f16 && v12.shaderRoundingModeRTEFloat16 && v12.shaderDenormPreserveFloat16 &&
                v12.shaderSignedZeroInfNanPreserveFloat16 &&
                v12.denormBehaviorIndependence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE &&
                v12.roundingModeIndependence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
  f.statistics = executable.pipelineExecutableInfo;
  f.least_subgroup = v13.minSubgroupSize;
  f.most_subgroup = v13.maxSubgroupSize;
  f.host_sees_memory =
      plain.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU || plain.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  const std::pair<bool, const char*> needed[] = {{f12.bufferDeviceAddress, "bufferDeviceAddress"},
                                                 {f12.timelineSemaphore, "timelineSemaphore"},
                                                 {f12.scalarBlockLayout, "scalarBlockLayout"},
                                                 {f13.synchronization2, "synchronization2"},
                                                 {f13.maintenance4, "maintenance4"}};
  for (const auto& [there, name] : needed)
    if (!there && device.unusable.empty())
      device.unusable = (made_with ? "it was made without the feature " : "its driver lacks ") + std::string(name);

  d.architecture = architecture_of(d.vendor, d.name, f);
  d.driver = device.driver;
  if (d.vendor == "Intel") d.cores = cores_of(d.name);
  if (core.computeUnitsPerShaderArray)
    d.cores = static_cast<int>(core.shaderEngineCount * core.shaderArraysPerEngineCount * core.computeUnitsPerShaderArray);
  if (sms.shaderSMCount) d.cores = static_cast<int>(sms.shaderSMCount);
  const VkPhysicalDeviceLimits& limits = plain.limits;
  d.limits.max_threads_per_group = static_cast<int>(limits.maxComputeWorkGroupInvocations);
  d.limits.shared_bytes_per_group = limits.maxComputeSharedMemorySize;
  d.limits.registers_per_thread = registers_of(d.vendor);
  d.limits.schedulers_per_core = schedulers_of(d.vendor, d.architecture, d.name);
  d.limits.max_buffer_bytes =
      static_cast<int64_t>(std::min<uint64_t>({v11.maxMemoryAllocationSize, v13.maxBufferSize, INT64_MAX}));

  MemoryLevel shared;
  shared.name = "shared";
  shared.bytes = limits.maxComputeSharedMemorySize;
  shared.filled_by_hand = true;
  d.memory.push_back(shared);
  VkPhysicalDeviceMemoryProperties memory{};
  vkGetPhysicalDeviceMemoryProperties(device.handle, &memory);
  MemoryLevel dram;
  dram.name = "DRAM";
  dram.shared_by = d.cores;
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i)
    if (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
      dram.bytes = std::max(dram.bytes, static_cast<int64_t>(memory.memoryHeaps[i].size));
  d.memory.push_back(dram);

  // A unit is as wide as the smallest subgroup: wider ones take several steps (RDNA: 32 and 64).
  const uint32_t width = f.subgroup_size ? std::max(1u, f.least_subgroup) : v11.subgroupSize;
  d.limits.subgroup_size = static_cast<int>(f.subgroup_size ? std::max(f.most_subgroup, width) : v11.subgroupSize);
  const int lanes = static_cast<int>(width);
  d.units.push_back(vector_unit("fma-f32", DType::f32, lanes, 1));
  if (f.f16) d.units.push_back(vector_unit("fma-f16", DType::f16, lanes, 2));
  if (f.i8) d.units.push_back(vector_unit("alu-i8", DType::i8, lanes, 1));     // kernels may read and write bytes
  if (f.f64) d.units.push_back(vector_unit("alu-f64", DType::f64, lanes, 1));  // kernels may compute in it
  if (f.dot) {
    MathUnit unit = vector_unit("dot-i8", DType::i8, lanes, 4);
    unit.kind = UnitKind::dot_product;
    unit.accumulator = DType::i32;
    d.units.push_back(unit);
  }
  if (f.cooperative) add_matrix_units(device, instance);
  // Mesa multiplies matrices in the least subgroups alone there.
  if (f.cooperative && d.vendor == "Intel") d.limits.matrix_subgroup_size = lanes;
  if (f.cooperative_groups) add_group_unit(device, instance, group);
}

}  // namespace sparkle::vulkan
