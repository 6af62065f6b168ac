// The classification extension: an output as its largest values with their numbers and names.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "base/half_floats.h"
#include "serve/protocol.h"

namespace sparkle::serve {
namespace {

template <class T>
bool before(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a) || std::isnan(b)) return !std::isnan(a);
  return a > b;
}

template <class T>
void add_row(ClassTexts& to, const T* row, int64_t elements, int64_t classes, const std::vector<std::string>* labels) {
  std::vector<int64_t> order(static_cast<size_t>(elements));
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + classes, order.end(), [&](int64_t a, int64_t b) {
    const bool a_first = before(row[a], row[b]), b_first = before(row[b], row[a]);
    return a_first == b_first ? a < b : a_first;
  });
  for (int64_t c = 0; c < classes; ++c) {
    const auto index = static_cast<size_t>(order[static_cast<size_t>(c)]);
    char number[40];
    const auto end = std::to_chars(number, number + sizeof number, row[index]).ptr;
    std::string text = std::string(number, end) + ":" + std::to_string(index);
    if (labels && index < labels->size() && !(*labels)[index].empty()) text += ":" + (*labels)[index];
    to.texts.push_back(std::move(text));
  }
}

template <class T>
void add_rows(ClassTexts& to, const T* values, int64_t rows, int64_t elements, int64_t classes,
              const std::vector<std::string>* labels) {
  for (int64_t r = 0; r < rows; ++r) add_row(to, values + r * elements, elements, classes, labels);
}

}  // namespace

ClassTexts class_texts(const HostTensor& t, int64_t asked, const std::vector<std::string>* labels) {
  const bool has_rows = t.shape.size() > 1;
  const int64_t rows = has_rows ? t.shape[0] : 1, elements = rows > 0 ? t.elements() / rows : 0;
  const int64_t classes = std::min(asked, elements);
  ClassTexts made;
  if (has_rows) made.shape.push_back(rows);
  made.shape.push_back(classes);
  const auto all = [&](const auto* values) { add_rows(made, values, rows, elements, classes, labels); };
  const auto widened = [&](auto&& widen) {
    std::vector<float> values(static_cast<size_t>(t.elements()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = widen(t.data<uint16_t>()[i]);
    all(values.data());
  };
  switch (t.dtype) {
    case DType::f32: all(t.data<float>()); break;
    case DType::f64: all(t.data<double>()); break;
    case DType::f16: widened([](uint16_t bits) { return half_to_float(bits); }); break;
    case DType::bf16: widened([](uint16_t bits) { return bfloat16_to_float(bits); }); break;
    case DType::i8: all(t.data<int8_t>()); break;
    case DType::i16: all(t.data<int16_t>()); break;
    case DType::u16: all(t.data<uint16_t>()); break;
    case DType::i32: all(t.data<int32_t>()); break;
    case DType::u32: all(t.data<uint32_t>()); break;
    case DType::i64: all(t.data<int64_t>()); break;
    case DType::u64: all(t.data<uint64_t>()); break;
    default: all(t.data<uint8_t>()); break;  // of UINT8 and BOOL
  }
  return made;
}

}  // namespace sparkle::serve
