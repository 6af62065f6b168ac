// A value of JSON text on its way into a tensor.
#pragma once

#include <string>

#include "base/tensor.h"

namespace sparkle::serve {

// A value that is neither an object nor an array.
struct Scalar {
  enum class Kind : uint8_t { null, boolean, negative, natural, real, text };
  Kind kind = Kind::null;
  bool truth = false;
  int64_t negative = 0;
  uint64_t natural = 0;
  double real = 0;
  const std::string* text = nullptr;  // of a real too: its digits

  bool is_number() const { return kind == Kind::negative || kind == Kind::natural || kind == Kind::real; }
  double as_double() const {
    return kind == Kind::negative ? static_cast<double>(negative) : kind == Kind::natural ? static_cast<double>(natural) : real;
  }
};

// Sets element `at`, rounded once. False where the type does not hold the value.
bool put_value(HostTensor& t, int64_t at, const Scalar& v);

}  // namespace sparkle::serve
