// Elements of constants: conversions between every element type, doubles and 64-bit integers.
#include "graph/evaluate/values.h"

#include <limits>

#include "base/half_floats.h"
#include "families/values/convert.h"
#include "families/values/element.h"

namespace sparkle {

namespace {

int64_t to_integer(double value) {
  if (value != value) return 0;
  if (value >= 9223372036854775807.0) return std::numeric_limits<int64_t>::max();
  if (value <= -9223372036854775808.0) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

template <class To, class From>
void convert(const HostTensor& tensor, std::vector<To>& out, To (*each)(From)) {
  const From* from = tensor.data<From>();
  for (size_t i = 0; i < out.size(); ++i) out[i] = each(from[i]);
}

template <class To>
void read_all(const HostTensor& t, std::vector<To>& out) {
  constexpr bool real = std::is_same_v<To, double>;
  const auto plain = [&]<class From>(From) {
    convert<To, From>(t, out, [](From v) {
      if constexpr (real || !std::is_floating_point_v<From>) return static_cast<To>(v);
      else return static_cast<To>(to_integer(static_cast<double>(v)));
    });
  };
  const auto from_float = [](float v) {
    if constexpr (real) return static_cast<To>(v);
    else return static_cast<To>(to_integer(static_cast<double>(v)));
  };
  switch (t.dtype) {
    case DType::f32: return plain(float{});
    case DType::f64: return plain(double{});
    case DType::i8: return plain(int8_t{});
    case DType::u8: return plain(uint8_t{});
    case DType::i16: return plain(int16_t{});
    case DType::u16: return plain(uint16_t{});
    case DType::i32: return plain(int32_t{});
    case DType::u32: return plain(uint32_t{});
    case DType::i64: return plain(int64_t{});
    case DType::u64: return plain(uint64_t{});
    case DType::boolean:
      for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<To>(t.data<uint8_t>()[i] != 0);
      return;
    case DType::f16:
      for (size_t i = 0; i < out.size(); ++i) out[i] = from_float(half_to_float(t.data<uint16_t>()[i]));
      return;
    case DType::bf16:
      for (size_t i = 0; i < out.size(); ++i) out[i] = from_float(bfloat16_to_float(t.data<uint16_t>()[i]));
      return;
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::f4e2m1:
    case DType::i4:
    case DType::u4:
    case DType::i2:
    case DType::u2: load_row(t.dtype, t.bytes.get(), 1, static_cast<int64_t>(out.size()), out.data()); return;
  }
}

template <class From>
HostTensor write_all(DType type, const Dims& shape, const std::vector<From>& values) {
  HostTensor t = HostTensor::zeros(type, shape);
  const auto plain = [&]<class To>(To) {
    for (size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_floating_point_v<To> || !std::is_floating_point_v<From>) {
        t.data<To>()[i] = static_cast<To>(values[i]);
      } else {
        t.data<To>()[i] = static_cast<To>(to_integer(static_cast<double>(values[i])));
      }
    }
  };
  switch (type) {
    case DType::f32: plain(float{}); break;
    case DType::f64: plain(double{}); break;
    case DType::i8: plain(int8_t{}); break;
    case DType::u8: plain(uint8_t{}); break;
    case DType::i16: plain(int16_t{}); break;
    case DType::u16: plain(uint16_t{}); break;
    case DType::i32: plain(int32_t{}); break;
    case DType::u32: plain(uint32_t{}); break;
    case DType::i64: plain(int64_t{}); break;
    case DType::u64: plain(uint64_t{}); break;
    case DType::boolean:
      for (size_t i = 0; i < values.size(); ++i) t.data<uint8_t>()[i] = values[i] != 0;
      break;
    case DType::f16:  // rounded once, as the kernels do
    case DType::bf16:
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::f4e2m1:
    case DType::i4:
    case DType::u4:
    case DType::i2:
    case DType::u2: store_row(type, values.data(), static_cast<int64_t>(values.size()), t.bytes.get(), 1); break;
  }
  return t;
}

}  // namespace

std::vector<double> as_doubles(const HostTensor& tensor) {
  std::vector<double> values(static_cast<size_t>(tensor.elements()));
  read_all(tensor, values);
  return values;
}

HostTensor one_value(DType type, double value) {
  HostTensor t = HostTensor::zeros(type, {});
  store_element(type, value, t.bytes.get());
  return t;
}

WeightFit fit_of(const HostTensor& tensor) {
  if (tensor.dtype == DType::f32) return weight_fit(tensor.data<float>(), tensor.elements(), true);
  if (tensor.dtype != DType::f16 && tensor.dtype != DType::bf16) return {};
  std::vector<float> wide(static_cast<size_t>(tensor.elements()));
  for (size_t i = 0; i < wide.size(); ++i) {
    const uint16_t bits = tensor.data<uint16_t>()[i];
    wide[i] = tensor.dtype == DType::f16 ? half_to_float(bits) : bfloat16_to_float(bits);
  }
  return weight_fit(wide.data(), tensor.elements(), true);
}

std::vector<int64_t> as_integers(const HostTensor& tensor) {
  std::vector<int64_t> values(static_cast<size_t>(tensor.elements()));
  read_all(tensor, values);
  return values;
}

HostTensor from_doubles(DType type, const Dims& shape, const std::vector<double>& values) {
  return write_all(type, shape, values);
}

HostTensor from_integers(DType type, const Dims& shape, const std::vector<int64_t>& values) {
  return write_all(type, shape, values);
}

double element(const HostTensor& tensor, int64_t i) {
  HostTensor one = tensor;
  one.shape = {};
  const auto offset = i * size_of(tensor.dtype);
  one.bytes = std::shared_ptr<std::byte[]>(tensor.bytes, tensor.bytes.get() + offset);
  return as_doubles(one)[0];
}

}  // namespace sparkle
