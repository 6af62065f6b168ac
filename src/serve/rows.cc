#include "serve/rows.h"

#include <cmath>
#include <cstring>

#include "base/half_floats.h"
#include "base/system/out_of_memory.h"
#include "run/host_tensors.h"

namespace sparkle::serve {
namespace {

double number_at(const HostTensor& t, int64_t i) {
  if (t.dtype == DType::f32) return t.data<float>()[i];
  if (t.dtype == DType::f64) return t.data<double>()[i];
  const uint16_t bits = t.data<uint16_t>()[i];
  return t.dtype == DType::f16 ? half_to_float(bits) : bfloat16_to_float(bits);
}

// Sums in another order and results of other algorithms differ by some units of the type's last place, times the layers.
double tolerance(DType type) { return type == DType::bf16 ? 5e-2 : type == DType::f16 ? 1e-2 : 1e-3; }

bool floats_agree(const HostTensor& a, const HostTensor& b) {
  double largest = 0;
  for (int64_t i = 0; i < a.elements(); ++i)
    if (const double x = number_at(a, i); std::isfinite(x)) largest = std::max(largest, std::abs(x));
  for (int64_t i = 0; i < a.elements(); ++i) {
    const double x = number_at(a, i), y = number_at(b, i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!(std::abs(x - y) <= tolerance(a.dtype) * largest)) return false;
  }
  return true;
}

}  // namespace

bool same_but_rows(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].dtype != b[i].dtype || a[i].shape.size() != b[i].shape.size()) return false;
    for (int axis = 1; axis < a[i].shape.size(); ++axis)
      if (a[i].shape[axis] != b[i].shape[axis]) return false;
  }
  return true;
}

int64_t rows_of(const std::vector<HostTensor>& tensors) {
  int64_t rows = 0;
  for (const HostTensor& t : tensors) {
    if (t.shape.empty() || t.shape[0] < 1 || (rows > 0 && t.shape[0] != rows)) return 0;
    rows = t.shape[0];
  }
  return rows;
}

Result<std::vector<HostTensor>> side_by_side(std::span<const std::vector<HostTensor>* const> parts) {
  std::vector<HostTensor> whole;
  for (size_t i = 0; i < parts.front()->size(); ++i) {
    Dims shape = (*parts.front())[i].shape;
    shape[0] = 0;
    for (const auto* part : parts) shape[0] += (*part)[i].shape[0];
    SPARKLE_TRY(tensor, allocate_tensor((*parts.front())[i].dtype, shape, "The batch"));
    int64_t at = 0;
    for (const auto* part : parts) {
      const HostTensor& t = (*part)[i];
      if (t.size_bytes() > 0) std::memcpy(tensor.bytes.get() + at, t.bytes.get(), static_cast<size_t>(t.size_bytes()));
      at += t.size_bytes();
    }
    whole.push_back(std::move(tensor));
  }
  return whole;
}

std::vector<HostTensor> rows_from(const std::vector<HostTensor>& whole, int64_t begin, int64_t rows) {
  std::vector<HostTensor> own = whole;
  for (HostTensor& t : own) {
    const int64_t row_bytes = t.shape[0] > 0 ? t.size_bytes() / t.shape[0] : 0;
    t.bytes = std::shared_ptr<std::byte[]>(t.bytes, t.bytes.get() + begin * row_bytes);
    t.shape[0] = rows;
  }
  return own;
}

HostTensor turned_round(const HostTensor& tensor) {
  HostTensor turned = HostTensor::zeros(tensor.dtype, tensor.shape);
  const auto size = static_cast<size_t>(size_of(tensor.dtype));
  const auto count = static_cast<size_t>(tensor.elements());
  for (size_t i = 0; i < count; ++i)
    std::memcpy(turned.bytes.get() + i * size, tensor.bytes.get() + (count - 1 - i) * size, size);
  return turned;
}

bool agree(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].dtype != b[i].dtype || !(a[i].shape == b[i].shape)) return false;
    if (is_float(a[i].dtype) ? !floats_agree(a[i], b[i]) : !same_bytes({a[i]}, {b[i]})) return false;
  }
  return true;
}

}  // namespace sparkle::serve
