#include "onnx/metadata.h"

#include <charconv>
#include <cstdint>
#include <optional>

#include "base/files/mapped_file.h"

namespace sparkle {
namespace {

using Bytes = std::span<const std::byte>;

constexpr unsigned kMetadataField = 14, kKeyField = 1, kValueField = 2;  // of ModelProto and StringStringEntryProto
constexpr size_t kMostEntries = 4096, kLongestValue = size_t{1} << 20;

std::optional<uint64_t> take_varint(Bytes& bytes) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto b = std::to_integer<uint64_t>(bytes.front());
    bytes = bytes.subspan(1);
    value |= (b & 127) << shift;
    if (b < 128) return value;
  }
  return {};
}

// Each field of a protobuf message in turn; what is no message ends early.
template <class Visit>
void visit_fields(Bytes bytes, Visit&& visit) {
  while (!bytes.empty()) {
    const auto tag = take_varint(bytes);
    if (!tag) return;
    const auto kind = *tag & 7;
    if (kind == 0) {
      if (!take_varint(bytes)) return;
      continue;
    }
    uint64_t size = kind == 1 ? 8 : 4;
    if (kind == 2) {
      const auto length = take_varint(bytes);
      if (!length) return;
      size = *length;
    } else if (kind != 1 && kind != 5) {
      return;
    }
    if (size > bytes.size()) return;
    if (kind == 2) visit(static_cast<unsigned>(*tag >> 3), bytes.subspan(0, size));
    bytes = bytes.subspan(size);
  }
}

}  // namespace

std::map<std::string, std::string> read_metadata_bytes(Bytes bytes) {
  std::map<std::string, std::string> metadata;
  visit_fields(bytes, [&](unsigned field, Bytes entry) {
    if (field != kMetadataField || metadata.size() >= kMostEntries) return;
    std::string key, value;
    visit_fields(entry, [&](unsigned part, Bytes text) {
      if ((part != kKeyField && part != kValueField) || text.size() > kLongestValue) return;
      (part == kKeyField ? key : value).assign(reinterpret_cast<const char*>(text.data()), text.size());
    });
    metadata.emplace(std::move(key), std::move(value));
  });
  return metadata;
}

std::map<std::string, std::string> read_metadata(const std::string& path) {
  const auto mapped = MappedFile::open(path);
  return mapped.ok() ? read_metadata_bytes(mapped->bytes()) : std::map<std::string, std::string>();
}

std::map<int, std::string> class_names(const std::map<std::string, std::string>& metadata) {
  std::map<int, std::string> names;
  const auto found = metadata.find("names");
  if (found == metadata.end()) return names;
  std::string_view text = found->second;
  constexpr int kMostClasses = 100000;
  for (;;) {
    const size_t digit = text.find_first_of("0123456789");
    if (digit == std::string_view::npos) return names;
    text.remove_prefix(digit);
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    const size_t open = text.find_first_of("'\"");
    if (error != std::errc() || open == std::string_view::npos || text.substr(0, open).find(':') == std::string_view::npos)
      return names;
    const size_t close = text.find(text[open], open + 1);
    if (close == std::string_view::npos || number > kMostClasses) return names;
    names.emplace(number, std::string(text.substr(open + 1, close - open - 1)));
    text.remove_prefix(close + 1);
  }
}

}  // namespace sparkle
