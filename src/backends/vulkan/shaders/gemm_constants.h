// Constants of the kernels of products by name. glsl/gemm_constants.inc is the one text of their numbers and meanings, which
// the shaders declare theirs by.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "backends/vulkan/shaders/pipelines.h"
#include "families/values/epilogue.h"

namespace sparkle::vulkan {

enum class GemmConstant : uint32_t {
#define CONSTANT(name, number) name = number,
#include "backends/vulkan/glsl/gemm_constants.inc"
};

struct NamedConstant {
  GemmConstant name;
  int64_t value;
};
inline void set(PipelineRequest& request, std::initializer_list<NamedConstant> constants) {
  for (const NamedConstant& c : constants)
    request.named.push_back({static_cast<uint32_t>(c.name), static_cast<uint32_t>(c.value)});
}
inline void set(PipelineRequest& request, const Epilogue& e) {
  using enum GemmConstant;
  set(request, {{kActivation, static_cast<int64_t>(e.activation)},
                {kScale, e.scale},
                {kBias, e.bias},
                {kBefore, e.residuals_before},
                {kAfter, e.residuals_after}});
}

}  // namespace sparkle::vulkan
