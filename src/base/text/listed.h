// Lists in one option: "a,b".
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace sparkle {

// What stands between the commas, empty parts too; of an empty text one empty part.
inline std::vector<std::string> comma_separated(std::string_view text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

}  // namespace sparkle
