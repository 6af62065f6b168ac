#include "report/pictures/guards/jpeg_check.h"

#include <algorithm>

namespace sparkle {
namespace {

constexpr int kMaxCodes = 256;  // one per symbol of eight bits

class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  size_t size() const { return bytes_.size(); }
  int at(size_t i) const {
    return i < bytes_.size() ? static_cast<int>(bytes_[i]) : 0;
  }  // the decoder, too, reads zeros at the end
  size_t word(size_t i) const { return static_cast<size_t>(at(i) * 256 + at(i + 1)); }

 private:
  std::span<const std::byte> bytes_;
};

// The tables of a segment whose length lies at `at`.
bool tables_fit(const Bytes& b, size_t at) {
  const size_t length = b.word(at);
  const size_t end = at + std::max<size_t>(length, 2);
  for (size_t p = at + 2; p < end && p < b.size();) {
    int codes = 0;
    for (size_t i = 1; i <= 16; ++i) codes += b.at(p + i);
    if (codes > kMaxCodes) return false;
    p += 17 + static_cast<size_t>(codes);
  }
  return true;
}

struct Tables {
  bool defined[2][4] = {};  // [DC, AC][number]
};

// Those of a segment that fits.
void add_tables(const Bytes& b, size_t at, Tables& tables) {
  const size_t end = at + std::max<size_t>(b.word(at), 2);
  for (size_t p = at + 2; p < end && p < b.size();) {
    size_t codes = 0;
    for (size_t i = 1; i <= 16; ++i) codes += static_cast<size_t>(b.at(p + i));
    if (b.at(p) / 16 < 2 && b.at(p) % 16 < 4) tables.defined[b.at(p) / 16][b.at(p) % 16] = true;
    p += 17 + codes;
  }
}

// Of a scan whose length lies at `at`; what the decoder refuses by itself counts as well.
bool has_tables(const Bytes& b, size_t at, const Tables& tables, bool progressive) {
  const int components = b.at(at + 2);
  if (components < 1 || components > 4) return true;
  const bool dc_first = b.at(at + 3 + 2 * static_cast<size_t>(components)) == 0;
  for (size_t i = 0; i < static_cast<size_t>(components); ++i) {
    const int dc = b.at(at + 4 + 2 * i) / 16, ac = b.at(at + 4 + 2 * i) % 16;
    if (dc > 3 || ac > 3) return true;
    if ((!progressive || dc_first) && !tables.defined[0][dc]) return false;
    if ((!progressive || !dc_first) && !tables.defined[1][ac]) return false;
  }
  return true;
}

// From marker to marker, as the decoder goes; compressed data has none but restarts.
bool scans_have_tables(const Bytes& b) {
  Tables tables;
  bool progressive = false;
  for (size_t p = 0; p < b.size();) {
    if (b.at(p++) != 0xff) continue;
    while (p < b.size() && b.at(p) == 0xff) ++p;
    const int marker = b.at(p++);
    if (marker == 0xd9) break;
    if (marker <= 0x01 || (marker >= 0xd0 && marker <= 0xd8)) continue;
    progressive = progressive || marker == 0xc2;
    if (marker == 0xc4) add_tables(b, p, tables);
    if (marker == 0xda && !has_tables(b, p, tables, progressive)) return false;
    p += std::max<size_t>(b.word(p), 2);
  }
  return true;
}

}  // namespace

std::span<const std::byte> checked_jpeg(std::span<const std::byte> bytes) {
  const Bytes b(bytes);
  if (b.at(0) != 0xff) return bytes;
  if (!scans_have_tables(b)) return {};
  size_t p = 0;
  // Up to the first scan the decoder goes from segment to segment, as here; metadata is stepped over.
  if (b.at(1) == 0xd8) {
    for (p = 2; p < b.size();) {
      if (b.at(p) != 0xff) {
        ++p;
        continue;
      }
      while (p < b.size() && b.at(p) == 0xff) ++p;
      const int marker = b.at(p++);
      const bool segment = (marker >= 0xc0 && marker <= 0xc2) || marker == 0xc4 || marker == 0xdb || marker == 0xdd ||
                           (marker >= 0xe0 && marker <= 0xef) || marker == 0xfe;
      if (!segment) break;
      if (marker == 0xc4 && !tables_fit(b, p)) return {};
      p += std::max<size_t>(b.word(p), 2);
    }
  }
  // From there on at every byte: compressed data never holds these markers by chance. What follows the picture is left out.
  for (; p + 1 < b.size(); ++p) {
    if (b.at(p) != 0xff) continue;
    if (b.at(p + 1) == 0xd9) return bytes.first(p + 2);
    if (b.at(p + 1) == 0xc4 && !tables_fit(b, p + 2)) return {};
  }
  return bytes;
}

}  // namespace sparkle
