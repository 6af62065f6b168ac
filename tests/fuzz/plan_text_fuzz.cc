// libFuzzer: any text as a plan; what is accepted prints, reads back the same and can be explained. Built with
// SPARKLE_SANITIZE=ON.
#include <cstdlib>

#include "plan/explain.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto plan = sparkle::plan_from_text({reinterpret_cast<const char*>(data), size});
  if (!plan.ok()) {
    if (plan.error().message.empty()) std::abort();
    return 0;
  }
  const std::string text = sparkle::to_text(*plan);
  const auto back = sparkle::plan_from_text(text);
  if (!back.ok() || sparkle::to_text(*back) != text) std::abort();
  (void)sparkle::explain(*plan, sparkle::Device{}, {.candidates = true, .step = ""});
  (void)sparkle::explain_json(*plan, sparkle::Device{});
  return 0;
}
