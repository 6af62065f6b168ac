// Modules that libnvrtc_model.so has made: libraries in hexadecimal behind a line that names their architecture. Loading one
// registers its kernel, which is that module's alone; it stays loaded until the process ends.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "model_driver.h"

namespace cuda_model::driver {
namespace {

constexpr std::string_view kBegin = "// model of PTX compute_";

int digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

}  // namespace

CuResult load_compiled(const char* image, int capability, std::vector<const Kernel*>& kernels) {
  const std::string_view text = image;
  if (!text.starts_with(kBegin)) return CuResult::success;  // of the model's own kernels
  if (std::atoi(text.data() + kBegin.size()) > capability) return CuResult::no_binary_for_gpu;
  const size_t line = text.find('\n');
  if (line == std::string_view::npos || (text.size() - line) % 2 == 0) return CuResult::invalid_image;
  std::string code;
  for (size_t i = line + 1; i < text.size(); i += 2) {
    const int high = digit(text[i]), low = digit(text[i + 1]);
    if (high < 0 || low < 0) return CuResult::invalid_image;
    code += static_cast<char>(high << 4 | low);
  }
  // A name of its own each: libraries of one name are one to the loader.
  static int count = 0;
  const std::string path = std::filesystem::temp_directory_path().string() + "/cuda_model_" + std::to_string(::getpid()) + "_" +
                           std::to_string(count++) + ".so";
  std::ofstream(path, std::ios::binary) << code;
  const size_t before = all_kernels().size();
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ::unlink(path.c_str());
  if (!library) {
    tell(::dlerror());
    return CuResult::invalid_image;
  }
  const std::vector<const Kernel*> all = all_kernels();
  kernels.assign(all.begin() + static_cast<std::ptrdiff_t>(before), all.end());
  return CuResult::success;
}

}  // namespace cuda_model::driver
