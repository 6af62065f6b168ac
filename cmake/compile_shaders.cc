// Compiles all shaders in one process: a tool of the build (cmake/vulkan.cmake). glslang takes most of a short program's time
// to set up its tables of built-in functions, once a process. Each line "// build: NAME [-DMACRO[=TEXT]...]" of a shader is one
// program; its words go to FOLDER/NAME.inc as an array k_NAME.
//
// compile_shaders FOLDER INCLUDES THREADS SHADER...
#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <list>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Build {
  std::string name, file, macros;  // macros as lines of source
};

bool read(const std::string& file, std::string& text) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  text = all.str();
  return static_cast<bool>(in);
}

// The builds that a shader's text names.
std::vector<Build> builds_of(const std::string& file, const std::string& text) {
  std::vector<Build> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("// build: ", 0) != 0) continue;
    std::istringstream words(line.substr(10));
    Build build;
    words >> build.name;
    build.file = file;
    for (std::string word; words >> word;) {
      const size_t equals = word.find('=');
      build.macros += "#define " + word.substr(2, equals - 2) + ' ';
      build.macros += (equals == std::string::npos ? "" : word.substr(equals + 1)) + '\n';
    }
    found.push_back(build);
  }
  return found;
}

// Files of one folder, as glslang's includer hands them out.
class Includes : public glslang::TShader::Includer {
 public:
  explicit Includes(std::string folder) : folder_(std::move(folder)) {}
  IncludeResult* includeLocal(const char* name, const char*, size_t) override {
    const std::string path = folder_ + '/' + name;
    std::string text;
    if (!read(path, text)) return nullptr;
    const std::string& kept = texts_.emplace_back(std::move(text));
    return &results_.emplace_back(path, kept.data(), kept.size(), nullptr);
  }
  void releaseInclude(IncludeResult*) override {}

 private:
  std::string folder_;
  std::list<std::string> texts_;
  std::list<IncludeResult> results_;
};

// Compiles one build and writes its words; says on the terminal what is wrong with it.
bool compile(const Build& build, const std::string& text, const std::string& folder, const std::string& includes) {
  constexpr auto kRules = static_cast<EShMessages>(EShMsgSpvRules | EShMsgVulkanRules);
  const auto failed = [&](const char* log) {
    std::fprintf(stderr, "shader %s: %s\n", build.name.c_str(), log);
    return false;
  };
  glslang::TShader shader(EShLangCompute);
  const char *const source = text.c_str(), *const name = build.file.c_str();
  shader.setStringsWithLengthsAndNames(&source, nullptr, &name, 1);
  const std::string before = "#extension GL_GOOGLE_include_directive : require\n" + build.macros;
  shader.setPreamble(before.c_str());
  shader.setEnvInput(glslang::EShSourceGlsl, EShLangCompute, glslang::EShClientVulkan, 100);
  shader.setEnvClient(glslang::EShClientVulkan, glslang::EShTargetVulkan_1_3);
  shader.setEnvTarget(glslang::EShTargetSpv, glslang::EShTargetSpv_1_6);
  Includes includer(includes);
  if (!shader.parse(GetDefaultResources(), 100, false, kRules, includer)) return failed(shader.getInfoLog());
  glslang::TProgram program;
  program.addShader(&shader);
  if (!program.link(kRules)) return failed(program.getInfoLog());
  glslang::SpvOptions options;
  options.disableOptimizer = true;
  std::vector<uint32_t> words;
  glslang::GlslangToSpv(*program.getIntermediate(EShLangCompute), words, &options);
  if (words.empty()) return failed("no code");

  std::string array = "const uint32_t k_" + build.name + "[] = {";
  char word[16];
  for (size_t i = 0; i < words.size(); ++i) {
    std::snprintf(word, sizeof word, "%s0x%x,", i % 16 == 0 ? "\n" : "", words[i]);
    array += word;
  }
  std::ofstream out(folder + '/' + build.name + ".inc", std::ios::binary);
  out << array << "};\n";
  out.close();
  return out ? true : failed("its file cannot be written.");
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 5) {
    std::fprintf(stderr, "usage: compile_shaders FOLDER INCLUDES THREADS SHADER...\n");
    return 2;
  }
  const std::string folder = arguments[1], includes = arguments[2];
  std::vector<Build> builds;
  std::list<std::string> texts;
  std::vector<const std::string*> text_of;
  for (int i = 4; i < count; ++i) {
    std::string& text = texts.emplace_back();
    if (!read(arguments[i], text)) {
      std::fprintf(stderr, "compile_shaders: cannot read %s.\n", arguments[i]);
      return 2;
    }
    for (Build& build : builds_of(arguments[i], text)) {
      builds.push_back(std::move(build));
      text_of.push_back(&text);
    }
  }
  glslang::InitializeProcess();
  std::atomic<size_t> next = 0, wrong = 0;
  const auto work = [&] {
    for (size_t i; (i = next++) < builds.size();) wrong += !compile(builds[i], *text_of[i], folder, includes);
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < std::atoi(arguments[3]); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  glslang::FinalizeProcess();
  return wrong == 0 ? 0 : 1;
}
