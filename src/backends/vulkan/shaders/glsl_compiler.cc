#include "backends/vulkan/shaders/glsl_compiler.h"

#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>

#include <map>
#include <memory>
#include <mutex>

namespace sparkle::vulkan {
namespace {

// glslang's tables, from the first text to the end of the process.
struct Process {
  Process() { glslang::InitializeProcess(); }
  ~Process() { glslang::FinalizeProcess(); }
};

Result<std::vector<uint32_t>> compiled(const std::string& text) {
  static const Process process;
  glslang::TShader shader(EShLangCompute);
  const char* const source = text.c_str();
  shader.setStrings(&source, 1);
  shader.setEnvInput(glslang::EShSourceGlsl, EShLangCompute, glslang::EShClientVulkan, 100);
  shader.setEnvClient(glslang::EShClientVulkan, glslang::EShTargetVulkan_1_3);
  shader.setEnvTarget(glslang::EShTargetSpv, glslang::EShTargetSpv_1_6);
  constexpr auto kRules = static_cast<EShMessages>(EShMsgSpvRules | EShMsgVulkanRules);
  const auto failed = [](const char* log) {
    return Error{Reason::internal,
                 std::string("A shader that was made at run time does not compile; please report it: ") + log};
  };
  if (!shader.parse(GetDefaultResources(), 460, false, kRules)) return failed(shader.getInfoLog());
  glslang::TProgram program;
  program.addShader(&shader);
  if (!program.link(kRules)) return failed(program.getInfoLog());
  glslang::SpvOptions options;
  options.disableOptimizer = true;  // drivers do that work again anyway
  options.stripDebugInfo = false;   // names are few, and what takes them away knows no fragments and says so on the terminal
  std::vector<uint32_t> words;
  glslang::GlslangToSpv(*program.getIntermediate(EShLangCompute), words, &options);
  if (words.empty()) return failed("no code");
  return words;
}

}  // namespace

Result<const std::vector<uint32_t>*> compile_glsl(const std::string& text) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<std::vector<uint32_t>>> done;
  const std::lock_guard lock(mutex);
  if (const auto at = done.find(text); at != done.end()) return static_cast<const std::vector<uint32_t>*>(at->second.get());
  SPARKLE_TRY(words, compiled(text));
  auto& kept = done[text];
  kept = std::make_unique<std::vector<uint32_t>>(std::move(words));
  return static_cast<const std::vector<uint32_t>*>(kept.get());
}

}  // namespace sparkle::vulkan
