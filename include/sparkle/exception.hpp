// Sparkle in C++: errors of the C interface as exceptions, and its texts as strings. Part of sparkle.hpp.
#ifndef SPARKLE_EXCEPTION_HPP
#define SPARKLE_EXCEPTION_HPP

#include <memory>
#include <stdexcept>
#include <string>

#include "sparkle/sparkle.h"

namespace sparkle {
inline namespace api1 {

// What every failing call throws: a status, and one sentence naming what, where and what to do.
class Exception : public std::runtime_error {
 public:
  // Of a status other than SPARKLE_OK.
  Exception(sparkle_status status, const std::string& sentence) : std::runtime_error(sentence), status_(status) {}
  // What went wrong.
  sparkle_status status() const noexcept { return status_; }
  // The same as a word, "bad_model".
  const char* code() const noexcept { return sparkle_status_name(status_); }

 private:
  sparkle_status status_;
};

namespace detail {

inline void check(sparkle_status status) {
  if (status != SPARKLE_OK) throw Exception(status, sparkle_last_error());
}
inline std::string take_text(char* text) {
  const std::unique_ptr<char, void (*)(char*)> owned(text, sparkle_string_free);
  return owned.get();
}

// Text for the C interface, which would take what stands before a byte of value 0 for the whole.
inline const char* whole(const std::string& text) {
  if (text.find('\0') == std::string::npos) return text.c_str();
  throw Exception(SPARKLE_BAD_USAGE,
                  "'" + std::string(text.c_str()) + "' goes on behind a byte of value 0, which no name or path holds.");
}

}  // namespace detail

}  // namespace api1
}  // namespace sparkle
#endif  // SPARKLE_EXCEPTION_HPP
