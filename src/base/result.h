// Result<T>: a value or an Error. Whatever a running program must survive is returned, never thrown.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace sparkle {

enum class Reason : unsigned char {
#define REASON(code, sentence) code,
#include "base/reasons.inc"
#undef REASON
};

// The code as text ("bad_shape") and the sentence that explains it.
std::string_view code_of(Reason reason);
std::string_view sentence_of(Reason reason);

// What went wrong: a reason code and one sentence naming what, where and what to do.
struct Error {
  Reason reason = Reason::internal;
  std::string message;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return *std::get_if<0>(&state_); }
  const T& value() const& { return *std::get_if<0>(&state_); }
  T&& value() && { return std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const { return *std::get_if<1>(&state_); }
  Error take_error() { return std::move(*std::get_if<1>(&state_)); }

 private:
  std::variant<T, Error> state_;
};

// Success without a value.
struct Done {};
using Status = Result<Done>;
inline Status ok() { return Done{}; }

// SPARKLE_TRY(name, expression): binds the value to `name` or returns the error.
#define SPARKLE_CONCAT_INNER(a, b) a##b
#define SPARKLE_CONCAT(a, b) SPARKLE_CONCAT_INNER(a, b)
#define SPARKLE_TRY(name, ...)                                                                        \
  auto SPARKLE_CONCAT(result_, __LINE__) = (__VA_ARGS__);                                             \
  if (!SPARKLE_CONCAT(result_, __LINE__).ok()) return SPARKLE_CONCAT(result_, __LINE__).take_error(); \
  auto name = std::move(SPARKLE_CONCAT(result_, __LINE__)).value()
// SPARKLE_CHECK(status): returns the error, if any.
#define SPARKLE_CHECK(...)                                                        \
  do {                                                                            \
    if (auto status_ = (__VA_ARGS__); !status_.ok()) return status_.take_error(); \
  } while (false)

}  // namespace sparkle
