// libFuzzer: any bytes as an ONNX model; what reads is written again. Built with SPARKLE_SANITIZE=ON and clang.
#include "onnx/reader.h"
#include "onnx/tensor_file.h"
#include "networks/writer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto graph = sparkle::read_onnx_bytes(bytes, "", "fuzz");
  if (graph.ok()) (void)sparkle::onnx_bytes(*graph).ok();
  (void)sparkle::read_tensor_pb_bytes(bytes, "fuzz").ok();
  return 0;
}
