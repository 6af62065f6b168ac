#include "serve/wire.h"

#include <cstdint>
#include <optional>

namespace sparkle::serve {
namespace {

constexpr size_t kMostRecords = 65536, kMostTensors = 1024;
constexpr uint64_t kRaw = 7, kParameters = 4, kInputs = 5, kOutputs = 6;  // fields of a ModelInferRequest

// One after the other from `bytes`; false where they end or are none.
class Records {
 public:
  explicit Records(std::string_view bytes) : left_(bytes) {}
  bool next() {
    const std::string_view before = left_;
    const auto tag = varint();
    if (!tag || *tag > UINT32_MAX || *tag >> 3 == 0) return false;
    number = *tag >> 3, wire = static_cast<int>(*tag & 7), contents = {};
    switch (wire) {
      case 0:
        if (!varint()) return false;
        break;
      case 1:
        if (!skip(8)) return false;
        break;
      case 2: {
        const auto length = varint();
        if (!length || *length > left_.size()) return false;
        contents = left_.substr(0, static_cast<size_t>(*length));
        skip(*length);
        break;
      }
      case 5:
        if (!skip(4)) return false;
        break;
      default: return false;  // groups, which this version of the format has not
    }
    whole = before.substr(0, before.size() - left_.size());
    return true;
  }
  bool at_end() const { return left_.empty(); }
  uint64_t number = 0;
  int wire = 0;
  std::string_view contents, whole;

 private:
  std::optional<uint64_t> varint() {
    uint64_t value = 0;
    for (size_t i = 0; i < 10 && i < left_.size(); ++i) {
      const auto byte = static_cast<uint8_t>(left_[i]);
      value |= uint64_t{byte & 0x7fu} << (7 * i);
      if (byte < 0x80) {
        left_.remove_prefix(i + 1);
        return value;
      }
    }
    return {};
  }
  bool skip(uint64_t count) {
    if (count > left_.size()) return false;
    left_.remove_prefix(static_cast<size_t>(count));
    return true;
  }
  std::string_view left_;
};

// Which of a message's fields have records inside them.
enum class Kind : uint8_t { request, input, output, entry, flat };
Kind inside(Kind kind, uint64_t number) {
  if (kind == Kind::request && number == kParameters) return Kind::entry;
  if (kind == Kind::request && number == kInputs) return Kind::input;
  if (kind == Kind::request && number == kOutputs) return Kind::output;
  if (kind == Kind::input && number == 4) return Kind::entry;
  if (kind == Kind::output && number == 2) return Kind::entry;
  return Kind::flat;
}
bool has_records(Kind kind, uint64_t number) {
  return inside(kind, number) != Kind::flat || (kind == Kind::input && number == 5) || (kind == Kind::entry && number == 2);
}

const char* const kNoRequest = "The message is no ModelInferRequest.";
const char* const kTooMany =
    "The request has more than 65536 fields, or 1024 tensors; send tensors as raw bytes, or their contents packed.";

const char* count_records(std::string_view bytes, Kind kind, size_t& left) {
  Records records(bytes);
  while (!records.at_end()) {
    if (!records.next()) return kNoRequest;
    if (left-- == 0) return kTooMany;
    if (records.wire == 2 && has_records(kind, records.number))
      if (const char* wrong = count_records(records.contents, inside(kind, records.number), left)) return wrong;
  }
  return nullptr;
}

}  // namespace

std::string split_infer_request(std::string_view bytes, InferParts& parts) {
  size_t left = kMostRecords, tensors = kMostTensors;
  Records records(bytes);
  while (!records.at_end()) {
    if (!records.next()) return kNoRequest;
    if (left-- == 0) return kTooMany;
    if (records.wire != 2) continue;  // none of the request's own fields
    if (records.number == kRaw) {
      parts.raw.push_back(records.contents);
      if (parts.raw.size() > kMostTensors) return kTooMany;
      continue;
    }
    if ((records.number == kInputs || records.number == kOutputs) && tensors-- == 0) return kTooMany;
    if (has_records(Kind::request, records.number))
      if (const char* wrong = count_records(records.contents, inside(Kind::request, records.number), left)) return wrong;
    parts.head += records.whole;
  }
  return {};
}

std::string bytes_field(int number, uint64_t length) {
  std::string text(1, static_cast<char>(number << 3 | 2));
  for (; length >= 0x80; length >>= 7) text += static_cast<char>((length & 0x7f) | 0x80);
  return text + static_cast<char>(length);
}

}  // namespace sparkle::serve
