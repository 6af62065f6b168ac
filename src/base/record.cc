#include "base/record.h"

namespace sparkle {
namespace record_detail {

std::optional<std::string_view> find_field(std::string_view text, std::string_view name) {
  size_t at = 0;
  while (at < text.size()) {
    while (at < text.size() && text[at] == ' ') ++at;
    size_t end = at;
    for (int depth = 0; end < text.size() && (depth > 0 || text[end] != ' '); ++end) {
      if (text[end] == '{' || text[end] == '[') ++depth;
      if (text[end] == '}' || text[end] == ']') --depth;
    }
    const std::string_view field = text.substr(at, end - at);
    const size_t equals = field.find('=');
    if (equals != std::string_view::npos && field.substr(0, equals) == name) return field.substr(equals + 1);
    at = end;
  }
  return std::nullopt;
}

bool parse_number(std::string_view text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_number(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace record_detail

uint64_t hash_text(std::string_view text) {
  uint64_t hash = 14695981039346656037ull;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

}  // namespace sparkle
