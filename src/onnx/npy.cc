#include "onnx/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/system/out_of_memory.h"
#include "base/files/mapped_file.h"
#include "base/files/new_file.h"
#include "onnx/tensor_proto.h"

namespace sparkle {
namespace {
constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kLongestHeader = 1 << 16;  // a header says a type and up to eight sizes

constexpr struct {
  std::string_view code;
  DType type;
} kTypes[] = {
    {"f4", DType::f32}, {"f2", DType::f16}, {"f8", DType::f64}, {"i1", DType::i8},  {"u1", DType::u8},  {"i2", DType::i16},
    {"u2", DType::u16}, {"i4", DType::i32}, {"u4", DType::u32}, {"i8", DType::i64}, {"u8", DType::u64}, {"b1", DType::boolean},
};

struct Header {
  std::string descr;
  bool fortran = false, fortran_given = false, shape_given = false;
  std::vector<int64_t> shape;
};

// The header is the text of a Python dictionary with exactly the keys descr, fortran_order and shape.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool read(Header& header) {
    if (!take('{')) return false;
    while (!take('}')) {
      std::string key;
      if (!read_string(key) || !take(':')) return false;
      if (key == "descr" && header.descr.empty()) {
        if (!read_string(header.descr)) return false;
      } else if (key == "fortran_order" && !header.fortran_given) {
        header.fortran_given = true;
        header.fortran = take_word("True");
        if (!header.fortran && !take_word("False")) return false;
      } else if (key == "shape" && !header.shape_given) {
        header.shape_given = true;
        if (!read_shape(header.shape)) return false;
      } else {
        return false;
      }
      if (!take(',')) return take('}') && at_end(header);
    }
    return at_end(header);
  }

 private:
  bool at_end(const Header& header) {
    skip_space();
    return text_.empty() && !header.descr.empty() && header.fortran_given && header.shape_given;
  }
  void skip_space() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n')) text_.remove_prefix(1);
  }
  bool take(char c) {
    skip_space();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool take_word(std::string_view word) {
    skip_space();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  bool read_string(std::string& value) {
    skip_space();
    if (text_.empty() || (text_.front() != '\'' && text_.front() != '"')) return false;
    const size_t end = text_.find(text_.front(), 1);
    if (end == std::string_view::npos) return false;
    value = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return true;
  }
  bool read_shape(std::vector<int64_t>& shape) {
    if (!take('(')) return false;
    while (!take(')')) {
      skip_space();
      int64_t size = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), size);
      if (error != std::errc() || shape.size() > static_cast<size_t>(kMaxRank)) return false;
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      take_word("L");  // Python 2 wrote long integers so
      shape.push_back(size);
      if (!take(',')) return take(')');
    }
    return true;
  }

  std::string_view text_;
};

// dst[...] row-major = src[...] column-major: the first axis of src is the fastest.
void from_fortran(const std::byte* src, HostTensor& to) {
  const int rank = to.shape.size();
  const size_t element = static_cast<size_t>(size_of(to.dtype));
  Dims step = Dims::filled(rank, 1), at = Dims::filled(rank, 0);
  for (int i = 1; i < rank; ++i) step[i] = step[i - 1] * to.shape[i - 1];
  for (int64_t i = 0; i < to.elements(); ++i) {
    int64_t from = 0;
    for (int axis = 0; axis < rank; ++axis) from += at[axis] * step[axis];
    std::memcpy(to.bytes.get() + static_cast<size_t>(i) * element, src + static_cast<size_t>(from) * element, element);
    for (int axis = rank - 1; axis >= 0 && ++at[axis] == to.shape[axis]; --axis) at[axis] = 0;
  }
}

void swap_bytes(HostTensor& tensor) {
  const int64_t element = size_of(tensor.dtype);
  for (int64_t i = 0; i < tensor.elements(); ++i)
    std::reverse(tensor.bytes.get() + i * element, tensor.bytes.get() + (i + 1) * element);
}

struct Layout {
  DType type = DType::f32;
  Dims shape;
  bool fortran = false, big_endian = false;
  size_t begin = 0;  // of the data
};

// The data is as long as the header says.
Result<Layout> layout_of(std::span<const std::byte> bytes, const std::string& file) {
  const auto bad = [&](const std::string& why) { return Error{Reason::bad_format, "'" + file + "' " + why + "."}; };
  const auto byte = [&](size_t i) { return static_cast<size_t>(bytes[i]); };
  if (bytes.size() < 10 || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) return bad("is no .npy file");
  const size_t version = byte(6);
  if (version < 1 || version > 3) return bad("has .npy version " + std::to_string(version) + "; 1 to 3 are supported");
  const size_t start = version == 1 ? 10 : 12;
  if (bytes.size() < start) return bad("is cut short in its header");
  size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > bytes.size() - start) return bad("is cut short in its header");
  if (length > kLongestHeader) return bad("has a header of " + std::to_string(length) + " bytes");

  Header header;
  if (!Scanner({reinterpret_cast<const char*>(bytes.data()) + start, length}).read(header))
    return bad("has a header that is not the dictionary of a plain array");
  const char order = header.descr[0];
  const std::string_view code = std::string_view(header.descr).substr(1);
  const auto row = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.code == code; });
  if (row == std::end(kTypes) || (order != '<' && order != '>' && order != '|' && order != '='))
    return Error{Reason::type_not_served, "'" + file + "' has element type '" + header.descr + "', which is not supported."};
  SPARKLE_TRY(shape, checked_shape("'" + file + "'", header.shape.data(), static_cast<int>(header.shape.size())));
  const uint64_t needed = static_cast<uint64_t>(shape.product()) * static_cast<uint64_t>(size_of(row->type));
  const uint64_t present = bytes.size() - start - length;
  if (needed != present)
    return bad("holds " + std::to_string(present) + " bytes of data where its shape " + shape.to_string() + " needs " +
               std::to_string(needed));

  return Layout{row->type, shape, header.fortran, order == '>', start + length};
}
}  // namespace

Result<HostTensor> read_npy_bytes(std::span<const std::byte> bytes, const std::string& file) {
  SPARKLE_TRY(layout, layout_of(bytes, file));
  SPARKLE_TRY(tensor, allocate_tensor(layout.type, layout.shape, "'" + file + "'"));
  const std::byte* data = bytes.data() + layout.begin;
  if (layout.fortran && layout.shape.size() > 1) {
    from_fortran(data, tensor);
  } else if (data != bytes.data() + bytes.size()) {
    std::memcpy(tensor.bytes.get(), data, bytes.size() - layout.begin);
  }
  if (layout.big_endian) swap_bytes(tensor);
  if (tensor.dtype == DType::boolean)
    for (int64_t i = 0; i < tensor.elements(); ++i) tensor.data<uint8_t>()[i] = tensor.data<uint8_t>()[i] != 0;
  return tensor;
}

Result<Dims> read_npy_shape(const std::string& path) {
  SPARKLE_TRY(mapped, MappedFile::open(path));
  SPARKLE_TRY(layout, layout_of(mapped.bytes(), path));
  return layout.shape;
}

Result<HostTensor> read_npy(const std::string& path) {
  SPARKLE_TRY(mapped, MappedFile::open(path));
  return read_npy_bytes(mapped.bytes(), path);
}

Status write_npy(const std::string& path, const HostTensor& value) {
  const auto row = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.type == value.dtype; });
  if (row == std::end(kTypes))
    return Error{Reason::type_not_served, "'" + path + "': NumPy has no element type " + std::string(name_of(value.dtype)) +
                                              "; convert the tensor first."};
  std::string header = "{'descr': '" + std::string(size_of(value.dtype) == 1 ? "|" : "<") + std::string(row->code) +
                       "', 'fortran_order': False, 'shape': (";
  for (int64_t size : value.shape) header += std::to_string(size) + ", ";
  if (value.shape.size() > 1) header.resize(header.size() - 2);
  header += "), }";
  // Magic, version and length take 10 bytes; data starts at a multiple of 64.
  header.append((64 - (10 + header.size() + 1) % 64) % 64, ' ');
  header += '\n';
  std::string text(kMagic);
  text += {'\x01', '\x00', static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  text += header;
  text.append(reinterpret_cast<const char*>(value.bytes.get()), static_cast<size_t>(value.size_bytes()));
  return write_file(path, std::as_bytes(std::span(text)));
}

}  // namespace sparkle
