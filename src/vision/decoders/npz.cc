#include "vision/decoders/npz.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/files/mapped_file.h"
#include "base/system/out_of_memory.h"
#include "onnx/npy.h"

namespace sparkle {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint64_t kMostUnfolded = uint64_t{4} << 30;
constexpr uint64_t kMostRatio = 1032;  // of deflate: a repetition of 258 bytes takes two bits

// Records of the ZIP format (APPNOTE.TXT of PKWARE, 4.3): the end, an entry of the directory, the head in front of its bytes.
constexpr uint32_t kEnd = 0x06054b50, kEntry = 0x02014b50, kHead = 0x04034b50;
constexpr size_t kEndBytes = 22, kEntryBytes = 46, kHeadBytes = 30, kLongestComment = 65535;

uint64_t zip_number(Bytes bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= std::to_integer<uint64_t>(bytes[at + i]) << 8 * i;
  return value;
}

std::optional<size_t> find_end(Bytes bytes) {
  if (bytes.size() < kEndBytes) return {};
  const size_t last = bytes.size() - kEndBytes, first = last > kLongestComment ? last - kLongestComment : 0;
  for (size_t at = last + 1; at-- > first;)
    if (zip_number(bytes, at, 4) == kEnd) return at;
  return {};
}

struct Entry {
  std::string name;
  uint64_t method = 0, stored = 0, size = 0, head = 0;
};

// The three numbers that archives of more than 4 GiB keep in a field of 64 bits, where the directory has all ones for them.
bool take_64_bits(Bytes extra, Entry& e) {
  constexpr uint64_t kElsewhere = 0xffffffff;
  while (extra.size() >= 4) {
    const uint64_t tag = zip_number(extra, 0, 2), bytes = zip_number(extra, 2, 2);
    extra = extra.subspan(4);
    if (bytes > extra.size()) return false;
    if (tag == 1) {
      size_t at = 0;
      for (uint64_t* value : {&e.size, &e.stored, &e.head}) {
        if (*value != kElsewhere) continue;
        if (at + 8 > bytes) return false;
        *value = zip_number(extra, at, 8), at += 8;
      }
    }
    extra = extra.subspan(bytes);
  }
  return true;
}

bool inflate_into(Bytes from, std::byte* to, size_t bytes) {
  z_stream z{};
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return false;
  size_t in = 0, out = 0;
  int status = Z_OK;
  constexpr size_t kMost = size_t{1} << 30;  // zlib counts in 32 bits
  while (status == Z_OK) {
    z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(from.data() + in));
    z.next_out = reinterpret_cast<Bytef*>(to + out);
    const size_t give = std::min(kMost, from.size() - in), room = std::min(kMost, bytes - out);
    z.avail_in = static_cast<uInt>(give), z.avail_out = static_cast<uInt>(room);
    status = inflate(&z, Z_NO_FLUSH);
    in += give - z.avail_in, out += room - z.avail_out;
    if (status == Z_OK && give == z.avail_in && room == z.avail_out) break;  // nothing moves any more
  }
  inflateEnd(&z);
  return status == Z_STREAM_END && out == bytes;
}

Result<std::vector<NamedTensor>> arrays_of(Bytes bytes, const std::string& file) {
  const auto bad = [&](const std::string& why) { return Error{Reason::bad_format, "'" + file + "' " + why + "."}; };
  const auto end = find_end(bytes);
  if (!end) return bad("is no .npz file, or is cut short");
  const uint64_t count = zip_number(bytes, *end + 10, 2);
  uint64_t at = zip_number(bytes, *end + 16, 4), unfolded = 0;
  std::vector<NamedTensor> arrays;
  for (uint64_t i = 0; i < count; ++i) {
    if (at > bytes.size() || bytes.size() - at < kEntryBytes || zip_number(bytes, at, 4) != kEntry)
      return bad("has a damaged list of arrays");
    Entry e;
    e.method = zip_number(bytes, at + 10, 2), e.stored = zip_number(bytes, at + 20, 4), e.size = zip_number(bytes, at + 24, 4);
    e.head = zip_number(bytes, at + 42, 4);
    const uint64_t name = zip_number(bytes, at + 28, 2), extra = zip_number(bytes, at + 30, 2),
                   comment = zip_number(bytes, at + 32, 2);
    if (bytes.size() - at - kEntryBytes < name + extra + comment) return bad("has a damaged list of arrays");
    e.name.assign(reinterpret_cast<const char*>(bytes.data()) + at + kEntryBytes, name);
    if (!take_64_bits(bytes.subspan(at + kEntryBytes + name, extra), e)) return bad("has a damaged list of arrays");
    at += kEntryBytes + name + extra + comment;
    if (e.name.ends_with(".npy")) e.name.resize(e.name.size() - 4);
    const std::string array = file + "' array '" + e.name;
    if (e.head > bytes.size() || bytes.size() - e.head < kHeadBytes || zip_number(bytes, e.head, 4) != kHead)
      return bad("is damaged at array '" + e.name + "'");
    const uint64_t from = e.head + kHeadBytes + zip_number(bytes, e.head + 26, 2) + zip_number(bytes, e.head + 28, 2);
    if (from > bytes.size() || e.stored > bytes.size() - from) return bad("is cut short in array '" + e.name + "'");
    const Bytes data = bytes.subspan(from, e.stored);
    Result<HostTensor> tensor = HostTensor{};
    if (e.method == 0 && e.size == e.stored) {
      tensor = read_npy_bytes(data, array);
    } else if (e.method == 8) {
      unfolded += std::min(e.size, kMostUnfolded);
      if (unfolded > kMostUnfolded)
        return Error{Reason::size_overflow,
                     "'" + file + "' holds more than 4 GiB of arrays, the most that is read of one file."};
      if (e.size > kMostRatio * e.stored + 64) return bad("claims more bytes for array '" + e.name + "' than it can hold");
      std::vector<std::byte> text(e.size);
      if (!inflate_into(data, text.data(), text.size())) return bad("is damaged in array '" + e.name + "'");
      tensor = read_npy_bytes(text, array);
    } else {
      return bad("keeps array '" + e.name + "' in a form that is not read; write it by numpy.savez or savez_compressed");
    }
    if (!tensor.ok()) return tensor.take_error();
    arrays.push_back({std::move(e.name), std::move(*tensor)});
  }
  if (arrays.empty()) return bad("holds no arrays");
  return arrays;
}

}  // namespace

Result<std::vector<NamedTensor>> read_npz_bytes(Bytes bytes, const std::string& file) {
  return guard_memory("Reading the arrays", [&] { return arrays_of(bytes, file); });
}

Result<std::vector<NamedTensor>> read_npz(const std::string& path) {
  SPARKLE_TRY(mapped, MappedFile::open(path));
  return read_npz_bytes(mapped.bytes(), path);
}

}  // namespace sparkle
