// libFuzzer: any bytes as a request for inference. The first says how many of them are JSON (0: all), the second which type the
// model's tensor has. What is read is printed as an answer, which reads back as the same tensor.
#include <cstdlib>
#include <cstring>

#include "serve/datatypes.h"
#include "serve/protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sparkle;
  if (size < 2) return 0;
  const auto type = static_cast<DType>(data[1] % kDTypes);
  if (serve::protocol_name(type).empty()) return 0;
  serve::ModelDescription model{"m", "1", {{"x", type, {-1, 2}, {}}}, {{"x", type, {-1, 2}, {}}}};
  if (data[1] & 0x80) model.inputs[0].rank_known = false;
  const std::string_view body(reinterpret_cast<const char*>(data + 2), size - 2);
  (void)serve::parse_index(body).ok();
  (void)serve::parse_control(body).ok();
  auto request = serve::parse_infer(model, body, data[0] > 0 ? std::optional<size_t>(data[0]) : std::nullopt);
  if (!request.ok()) {
    if (request.error().message.empty() || request.error().message.size() > 4096) std::abort();
    return 0;
  }
  const HostTensor& given = request->inputs[0];
  const auto answer = serve::print_infer(model, *request, {given});
  if (!answer.ok()) return 0;  // NaN among binary values that were asked for in JSON
  std::string text = answer->body;
  text.replace(text.find("\"outputs\""), 9, "\"inputs\"");
  const auto json_bytes = answer->json_bytes ? std::optional<size_t>(*answer->json_bytes - 1) : std::nullopt;
  const auto back = serve::parse_infer(model, text, json_bytes);
  if (!back.ok() || !(back->inputs[0].shape == given.shape)) std::abort();
  const auto bytes = static_cast<size_t>(given.size_bytes());
  if (bytes > 0 && std::memcmp(back->inputs[0].bytes.get(), given.bytes.get(), bytes) != 0) std::abort();
  return 0;
}
