// Pipelines: shaders with their constants bound, compiled by the driver once and kept: in memory, and on disk by driver.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "backends/vulkan/driver/context.h"

namespace sparkle::vulkan {

struct Pipeline {
  VkPipeline handle = VK_NULL_HANDLE;
  std::string name;  // shader and constants, for people
};

struct PipelineStatistic {
  std::string name;
  double value = 0;
};
// What the driver made of a pipeline, where the context captures it.
struct PipelineReport {
  std::string pipeline;
  uint32_t subgroup_size = 0;
  std::vector<PipelineStatistic> statistics;
  std::string assembly;
  double statistic(std::string_view name, double missing = -1) const;
};

// GLSL in the place of glsl/post_op.glsl, which a shader is compiled with once more.
struct PostOpText {
  std::string name;  // for people, and to tell texts apart
  std::string glsl;
};

// A constant of a shader by its constant_id.
struct SpecializationConstant {
  uint32_t number = 0, value = 0;
};

struct PipelineRequest {
  std::string_view shader;              // a name of shaders.h
  std::vector<uint32_t> constants;      // of constant_id 0, 1, ...; ids 0 to 2 are the workgroup's size
  uint32_t subgroup = 0;                // demanded size; 0: the driver's choice
  const PostOpText* post_op = nullptr;  // a program behind its sums, with which it is compiled here and now
  // Further ones, of kernels that set them by name (shaders/gemm_constants.h).
  std::vector<SpecializationConstant> named = {};

  // All of them; those that are nowhere keep the value that the shader gives them.
  std::vector<SpecializationConstant> all_constants() const;
};

class Pipelines {
 public:
  explicit Pipelines(std::shared_ptr<Context> context);
  virtual ~Pipelines();
  // Errors: internal for a shader that there is not or that does not compile with its post-op, else what the driver says.
  Result<const Pipeline*> get(const PipelineRequest& request);
  // The same from words that were made at run time; `name` identifies them.
  virtual Result<const Pipeline*> get(const std::string& name, std::span<const uint32_t> words,
                                      std::span<const SpecializationConstant> constants, uint32_t subgroup);
  size_t count() const;
  // Errors: device_unusable where the driver tells nothing.
  Result<PipelineReport> report(const Pipeline& pipeline);
  std::vector<const Pipeline*> all() const;
  // Writes the driver's compiled code for the next process. Nothing where there is no folder for it.
  void save();

 protected:
  Pipelines() = default;  // without a driver

 private:
  std::string file() const;
  void load();

  std::shared_ptr<Context> context_;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Pipeline>> pipelines_;
  size_t saved_ = 0;
};

}  // namespace sparkle::vulkan
