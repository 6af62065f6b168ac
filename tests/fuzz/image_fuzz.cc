// libFuzzer: any bytes as a picture, which becomes a small tensor. Built with SPARKLE_SANITIZE=ON and clang.
#include "vision/pictures/picture.h"
#include "vision/pictures/preprocess.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto picture = sparkle::read_picture_bytes(std::as_bytes(std::span(data, size)), "fuzz", 1 << 20);
  if (!picture.ok()) return 0;
  sparkle::Preprocess preprocess;
  preprocess.width = 8, preprocess.height = 6;
  if (!sparkle::to_tensor(picture->rows(), preprocess).ok()) __builtin_trap();
  return 0;
}
