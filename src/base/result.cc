#include "base/result.h"

namespace sparkle {

std::string_view code_of(Reason reason) {
  static constexpr std::string_view codes[] = {
#define REASON(code, sentence) #code,
#include "base/reasons.inc"
#undef REASON
  };
  return codes[static_cast<unsigned char>(reason)];
}

std::string_view sentence_of(Reason reason) {
  static constexpr std::string_view sentences[] = {
#define REASON(code, sentence) sentence,
#include "base/reasons.inc"
#undef REASON
  };
  return sentences[static_cast<unsigned char>(reason)];
}

}  // namespace sparkle
