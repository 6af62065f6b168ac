// What the tests of compiled files share: their bytes, read, changed with all hashes right, and what they are refused with.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "prepare/compiled_model.h"
#include "run/session.h"
#include "run/session_testing.h"

namespace sparkle::testing {

using Bytes = std::vector<std::byte>;

inline Bytes bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> chars{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(chars));
  return {bytes.begin(), bytes.end()};
}

// What a file with these bytes is refused with; the empty text where a session runs on it.
inline std::string refusal(const Bytes& bytes, const std::shared_ptr<Backend>& backend, const SessionOptions& options = {}) {
  const auto said = [](const Error& error) {
    EXPECT_FALSE(error.message.empty());
    EXPECT_EQ(error.message.find('\n'), std::string::npos) << error.message;
    return error.message;
  };
  const auto model = CompiledModel::from_memory(bytes, "file");
  if (!model.ok()) return said(model.error());
  auto opened = Session::open(*model, backend, options);
  if (!opened.ok()) return said(opened.error());
  const auto result = (*opened)->run(random_inputs(**opened));
  return result.ok() ? std::string() : said(result.error());
}

// The file with another text in one section, all hashes right.
inline Bytes with_section(const Bytes& file, CompiledSection section, const std::string& text) {
  auto header = *read_compiled_header(file, "file");
  Bytes changed = file;
  const auto added = std::as_bytes(std::span(text));
  header[section] = {changed.size(), added.size(), hash_bytes(added)};
  changed.insert(changed.end(), added.begin(), added.end());
  header.file_bytes = changed.size();
  const auto begin = compiled_header(header);
  std::copy(begin.begin(), begin.end(), changed.begin());
  return changed;
}
inline std::string section_of(const Bytes& file, CompiledSection section) {
  return std::string(section_text(file, *read_compiled_header(file, "file"), section));
}
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

}  // namespace sparkle::testing
