// libFuzzer: any text as a tuning store; what is accepted prints and reads back. Built with SPARKLE_SANITIZE=ON.
#include <cstdlib>

#include "plan/choose/tuning_store.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string header(text.substr(0, text.find('\n')));  // the machine's own, so that the entries are reached
  const auto store = sparkle::TuningStore::parse(text, header);
  if (!store.ok()) return store.error().message.empty() ? (std::abort(), 0) : 0;
  const auto back = sparkle::TuningStore::parse(store->to_text(), header);
  if (!back.ok() || back->to_text() != store->to_text()) std::abort();
  return 0;
}
