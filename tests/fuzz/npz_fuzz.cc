// libFuzzer: any bytes as a .npz file. Built with SPARKLE_SANITIZE=ON and clang.
#include "vision/decoders/npz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)sparkle::read_npz_bytes(std::as_bytes(std::span(data, size)), "fuzz").ok();
  return 0;
}
