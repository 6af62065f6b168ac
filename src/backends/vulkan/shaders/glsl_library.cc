#include "backends/vulkan/shaders/glsl_library.h"

#include <cctype>
#include <set>
#include <vector>

namespace sparkle::vulkan {
namespace {

constexpr std::string_view kTexts[] = {
#include "glsl_texts.inc"
};

struct Part {
  std::string_view text;
  std::string name;             // of the function that it defines; "" for remarks
  std::set<std::string> calls;  // names before a parenthesis
};

std::set<std::string> calls_of(std::string_view text) {
  std::set<std::string> names;
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '(') continue;
    size_t begin = i;
    while (begin > 0 && is_word(text[begin - 1])) --begin;
    if (begin < i) names.emplace(text.substr(begin, i - begin));
  }
  return names;
}

// "float exp_of(float x) {": the name of the first line that opens a parenthesis and is no remark.
std::string defined_by(std::string_view text) {
  while (text.starts_with("//")) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  const size_t end = text.find('(');
  if (end == std::string_view::npos) return {};
  const size_t begin = text.rfind(' ', end) + 1;
  return std::string(text.substr(begin, end - begin));
}

const std::vector<Part>& parts() {
  static const std::vector<Part> all = [] {
    std::vector<Part> list;
    for (std::string_view text : kTexts)
      while (!text.empty()) {
        const size_t end = text.find("\n\n");
        const std::string_view part = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
        if (std::string name = defined_by(part); !name.empty()) list.push_back({part, std::move(name), calls_of(part)});
      }
    return list;
  }();
  return all;
}

}  // namespace

std::string library_parts(std::string_view text) {
  std::set<std::string> wanted = calls_of(text);
  for (size_t before = 0; before != wanted.size();) {
    before = wanted.size();
    for (const Part& part : parts())
      if (wanted.contains(part.name)) wanted.insert(part.calls.begin(), part.calls.end());
  }
  std::string result;
  for (const Part& part : parts())
    if (wanted.contains(part.name)) result += std::string(part.text) + "\n\n";
  return result;
}

}  // namespace sparkle::vulkan
