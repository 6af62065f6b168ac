#include "backends/vulkan/shaders/pipelines.h"

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "backends/vulkan/shaders/fragment_types.h"
#include "backends/vulkan/shaders/glsl_compiler.h"
#include "backends/vulkan/shaders/shaders.h"
#include "backends/vulkan/shaders/shader_text.h"
#include "base/files/cache_folder.h"
#include "base/files/read_file.h"

namespace sparkle::vulkan {
namespace {

constexpr int64_t kLargestCache = int64_t{256} << 20;
constexpr char kMagic[8] = {'S', 'P', 'K', 'P', 'I', 'P', 'E', '1'};

// FNV-1a: drivers are handed what was written, or nothing.
uint64_t checksum(const std::vector<char>& bytes) {
  uint64_t sum = 14695981039346656037ull;
  for (const char c : bytes) sum = (sum ^ static_cast<uint8_t>(c)) * 1099511628211ull;
  return sum;
}

}  // namespace

double PipelineReport::statistic(std::string_view wanted, double missing) const {
  for (const PipelineStatistic& s : statistics)
    if (s.name == wanted) return s.value;
  return missing;
}

Pipelines::Pipelines(std::shared_ptr<Context> context) : context_(std::move(context)) { load(); }

Pipelines::~Pipelines() {
  if (!context_) return;
  save();
  const auto& vk = context_->vk();
  for (auto& [key, pipeline] : pipelines_) vk.vkDestroyPipeline(context_->device(), pipeline->handle, nullptr);
  if (cache_) vk.vkDestroyPipelineCache(context_->device(), cache_, nullptr);
}

std::string Pipelines::file() const {
  if (!context_->options().cache) return {};
  const std::string folder = context_->options().cache_folder.empty() ? cache_folder() : context_->options().cache_folder;
  if (folder.empty()) return {};
  std::string name = folder + "/vulkan_pipelines_";
  char hex[3];
  for (const uint8_t byte : context_->physical().driver_id) {
    std::snprintf(hex, sizeof hex, "%02x", byte);
    name += hex;
  }
  return name + ".bin";
}

void Pipelines::load() {
  auto info = structure<VkPipelineCacheCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO);
  std::vector<char> bytes;
  const std::string path = file();
  if (const std::string kept = path.empty() ? path : read_own_file(path, kLargestCache); kept.size() > 16) {
    uint64_t sum = 0;
    std::memcpy(&sum, kept.data() + 8, 8);
    bytes.assign(kept.begin() + 16, kept.end());
    // A broken file counts as none: the next one overwrites it.
    if (std::memcmp(kept.data(), kMagic, 8) != 0 || checksum(bytes) != sum) bytes.clear();
  }
  info.initialDataSize = bytes.size();
  info.pInitialData = bytes.data();
  const auto& vk = context_->vk();
  if (vk.vkCreatePipelineCache(context_->device(), &info, nullptr, &cache_) == VK_SUCCESS) return;
  info.initialDataSize = 0;
  info.pInitialData = nullptr;
  if (vk.vkCreatePipelineCache(context_->device(), &info, nullptr, &cache_) != VK_SUCCESS) cache_ = VK_NULL_HANDLE;
}

void Pipelines::save() {
  const std::string path = file();
  const std::lock_guard lock(mutex_);
  if (path.empty() || !cache_ || pipelines_.size() == saved_) return;
  const auto& vk = context_->vk();
  size_t size = 0;
  if (vk.vkGetPipelineCacheData(context_->device(), cache_, &size, nullptr) != VK_SUCCESS || size == 0) return;
  std::vector<char> bytes(size);
  if (vk.vkGetPipelineCacheData(context_->device(), cache_, &size, bytes.data()) != VK_SUCCESS) return;
  bytes.resize(size);
  const uint64_t sum = checksum(bytes);
  std::string text(kMagic, sizeof kMagic);
  text.append(reinterpret_cast<const char*>(&sum), sizeof sum).append(bytes.data(), bytes.size());
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  if (replace_file(path, text)) saved_ = pipelines_.size();
}

size_t Pipelines::count() const {
  const std::lock_guard lock(mutex_);
  return pipelines_.size();
}

std::vector<const Pipeline*> Pipelines::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<const Pipeline*> list;
  for (const auto& [key, pipeline] : pipelines_) list.push_back(pipeline.get());
  return list;
}

std::vector<SpecializationConstant> PipelineRequest::all_constants() const {
  std::vector<SpecializationConstant> all;
  for (uint32_t i = 0; i < constants.size(); ++i) all.push_back({i, constants[i]});
  all.insert(all.end(), named.begin(), named.end());
  return all;
}

Result<const Pipeline*> Pipelines::get(const PipelineRequest& request) {
  if (request.post_op) {
    SPARKLE_TRY(text, shader_text(request.shader, request.post_op->glsl));
    SPARKLE_TRY(words, compile_glsl(text));
    return get(std::string(request.shader) + "+" + request.post_op->name, with_fragment_types(*words), request.all_constants(),
               request.subgroup);
  }
  const Shader* shader = shader_named(request.shader);
  if (!shader) return Error{Reason::internal, "There is no shader '" + std::string(request.shader) + "'; please report it."};
  return get(std::string(shader->name), with_fragment_types(shader->words), request.all_constants(), request.subgroup);
}

Result<const Pipeline*> Pipelines::get(const std::string& name, std::span<const uint32_t> words,
                                       std::span<const SpecializationConstant> constants, uint32_t subgroup) {
  std::string key = name + "<";
  for (size_t i = 0; i < constants.size(); ++i)
    key += (i ? "," : "") + (constants[i].number == i ? "" : std::to_string(constants[i].number) + "=") +
           std::to_string(constants[i].value);
  key += ">" + (subgroup ? std::to_string(subgroup) : std::string());
  const std::lock_guard lock(mutex_);
  if (const auto at = pipelines_.find(key); at != pipelines_.end()) return at->second.get();
  const auto& vk = context_->vk();
  auto module_info = structure<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  module_info.codeSize = words.size_bytes();
  module_info.pCode = words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  SPARKLE_VK(vk.vkCreateShaderModule(context_->device(), &module_info, nullptr, &module), "Loading the shader " + name);
  std::vector<VkSpecializationMapEntry> entries;
  for (uint32_t i = 0; i < constants.size(); ++i)
    entries.push_back(
        {constants[i].number, static_cast<uint32_t>(i * sizeof constants[i] + offsetof(SpecializationConstant, value)), 4});
  VkSpecializationInfo specialization{static_cast<uint32_t>(entries.size()), entries.data(), constants.size_bytes(),
                                      constants.data()};
  auto size = structure<VkPipelineShaderStageRequiredSubgroupSizeCreateInfo>(
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO);
  size.requiredSubgroupSize = subgroup;
  auto info = structure<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &specialization;
  const Features& f = context_->features();
  if (subgroup && f.subgroup_size && subgroup >= f.least_subgroup && subgroup <= f.most_subgroup) {
    info.stage.pNext = &size;
    if (!constants.empty() && constants[0].value % subgroup == 0)
      info.stage.flags |= VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  }
  if (context_->options().capture && f.statistics)
    info.flags |= VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR | VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
  info.layout = context_->layout();
  auto pipeline = std::make_unique<Pipeline>();
  pipeline->name = key;
  const VkResult made = vk.vkCreateComputePipelines(context_->device(), cache_, 1, &info, nullptr, &pipeline->handle);
  vk.vkDestroyShaderModule(context_->device(), module, nullptr);
  if (made != VK_SUCCESS) return error_of(made, "Compiling the shader " + key);
  return pipelines_.emplace(key, std::move(pipeline)).first->second.get();
}

Result<PipelineReport> Pipelines::report(const Pipeline& pipeline) {
  if (!context_->options().capture || !context_->features().statistics)
    return Error{Reason::device_unusable,
                 "The driver of '" + context_->physical().name + "' tells nothing of compiled shaders."};
  const auto& vk = context_->vk();
  PipelineReport report;
  report.pipeline = pipeline.name;
  auto which = structure<VkPipelineInfoKHR>(VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR);
  which.pipeline = pipeline.handle;
  uint32_t count = 0;
  SPARKLE_VK(vk.vkGetPipelineExecutablePropertiesKHR(context_->device(), &which, &count, nullptr), "Reading a pipeline");
  if (count == 0) return report;
  count = 1;
  auto properties = structure<VkPipelineExecutablePropertiesKHR>(VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR);
  if (vk.vkGetPipelineExecutablePropertiesKHR(context_->device(), &which, &count, &properties) < 0) return report;
  report.subgroup_size = properties.subgroupSize;
  auto executable = structure<VkPipelineExecutableInfoKHR>(VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR);
  executable.pipeline = pipeline.handle;
  uint32_t statistics = 0;
  SPARKLE_VK(vk.vkGetPipelineExecutableStatisticsKHR(context_->device(), &executable, &statistics, nullptr),
             "Reading a pipeline");
  auto blank = structure<VkPipelineExecutableStatisticKHR>(VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR);
  std::vector<VkPipelineExecutableStatisticKHR> values(statistics, blank);
  if (vk.vkGetPipelineExecutableStatisticsKHR(context_->device(), &executable, &statistics, values.data()) < 0) return report;
  for (const auto& v : values) {
    double value = 0;
    switch (v.format) {
      case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR: value = v.value.b32; break;
      case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR: value = static_cast<double>(v.value.i64); break;
      case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR: value = static_cast<double>(v.value.u64); break;
      default: value = v.value.f64;
    }
    report.statistics.push_back({v.name, value});
  }
  uint32_t texts = 0;
  SPARKLE_VK(vk.vkGetPipelineExecutableInternalRepresentationsKHR(context_->device(), &executable, &texts, nullptr),
             "Reading a pipeline");
  auto none = structure<VkPipelineExecutableInternalRepresentationKHR>(
      VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR);
  std::vector<VkPipelineExecutableInternalRepresentationKHR> all(texts, none);
  if (vk.vkGetPipelineExecutableInternalRepresentationsKHR(context_->device(), &executable, &texts, all.data()) < 0)
    return report;
  std::vector<std::vector<char>> memory(texts);
  for (uint32_t i = 0; i < texts; ++i) {
    memory[i].resize(all[i].dataSize + 1);
    all[i].pData = memory[i].data();
  }
  if (vk.vkGetPipelineExecutableInternalRepresentationsKHR(context_->device(), &executable, &texts, all.data()) < 0)
    return report;
  for (uint32_t i = 0; i < texts; ++i)
    if (all[i].isText && std::strstr(all[i].name, "Assembly")) report.assembly = memory[i].data();
  return report;
}

}  // namespace sparkle::vulkan
