#include "base/printable.h"

#include <cstdint>
#include <cstdio>

namespace sparkle {
namespace {

// The character at the beginning and its bytes; 0 bytes where they are no UTF-8.
struct Character {
  uint32_t code = 0;
  size_t bytes = 0;
};

Character first_of(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char head = byte(0);
  if (head < 0x80) return {head, 1};
  const size_t bytes = head >= 0xf0 && head < 0xf5 ? 4 : head >= 0xe0 && head < 0xf0 ? 3 : head >= 0xc2 && head < 0xe0 ? 2 : 0;
  if (bytes == 0 || bytes > text.size()) return {};
  uint32_t code = head & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, bytes};
}

// Unicode's control and format characters, line and paragraph separators.
bool steers(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
         (c >= 0xe0000 && c <= 0xe007f);
}

std::string escaped(std::string_view text, std::string_view kept = {}) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const Character c = first_of(text);
    const size_t bytes = c.bytes == 0 ? 1 : c.bytes;
    if (c.bytes > 0 && (!steers(c.code) || (c.code < 0x80 && kept.find(text[0]) != std::string_view::npos))) {
      clean += text.substr(0, bytes);
    } else {
      char code[16];
      if (c.bytes > 1) std::snprintf(code, sizeof code, "\\u{%x}", static_cast<unsigned>(c.code));
      else std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(text[0])));
      clean += code;
    }
    text.remove_prefix(bytes);
  }
  return clean;
}

// Of clean text: its first two thirds and its end, no character cut.
std::string shortened(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  const auto inside = [&](size_t at) { return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80; };
  size_t head = most * 2 / 3, tail = text.size() - (most - head);
  while (inside(head)) --head;
  while (inside(tail)) ++tail;
  return text.substr(0, head) + "...[" + std::to_string(tail - head) + " bytes]..." + text.substr(tail);
}

}  // namespace

std::string printable(std::string_view name, size_t most) {
  // What is left out anyway is not looked at: a name may be a megabyte.
  if (name.size() > 8 * most) {
    const std::string head = shortened(escaped(name.substr(0, 2 * most)), most);
    return head.substr(0, head.find("...[")) + "...[" + std::to_string(name.size()) + " bytes in all]";
  }
  return shortened(escaped(name), most);
}

std::string printable_sentence(std::string_view sentence) {
  constexpr size_t kMostOfAWord = 400, kMostInAll = 8000;
  std::string clean;
  for (size_t at = 0;;) {
    const size_t end = sentence.find("\n  ", at);
    clean += escaped(sentence.substr(at, end - at));
    if (end == std::string_view::npos) break;
    clean += '\n';
    at = end + 1;
  }
  if (clean.size() <= kMostOfAWord) return clean;
  std::string text;
  for (size_t at = 0; at < clean.size();) {
    // A name in quotes is one word, whatever it holds; without its end the quote is an apostrophe.
    size_t end = std::string::npos;
    if (clean[at] == '\'' && (at == 0 || clean[at - 1] == ' ' || clean[at - 1] == '(')) end = clean.find('\'', at + 1);
    end = end == std::string::npos ? clean.find(' ', at) : end;
    end = end == std::string::npos ? clean.size() : end + 1;
    text += shortened(clean.substr(at, end - at), kMostOfAWord);
    at = end;
  }
  return shortened(text, kMostInAll);
}

std::string printable_lines(std::string_view text) { return escaped(text, "\n\t"); }

}  // namespace sparkle
