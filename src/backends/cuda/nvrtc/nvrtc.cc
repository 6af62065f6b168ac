#include "backends/cuda/nvrtc/nvrtc.h"

#include <algorithm>
#include <cstdlib>

#include "backends/cuda/nvrtc/program_headers.h"
#include "base/printable.h"

#if defined(__unix__)
#include <dlfcn.h>
#endif

namespace sparkle::cuda {
namespace {

constexpr const char* kLibraries[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
// Products and sums are rounded each, in the interpreter of programs too (cmake/cuda.cmake): both give the same bits.
constexpr const char* kOptions[] = {"--std=c++20", "--device-as-default-execution-space", "--fmad=false"};
constexpr size_t kLongestLine = 300;

std::string version_text(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

Error unusable(const std::string& why) { return {Reason::device_unusable, "NVRTC cannot be used: " + why + "."}; }

// The first line of a log that tells of an error, else the first one.
std::string first_error(const std::string& log) {
  std::string first;
  for (size_t begin = 0; begin < log.size();) {
    const size_t end = std::min(log.find('\n', begin), log.size());
    const std::string line = log.substr(begin, end - begin);
    if (line.find("error") != std::string::npos) return printable(line, kLongestLine);
    if (first.empty()) first = line;
    begin = end + 1;
  }
  return first.empty() ? "it says nothing" : printable(first, kLongestLine);
}

}  // namespace

Result<std::shared_ptr<Nvrtc>> Nvrtc::open(const std::string& library) {
  std::shared_ptr<Nvrtc> nvrtc(new Nvrtc(library));
  SPARKLE_CHECK(nvrtc->load());
  return nvrtc;
}

// The library stays loaded: it keeps what it has built for the next program.
Nvrtc::~Nvrtc() = default;

Status Nvrtc::load() {
#if defined(__unix__)
  library_ = ::dlopen(path_.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!library_) {
    const char* why = ::dlerror();
    return unusable("the library '" + printable(path_, kLongestLine) + "' cannot be opened" +
                    (why ? " (" + printable(why, kLongestLine) + ")" : ""));
  }
  std::string missing;
#define NVRTC_FUNCTION(member, symbol, parameters)                                 \
  member = reinterpret_cast<NvrtcResult(*) parameters>(::dlsym(library_, symbol)); \
  if (!member && missing.empty()) missing = symbol;
#include "backends/cuda/nvrtc/nvrtc_functions.inc"
#undef NVRTC_FUNCTION
  error_text = reinterpret_cast<const char* (*)(NvrtcResult)>(::dlsym(library_, "nvrtcGetErrorString"));
  if (!error_text && missing.empty()) missing = "nvrtcGetErrorString";
  if (!missing.empty()) return unusable("the library '" + printable(path_, kLongestLine) + "' has no " + missing);
  int major = 0, minor = 0, count = 0;
  if (const auto r = library_version(&major, &minor); r != NvrtcResult::success) return failed(r, "nvrtcVersion");
  version_ = 1000 * major + 10 * minor;
  if (const auto r = architecture_count(&count); r != NvrtcResult::success) return failed(r, "nvrtcGetNumSupportedArchs");
  architectures_.resize(static_cast<size_t>(std::clamp(count, 0, 1000)));
  if (const auto r = architecture_list(architectures_.data()); r != NvrtcResult::success)
    return failed(r, "nvrtcGetSupportedArchs");
  return ok();
#else
  return unusable("this system has no " + path_);
#endif
}

std::string Nvrtc::name() const { return "NVRTC " + version_text(version_); }

int Nvrtc::architecture(int capability) const {
  int best = 0;
  for (const int a : architectures_)
    if (a <= capability) best = std::max(best, a);
  return best;
}

std::string Nvrtc::options() {
  std::string text;
  for (const char* option : kOptions) text += std::string(option) + " ";
  return text;
}

Error Nvrtc::failed(NvrtcResult result, std::string_view what) const {
  const char* text = error_text ? error_text(result) : nullptr;
  return unusable(std::string(what) + " of '" + printable(path_, kLongestLine) + "' said " +
                  (text ? printable(text, kLongestLine) : "nvrtcResult " + std::to_string(static_cast<int>(result))));
}

Result<std::string> Nvrtc::compile(const std::string& text, int architecture) const {
  std::vector<const char*> texts, names;
  for (const ProgramHeader& header : program_headers()) texts.push_back(header.text), names.push_back(header.name);
  struct Owned {
    const Nvrtc& nvrtc;
    NvrtcProgram program = nullptr;
    ~Owned() {
      if (program) nvrtc.program_destroy(&program);
    }
  } owned{*this};
  if (const auto r = program_create(&owned.program, text.c_str(), "program.cu", static_cast<int>(texts.size()), texts.data(),
                                    names.data());
      r != NvrtcResult::success)
    return failed(r, "nvrtcCreateProgram");
  const std::string target = "--gpu-architecture=compute_" + std::to_string(architecture);
  std::vector<const char*> options{target.c_str()};
  options.insert(options.end(), std::begin(kOptions), std::end(kOptions));
  const NvrtcResult compiled = program_compile(owned.program, static_cast<int>(options.size()), options.data());
  // Sizes count the zero behind a text.
  const auto read = [&](auto size, auto bytes) {
    size_t count = 0;
    if (size(owned.program, &count) != NvrtcResult::success || count <= 1) return std::string();
    std::string read_text(count, '\0');
    if (bytes(owned.program, read_text.data()) != NvrtcResult::success) return std::string();
    read_text.resize(std::min(read_text.find('\0'), count));
    return read_text;
  };
  if (compiled == NvrtcResult::compilation)
    return Error{Reason::internal, name() + " does not compile a program that was printed at run time; please report it: " +
                                       first_error(read(log_size, log_text))};
  if (compiled != NvrtcResult::success) return failed(compiled, "nvrtcCompileProgram");
  std::string ptx = read(ptx_size, ptx_text);
  if (ptx.empty()) return unusable("nvrtcGetPTX of '" + printable(path_, kLongestLine) + "' gives no text");
  return ptx;
}

Result<FoundNvrtc> find_nvrtc(int driver_version, bool stand_in) {
  const auto too_new = [&](const Nvrtc& nvrtc) {
    return nvrtc.version() <= driver_version
               ? std::string()
               : nvrtc.name() + " makes PTX that a driver of CUDA " + version_text(driver_version) +
                     " does not read; install a newer driver, or an older NVRTC";
  };
  FoundNvrtc found;
  if (const char* named = std::getenv("SPARKLE_NVRTC")) {
    if (!*named) return found;
    const auto hint = [](const std::string& why) {
      return Error{Reason::device_unusable, why + " SPARKLE_NVRTC names it: unset it, or name another one."};
    };
    auto nvrtc = Nvrtc::open(named);
    if (!nvrtc.ok()) return hint(nvrtc.error().message);
    if (const std::string why = too_new(**nvrtc); !why.empty()) return hint(why + ".");
    found.nvrtc = std::move(*nvrtc);
    return found;
  }
  if (stand_in) return found;
  for (const char* library : kLibraries) {
#if defined(__unix__)
    if (!::dlopen(library, RTLD_LAZY | RTLD_LOCAL)) continue;  // nothing is wrong where it is not installed
#endif
    auto nvrtc = Nvrtc::open(library);
    const std::string why = nvrtc.ok() ? too_new(**nvrtc) : nvrtc.error().message;
    if (why.empty()) {
      found.nvrtc = std::move(*nvrtc);
      found.why_not.clear();
      return found;
    }
    if (found.why_not.empty()) found.why_not = why;
  }
  return found;
}

}  // namespace sparkle::cuda
