// libFuzzer: any bytes as a picture. Built with SPARKLE_SANITIZE=ON and clang.
#include "report/image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)sparkle::read_image_bytes(std::as_bytes(std::span(data, size)), "fuzz", 1 << 20).ok();
  return 0;
}
