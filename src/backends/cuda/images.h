// The kernels' binary code as it was compiled: one fatbin a file of kernels/*.cu, for cuModuleLoadData. None where nvcc was not
// there.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace sparkle::cuda {

struct CodeImage {
  std::string_view name;  // of the file, without its ending; "..._sm90a" runs on 9.0 alone
  std::span<const std::byte> code;
  std::string_view kernels;  // their names, each with a line's end behind it
};
std::span<const CodeImage> code_images();

}  // namespace sparkle::cuda
