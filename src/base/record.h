// Records: small structs of numbers, names and lists that are printed, parsed, compared and hashed through one function each.
// A record lists its fields once:   template <class V> void visit(V& v) { v("m", m); v("order", order); }
// and text looks like   m=3136 order=rows epilogue={bias=1 activation=relu}
// Field types: integers, double, bool, std::string (no spaces or braces), Dims, std::array of integers, enums that have
// name_of/parse_name overloads, and nested records.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/dims.h"
#include "base/result.h"

namespace sparkle {

namespace record_detail {

struct Printer {
  std::string text;
  // A field that is printed only where there is something in it, and may be missing: `if (v.present(name, there)) v(name,
  // ...)`.
  bool present(std::string_view, bool there) const { return there; }
  template <class T>
  void operator()(std::string_view name, T& field) {
    if (!text.empty()) text += ' ';
    text.append(name).append("=");
    print(field);
  }
  template <class T>
  void print(T& field) {
    using F = std::remove_const_t<T>;
    if constexpr (std::is_same_v<F, bool>) {
      text += field ? "1" : "0";
    } else if constexpr (std::integral<F>) {
      text += std::to_string(field);
    } else if constexpr (std::floating_point<F>) {
      char buffer[40];  // the shortest text that reads back as the same number
      text.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, static_cast<double>(field)).ptr);
    } else if constexpr (std::is_enum_v<F>) {
      text += name_of(field);
    } else if constexpr (std::is_same_v<F, std::string>) {
      text += field.empty() ? "-" : field;
    } else if constexpr (requires {
                           field.begin();
                           field.end();
                         }) {
      text += '[';
      bool first = true;
      for (auto& value : field) {
        if (!first) text += ',';
        first = false;
        print(value);
      }
      text += ']';
    } else {
      Printer inner;
      field.visit(inner);
      text += '{' + inner.text + '}';
    }
  }
};

// Splits "a=1 b={c=2 d=[3,4]}" at the top level; finds a field by name.
std::optional<std::string_view> find_field(std::string_view text, std::string_view name);
bool parse_number(std::string_view text, int64_t& value);
bool parse_number(std::string_view text, double& value);

struct Parser {
  std::string_view text;
  std::string problem;  // empty while all is well
  bool present(std::string_view name, bool) const { return find_field(text, name).has_value(); }
  template <class T>
  void operator()(std::string_view name, T& field) {
    if (!problem.empty()) return;
    const auto value = find_field(text, name);
    if (!value) {
      problem = "field '" + std::string(name) + "' is missing";
    } else if (!parse(*value, field)) {
      problem = "field '" + std::string(name) + "' cannot be read from '" + std::string(*value) + "'";
    }
  }
  template <class T>
  bool parse(std::string_view value, T& field) {
    if constexpr (std::is_same_v<T, bool>) {
      field = value == "1";
      return value == "0" || value == "1";
    } else if constexpr (std::integral<T>) {
      int64_t number = 0;
      if (!parse_number(value, number) || !std::in_range<T>(number)) return false;
      field = static_cast<T>(number);
      return true;
    } else if constexpr (std::floating_point<T>) {
      double number = 0;
      if (!parse_number(value, number)) return false;
      field = static_cast<T>(number);
      return true;
    } else if constexpr (std::is_enum_v<T>) {
      return parse_name(value, field);
    } else if constexpr (std::is_same_v<T, std::string>) {
      field = value == "-" ? std::string() : std::string(value);
      return true;
    } else if constexpr (requires {
                           field.begin();
                           field.end();
                         }) {
      if (value.size() < 2 || value.front() != '[' || value.back() != ']') return false;
      return parse_list(value.substr(1, value.size() - 2), field);
    } else {
      if (value.size() < 2 || value.front() != '{' || value.back() != '}') return false;
      Parser inner{value.substr(1, value.size() - 2), {}};
      field.visit(inner);
      problem = inner.problem;
      return problem.empty();
    }
  }
  template <class L>
  bool parse_list(std::string_view items, L& list) {
    if constexpr (requires { list.push_back(*list.begin()); }) list = L{};
    size_t index = 0;
    while (!items.empty()) {
      // The next item ends at a comma outside of braces and brackets.
      size_t end = 0;
      for (int depth = 0; end < items.size() && (depth > 0 || items[end] != ','); ++end) {
        if (items[end] == '{' || items[end] == '[') ++depth;
        if (items[end] == '}' || items[end] == ']') --depth;
      }
      std::remove_cvref_t<decltype(*list.begin())> value{};
      if (!parse(items.substr(0, end), value)) return false;
      if constexpr (requires { list.push_back(value); }) {
        list.push_back(value);
        if (static_cast<size_t>(list.size()) != index + 1) return false;  // a Dims that is full drops what comes
      } else {
        if (index >= list.size()) return false;
        list[index] = value;
      }
      ++index;
      items.remove_prefix(end < items.size() ? end + 1 : end);
    }
    if constexpr (!requires { list.push_back(*list.begin()); }) return index == list.size();
    return true;
  }
};

}  // namespace record_detail

// "m=3136 n=64 ..."; the same record always prints the same text, so text serves as key and hash source too.
template <class R>
std::string to_text(const R& record) {
  record_detail::Printer printer;
  const_cast<R&>(record).visit(printer);
  return printer.text;
}

template <class R>
Result<R> from_text(std::string_view text) {
  R record{};
  record_detail::Parser parser{text, {}};
  record.visit(parser);
  if (!parser.problem.empty()) return Error{Reason::bad_format, parser.problem + " in '" + std::string(text) + "'."};
  return record;
}

// FNV-1a, 64 bits: stable over machines and runs.
uint64_t hash_text(std::string_view text);

}  // namespace sparkle
