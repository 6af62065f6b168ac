#include "graph/parts/host_numbers.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "families/type_set.h"
#include "families/values/convert.h"
#include "graph/evaluate/values.h"
#include "graph/infer/infer.h"
#include "graph/parts/host_values.h"

namespace sparkle {
namespace {

Error wrong(const Op& op, Reason reason, const std::string& what) {
  return {reason, "Node '" + op.name + "' (" + op.type + "): " + what + "."};
}

// By as many bits as the type has, or a negative number of them, all bits go: of a negative number shifted right its sign
// stays.
template <class T>
T computed(HostKind kind, T x, T y) {
  using U = std::make_unsigned_t<T>;
  const bool within = static_cast<U>(y) < static_cast<U>(std::numeric_limits<U>::digits);
  switch (kind) {
    case HostKind::bit_and: return static_cast<T>(x & y);
    case HostKind::bit_or: return static_cast<T>(x | y);
    case HostKind::bit_xor: return static_cast<T>(x ^ y);
    case HostKind::shift_left: return within ? static_cast<T>(static_cast<uint64_t>(x) << static_cast<U>(y)) : T(0);
    default: return within ? static_cast<T>(x >> y) : static_cast<T>(std::is_signed_v<T> && x < T(0) ? -1 : 0);
  }
}

// By how much each axis of y moves on in x.
Dims steps_of(const Dims& x, const Dims& y) {
  Dims steps = Dims::filled(y.size(), 0);
  int64_t step = 1;
  for (int i = x.size() - 1; i >= 0; --i) {
    if (x[i] != 1) steps[i + y.size() - x.size()] = step;
    step *= x[i];
  }
  return steps;
}

}  // namespace

bool computes_bits(const HostOp& op) {
  return op.kind == HostKind::bit_and || op.kind == HostKind::bit_or || op.kind == HostKind::bit_xor ||
         op.kind == HostKind::shift_left || op.kind == HostKind::shift_right || op.kind == HostKind::bit_cast;
}

Result<std::vector<HostTensor>> host_bits(const Op& op, const std::vector<const HostTensor*>& inputs) {
  const auto& p = std::get<HostOp>(op.params);
  const HostTensor& a = *inputs[0];
  if (p.kind == HostKind::bit_cast) {
    if (stored_bits(a.dtype) != stored_bits(p.dtype))
      return wrong(op, Reason::type_not_served,
                   "its bits of " + std::string(name_of(a.dtype)) + " cannot be read as " + std::string(name_of(p.dtype)) +
                       ", which has another number of them");
    HostTensor y = a;  // shares the bytes
    y.dtype = p.dtype;
    return std::vector<HostTensor>{std::move(y)};
  }
  const HostTensor& b = *inputs[1];
  if (a.dtype != b.dtype || !kIntegers.has(a.dtype))
    return wrong(op, Reason::type_not_served,
                 "it computes on integers of one type, not on " + std::string(name_of(a.dtype)) + " and " +
                     std::string(name_of(b.dtype)));
  const auto shape = broadcast(a.shape, b.shape);
  if (!shape)
    return wrong(op, Reason::bad_shape, "shapes " + a.shape.to_string() + " and " + b.shape.to_string() + " do not broadcast");
  SPARKLE_TRY(y, new_tensor(a.dtype, *shape, "Node '" + op.name + "' (" + op.type + "): its result"));
  const Dims of_a = steps_of(a.shape, *shape), of_b = steps_of(b.shape, *shape);
  with_type(a.dtype, [&]<class T>(T*) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      const T *x = a.data<T>(), *by = b.data<T>();
      const int64_t count = y.elements();
      for (int64_t i = 0; i < count; ++i) {
        int64_t rest = i, at_a = 0, at_b = 0;
        for (int axis = shape->size() - 1; axis >= 0; --axis) {
          const int64_t at = rest % (*shape)[axis];
          rest /= (*shape)[axis];
          at_a += at * of_a[axis], at_b += at * of_b[axis];
        }
        y.data<T>()[i] = computed<T>(p.kind, x[at_a], by[at_b]);
      }
    }
  });
  return std::vector<HostTensor>{std::move(y)};
}

// By elimination with the largest pivot of each column.
Result<std::vector<HostTensor>> host_determinants(const Op& op, const HostTensor& x) {
  const int rank = x.shape.size();
  if (!is_float(x.dtype))
    return wrong(op, Reason::type_not_served, "it computes on floats, not on " + std::string(name_of(x.dtype)));
  if (rank < 2 || x.shape[rank - 1] != x.shape[rank - 2])
    return wrong(op, Reason::bad_shape, "its input of shape " + x.shape.to_string() + " holds no square matrices");
  const int64_t n = x.shape[rank - 1];
  Dims shape = x.shape;
  shape.erase(rank - 1), shape.erase(rank - 2);
  const std::vector<double> values = as_doubles(x);
  std::vector<double> results;
  for (int64_t m = 0; m < shape.product(); ++m) {
    std::vector<double> a(values.begin() + m * n * n, values.begin() + (m + 1) * n * n);
    const auto at = [&](int64_t row, int64_t column) -> double& { return a[static_cast<size_t>(row * n + column)]; };
    double product = 1;
    for (int64_t k = 0; k < n && product != 0; ++k) {
      int64_t pivot = k;
      for (int64_t row = k + 1; row < n; ++row)
        if (std::abs(at(row, k)) > std::abs(at(pivot, k))) pivot = row;
      if (pivot != k) {
        for (int64_t column = 0; column < n; ++column) std::swap(at(k, column), at(pivot, column));
        product = -product;
      }
      product *= at(k, k);
      for (int64_t row = k + 1; row < n && at(k, k) != 0; ++row) {
        const double factor = at(row, k) / at(k, k);
        for (int64_t column = k; column < n; ++column) at(row, column) -= factor * at(k, column);
      }
    }
    results.push_back(product);
  }
  return std::vector<HostTensor>{from_doubles(x.dtype, shape, results)};
}

}  // namespace sparkle
