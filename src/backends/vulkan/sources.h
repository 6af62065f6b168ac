// What a described device's driver would be given for a stage: shaders with their constants, and the text of programs that are
// printed to GLSL. No driver is asked, so this works for devices that are not here.
#pragma once

#include <string>
#include <vector>

#include "device/device.h"
#include "families/stage.h"

namespace sparkle::vulkan {

struct KernelSource {
  std::string shader;             // a name of shaders.h, or "pointwise" and the expression
  uint32_t group[3] = {1, 1, 1};  // threads of a workgroup
  uint32_t subgroup = 0;          // demanded size; 0: the driver's choice
  struct Constant {
    std::string name;
    uint32_t value = 0;
  };
  std::vector<Constant> constants;  // by the names that they have in the shader
  std::string program;  // printed ones: from the program itself on, without the functions that it is put together from
};

// In the order of the stage's dispatches, each once. `constants` as in Backend::compile. Errors: those of compiling.
Result<std::vector<KernelSource>> sources_of(const Stage& stage, const Schedule& schedule, const Device& device,
                                             uint32_t constants);

}  // namespace sparkle::vulkan
