// The stand-in for libnvrtc.so: texts are compiled by the host's compiler against the functional model, with the headers that
// they come with. "PTX" is a line that names the architecture and a library in hexadecimal, which libcuda_model.so loads.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

#include "backends/cuda/nvrtc/nvrtc.h"

using sparkle::cuda::NvrtcResult;

namespace {

namespace fs = std::filesystem;

struct Program {
  std::string text;
  std::vector<std::pair<std::string, std::string>> headers;  // name and text
  std::string log, ptx;
};
Program& real(sparkle::cuda::NvrtcProgram program) { return *reinterpret_cast<Program*>(program); }
constexpr auto kInvalid = static_cast<NvrtcResult>(5);  // an option

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

// Headers of the standard library are the host's.
bool is_own(const std::string& name) { return name.find('/') != std::string::npos; }

// A folder for as long as this lives.
struct Folder {
  std::string path = (fs::temp_directory_path() / "nvrtc_model_XXXXXX").string();
  bool made = ::mkdtemp(path.data()) != nullptr;
  ~Folder() {
    std::error_code ignored;
    if (made) fs::remove_all(path, ignored);
  }
};

const std::string kSources = MODEL_SOURCES;
// The compiler, for texts and for what each of them begins with.
const std::string kCompiler =
    "'" MODEL_COMPILER "' -std=c++20 -O0 -w -fPIC -fvisibility=hidden -I. -I'" + kSources + "/src' -I'" + kSources + "/tests' ";

// The host's own headers, which every text reads, compiled once: most of what the compiler does for a text.
std::string host_headers() {
  static const Folder folder;
  static const std::string option = [] {
    write(fs::path(folder.path) / "host.h",
          "#include \"cuda_model/model.h\"\n#include <cmath>\n#include \"base/half_floats.h\"\n");
    const std::string command = "cd '" + folder.path + "' && " + kCompiler + "-x c++-header host.h -o host.h.gch > log 2>&1";
    return std::system(command.c_str()) == 0 ? "-include '" + folder.path + "/host.h' " : std::string();
  }();
  return option;
}

NvrtcResult compile(Program& p, const std::string& architecture) {
  const Folder own;
  if (!own.made) return static_cast<NvrtcResult>(1);
  const fs::path folder = own.path;
  for (const auto& [header, text] : p.headers)
    if (is_own(header)) write(folder / header, text);
  write(folder / "program.cu", p.text);
  const std::string library = MODEL_LIBRARY;
  const std::string command = "cd '" + own.path + "' && " + kCompiler + host_headers() + "-shared -x c++ program.cu -x none '" +
                              library + "' -Wl,-rpath,'" + fs::path(library).parent_path().string() +
                              "' -o program.so > log 2>&1";
  const int status = std::system(command.c_str());
  p.log = read(folder / "log");
  const std::string code = status == 0 ? read(folder / "program.so") : std::string();
  if (code.empty()) return NvrtcResult::compilation;
  constexpr char kDigits[] = "0123456789abcdef";
  p.ptx = "// model of PTX " + architecture + "\n";
  for (const char c : code) p.ptx += {kDigits[static_cast<unsigned char>(c) >> 4], kDigits[static_cast<unsigned char>(c) & 15]};
  return NvrtcResult::success;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// What it compiles with; empty: there is none any more.
EXPORT const char* nvrtc_model_compiler() { return ::access(MODEL_COMPILER, X_OK) == 0 ? MODEL_COMPILER : ""; }

EXPORT NvrtcResult nvrtcVersion(int* major, int* minor) {
  const char* other = std::getenv("SPARKLE_NVRTC_MODEL_VERSION");  // "13020"
  const int version = other ? std::atoi(other) : 13000;
  *major = version / 1000, *minor = version % 1000 / 10;
  return NvrtcResult::success;
}
EXPORT const char* nvrtcGetErrorString(NvrtcResult result) {
  return result == NvrtcResult::success ? "NVRTC_SUCCESS" : result == kInvalid ? "NVRTC_ERROR_INVALID_OPTION" : "NVRTC_ERROR";
}
constexpr int kArchitectures[] = {75, 80, 86, 89, 90, 100, 120};
EXPORT NvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  *count = static_cast<int>(std::size(kArchitectures));
  return NvrtcResult::success;
}
EXPORT NvrtcResult nvrtcGetSupportedArchs(int* list) {
  std::memcpy(list, kArchitectures, sizeof kArchitectures);
  return NvrtcResult::success;
}
EXPORT NvrtcResult nvrtcCreateProgram(sparkle::cuda::NvrtcProgram* program, const char* text, const char*, int headers,
                                      const char* const* texts, const char* const* names) {
  auto* p = new Program{text, {}, {}, {}};
  for (int i = 0; i < headers; ++i) p->headers.emplace_back(names[i], texts[i]);
  *program = reinterpret_cast<sparkle::cuda::NvrtcProgram>(p);
  return NvrtcResult::success;
}
EXPORT NvrtcResult nvrtcDestroyProgram(sparkle::cuda::NvrtcProgram* program) {
  delete &real(*program);
  *program = nullptr;
  return NvrtcResult::success;
}
EXPORT NvrtcResult nvrtcCompileProgram(sparkle::cuda::NvrtcProgram program, int count, const char* const* options) {
  const std::string kTarget = "--gpu-architecture=";
  std::string architecture;
  for (int i = 0; i < count; ++i) {
    const std::string option = options[i];
    if (option.starts_with(kTarget)) architecture = option.substr(kTarget.size());
    else if (option != "--std=c++20" && option != "--fmad=false" && option != "--device-as-default-execution-space")
      return kInvalid;
  }
  if (!architecture.starts_with("compute_")) return kInvalid;
  return compile(real(program), architecture);
}
EXPORT NvrtcResult nvrtcGetPTXSize(sparkle::cuda::NvrtcProgram program, size_t* bytes) {
  *bytes = real(program).ptx.size() + 1;
  return NvrtcResult::success;
}
EXPORT NvrtcResult nvrtcGetPTX(sparkle::cuda::NvrtcProgram program, char* text) {
  std::strcpy(text, real(program).ptx.c_str());
  return NvrtcResult::success;
}
EXPORT NvrtcResult nvrtcGetProgramLogSize(sparkle::cuda::NvrtcProgram program, size_t* bytes) {
  *bytes = real(program).log.size() + 1;
  return NvrtcResult::success;
}
EXPORT NvrtcResult nvrtcGetProgramLog(sparkle::cuda::NvrtcProgram program, char* text) {
  std::strcpy(text, real(program).log.c_str());
  return NvrtcResult::success;
}
