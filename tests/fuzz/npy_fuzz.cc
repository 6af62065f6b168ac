// libFuzzer: any bytes as a .npy file. Built with SPARKLE_SANITIZE=ON and clang.
#include "onnx/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)sparkle::read_npy_bytes(std::as_bytes(std::span(data, size)), "fuzz").ok();
  return 0;
}
