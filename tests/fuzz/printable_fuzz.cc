// libFuzzer: any bytes as a name on its way to a terminal: short, nothing that steers, and printed again the same. Built with
// SPARKLE_SANITIZE=ON and clang.
#include "base/printable.h"

#include <cstddef>
#include <cstdint>

namespace {

void check(const std::string& text, size_t most, const char* kept) {
  if (text.size() > most) __builtin_trap();
  for (const char c : text)
    if ((static_cast<unsigned char>(c) < 0x20 && std::string_view(kept).find(c) == std::string_view::npos) || c == 0x7f)
      __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const size_t most : {20, 200}) {
    const std::string name = sparkle::printable(bytes, most);
    check(name, most + 40, "");
    if (sparkle::printable(name, name.size()) != name) __builtin_trap();
  }
  check(sparkle::printable_sentence(bytes), 8100, "\n");
  check(sparkle::printable_lines(bytes), 10 * size, "\n\t");
  return 0;
}
