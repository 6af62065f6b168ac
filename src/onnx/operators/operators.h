// What the specification says of each operator by opset (operators.inc): when it came, how many inputs and outputs it may have,
// when it was withdrawn.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace sparkle {

inline constexpr int kAny = 1 << 30;

struct OperatorForm {
  int64_t opset = 0;  // the first that has it; 0: no form
  int most_inputs = 0, most_outputs = 0;
};

struct OperatorVersions {
  std::string_view type;
  int64_t withdrawn = 0;  // the opset from which on there is no such operator; 0: none
  std::array<OperatorForm, 4> forms;

  int64_t since() const { return forms[0].opset; }
  // The form that an opset of at least since() has.
  const OperatorForm& in(int64_t opset) const;
};

// All of them by name.
std::span<const OperatorVersions> all_operators();

// nullptr: no such operator. Operators of com.microsoft have their domain in the name.
const OperatorVersions* versions_of(std::string_view type);

}  // namespace sparkle
