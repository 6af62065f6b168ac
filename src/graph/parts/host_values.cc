#include "graph/parts/host_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "graph/evaluate/values.h"
#include "graph/infer/infer.h"
#include "graph/parts/host_numbers.h"

namespace sparkle {
namespace {

using Tensors = std::vector<HostTensor>;

Error wrong(const Op& op, Reason reason, const std::string& what) {
  return {reason, "Node '" + op.name + "' (" + op.type + "): " + what + "."};
}

Result<HostTensor> made(const Op& op, DType type, const Dims& shape) {
  return new_tensor(type, shape, "Node '" + op.name + "' (" + op.type + "): its result");
}

bool is_zero(const std::byte* element, size_t bytes, DType type) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, bytes);
  if (is_float(type)) bits &= (uint64_t{1} << (8 * bytes - 1)) - 1;  // -0 is zero too
  return bits == 0;
}

Result<Tensors> non_zero(const Op& op, const HostTensor& x) {
  const auto bytes = static_cast<size_t>(size_of(x.dtype));
  const int64_t elements = x.elements();
  const int rank = x.shape.size();
  std::vector<int64_t> found;
  for (int64_t i = 0; i < elements; ++i)
    if (!is_zero(x.bytes.get() + static_cast<size_t>(i) * bytes, bytes, x.dtype)) found.push_back(i);
  const auto count = static_cast<int64_t>(found.size());
  SPARKLE_TRY(y, made(op, DType::i64, {rank, count}));
  int64_t inner = 1;
  for (int a = rank; a-- > 0; inner *= std::max<int64_t>(x.shape[a], 1))
    for (int64_t i = 0; i < count; ++i)
      y.data<int64_t>()[a * count + i] = found[static_cast<size_t>(i)] / inner % std::max<int64_t>(x.shape[a], 1);
  return Tensors{std::move(y)};
}

// x as [outer, axis, inner]; without an axis all elements in a row.
struct Along {
  int64_t outer = 1, size = 1;
  size_t inner = 1;  // bytes
  Dims shape;
  int axis = 0;
};

Result<Along> along(const Op& op, const HostTensor& x) {
  const auto& axis = std::get<HostOp>(op.params).axis;
  Along a;
  a.inner = static_cast<size_t>(size_of(x.dtype));
  if (!axis) {
    a.size = x.elements(), a.shape = {a.size};
    return a;
  }
  const int rank = x.shape.size();
  if (*axis < -rank || *axis >= rank)
    return wrong(op, Reason::bad_shape,
                 "axis " + std::to_string(*axis) + " does not exist in a tensor of rank " + std::to_string(rank));
  a.axis = static_cast<int>(*axis < 0 ? *axis + rank : *axis);
  a.shape = x.shape, a.size = x.shape[a.axis];
  for (int i = 0; i < a.axis; ++i) a.outer *= x.shape[i];
  for (int i = a.axis + 1; i < rank; ++i) a.inner *= static_cast<size_t>(x.shape[i]);
  return a;
}

// The slices of these numbers along the axis.
Result<HostTensor> taken(const Op& op, const HostTensor& x, const Along& a, const std::vector<int64_t>& which) {
  Dims shape = a.shape;
  shape[a.axis] = static_cast<int64_t>(which.size());
  SPARKLE_TRY(y, made(op, x.dtype, shape));
  std::byte* to = y.bytes.get();
  for (int64_t o = 0; o < a.outer; ++o)
    for (int64_t i : which) {
      std::memcpy(to, x.bytes.get() + static_cast<size_t>(o * a.size + i) * a.inner, a.inner);
      to += a.inner;
    }
  return y;
}

Result<Tensors> compress(const Op& op, const HostTensor& x, const HostTensor& condition) {
  SPARKLE_TRY(a, along(op, x));
  if (condition.dtype != DType::boolean || condition.shape.size() != 1)
    return wrong(op, Reason::bad_input, "its condition should be a list of truth values");
  std::vector<int64_t> which;
  for (int64_t i = 0; i < std::min(condition.elements(), a.size); ++i)
    if (condition.data<uint8_t>()[i] != 0) which.push_back(i);
  for (int64_t i = a.size; i < condition.elements(); ++i)
    if (condition.data<uint8_t>()[i] != 0)
      return wrong(op, Reason::bad_input,
                   "its condition asks for slice " + std::to_string(i) + " of " + std::to_string(a.size));
  SPARKLE_TRY(y, taken(op, x, a, which));
  return Tensors{std::move(y)};
}

Result<Tensors> unique(const Op& op, const HostTensor& x) {
  SPARKLE_TRY(a, along(op, x));
  const auto n = static_cast<size_t>(a.size);
  // Elements compare by value: integers exactly, floats as doubles.
  const bool real = is_float(x.dtype);
  const std::vector<double> doubles = real ? as_doubles(x) : std::vector<double>();
  const std::vector<int64_t> integers = real ? std::vector<int64_t>() : as_integers(x);
  const size_t inner = a.inner / static_cast<size_t>(size_of(x.dtype));
  const auto compare = [&](size_t i, size_t j) {
    for (size_t o = 0; o < static_cast<size_t>(a.outer); ++o)
      for (size_t k = 0; k < inner; ++k) {
        const size_t p = (o * n + i) * inner + k, q = (o * n + j) * inner + k;
        if (real) {
          const double left = doubles[p], right = doubles[q];
          const bool no_left = std::isnan(left), no_right = std::isnan(right);  // behind all numbers
          if (no_left != no_right) return no_left ? 1 : -1;
          if (!no_left && left != right) return left < right ? -1 : 1;
        } else if (integers[p] != integers[q]) {
          if (x.dtype == DType::u64) return static_cast<uint64_t>(integers[p]) < static_cast<uint64_t>(integers[q]) ? -1 : 1;
          return integers[p] < integers[q] ? -1 : 1;
        }
      }
    return 0;
  };
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) { return compare(i, j) < 0; });
  std::vector<int64_t> first, group(n), count;  // per distinct slice, and the slice of each
  for (size_t i = 0; i < n; ++i) {
    if (i == 0 || compare(order[i - 1], order[i]) != 0) first.push_back(static_cast<int64_t>(order[i])), count.push_back(0);
    group[order[i]] = static_cast<int64_t>(first.size()) - 1;
    ++count.back();
  }
  if (!std::get<HostOp>(op.params).sorted) {  // in the order of their first appearance
    std::vector<size_t> by_place(first.size());
    std::iota(by_place.begin(), by_place.end(), size_t{0});
    std::sort(by_place.begin(), by_place.end(), [&](size_t i, size_t j) { return first[i] < first[j]; });
    std::vector<int64_t> places, counts, now(first.size());
    for (size_t i = 0; i < by_place.size(); ++i) {
      places.push_back(first[by_place[i]]), counts.push_back(count[by_place[i]]);
      now[by_place[i]] = static_cast<int64_t>(i);
    }
    for (int64_t& g : group) g = now[static_cast<size_t>(g)];
    first = std::move(places), count = std::move(counts);
  }
  SPARKLE_TRY(y, taken(op, x, a, first));
  const auto list = [](const std::vector<int64_t>& values) {
    return HostTensor::of(DType::i64, {static_cast<int64_t>(values.size())}, values);
  };
  return Tensors{std::move(y), list(first), list(group), list(count)};
}

// One sample between four elements of a plane.
struct Tap {
  int64_t at[4] = {0, 0, 0, 0};
  float weight[4] = {0, 0, 0, 0};
};

Tap tap_at(double y, double x, int64_t height, int64_t width) {
  Tap tap;
  if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width))) return tap;
  y = std::max(y, 0.0), x = std::max(x, 0.0);
  const auto limit = [](double v, int64_t size, int64_t& low, int64_t& high) {
    low = std::min(static_cast<int64_t>(v), size - 1), high = std::min(low + 1, size - 1);
    return low == size - 1 ? 0.0 : v - static_cast<double>(low);
  };
  int64_t top = 0, bottom = 0, left = 0, right = 0;
  const double down = limit(y, height, top, bottom), across = limit(x, width, left, right);
  tap.at[0] = top * width + left, tap.at[1] = top * width + right;
  tap.at[2] = bottom * width + left, tap.at[3] = bottom * width + right;
  tap.weight[0] = static_cast<float>((1 - down) * (1 - across)), tap.weight[1] = static_cast<float>((1 - down) * across);
  tap.weight[2] = static_cast<float>(down * (1 - across)), tap.weight[3] = static_cast<float>(down * across);
  return tap;
}

Result<Tensors> roi_align(const Op& op, const HostTensor& x, const HostTensor& rois, const HostTensor& batches) {
  const auto& p = std::get<HostOp>(op.params);
  if (x.shape.size() != 4 || rois.shape.size() != 2 || rois.shape[1] != 4 || batches.shape.size() != 1 ||
      batches.shape[0] != rois.shape[0])
    return wrong(op, Reason::bad_shape,
                 "it wants x of rank 4, regions of shape Rx4 and R numbers of pictures, not " + x.shape.to_string() + ", " +
                     rois.shape.to_string() + " and " + batches.shape.to_string());
  if (!is_float(x.dtype) || !is_float(rois.dtype) || batches.dtype != DType::i64)
    return wrong(op, Reason::type_not_served, "it wants x and regions of floats and pictures as int64");
  const int64_t count = rois.shape[0], channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  SPARKLE_TRY(wide, made(op, DType::f32, {count, channels, p.height, p.width}));
  if (height == 0 || width == 0) return wrong(op, Reason::bad_shape, "its planes of " + x.shape.to_string() + " are empty");
  const HostTensor plain = x.dtype == DType::f32 ? x : from_doubles(DType::f32, x.shape, as_doubles(x));
  const std::vector<double> corners = as_doubles(rois);
  std::vector<Tap> taps;
  for (int64_t r = 0; r < count; ++r) {
    const int64_t picture = batches.data<int64_t>()[r];
    if (picture < 0 || picture >= x.shape[0])
      return wrong(
          op, Reason::bad_input,
          "region " + std::to_string(r) + " is of picture " + std::to_string(picture) + " of " + std::to_string(x.shape[0]));
    const double* corner = corners.data() + 4 * r;
    const double shift = p.half_pixel ? 0.5 : 0;
    const double x0 = corner[0] * p.scale - shift, y0 = corner[1] * p.scale - shift;
    double w = corner[2] * p.scale - shift - x0, h = corner[3] * p.scale - shift - y0;
    if (!(std::abs(x0) < 1e9 && std::abs(y0) < 1e9 && std::abs(w) < 1e6 && std::abs(h) < 1e6))
      return wrong(op, Reason::bad_input, "region " + std::to_string(r) + " is larger than a million pixels, or no number");
    if (!p.half_pixel) w = std::max(w, 1.0), h = std::max(h, 1.0);
    const double cell_h = h / static_cast<double>(p.height), cell_w = w / static_cast<double>(p.width);
    const int64_t rows = p.samples > 0 ? p.samples : static_cast<int64_t>(std::ceil(cell_h));
    const int64_t columns = p.samples > 0 ? p.samples : static_cast<int64_t>(std::ceil(cell_w));
    const int64_t samples = std::max<int64_t>(rows, 0) * std::max<int64_t>(columns, 0);
    constexpr int64_t kMostSamples = 1 << 24;
    if (samples > kMostSamples / (p.height * p.width))
      return wrong(op, Reason::size_overflow, "region " + std::to_string(r) + " would take more than 16 million samples");
    taps.clear();
    for (int64_t i = 0; i < p.height; ++i)
      for (int64_t j = 0; j < p.width; ++j)
        for (int64_t a = 0; a < rows; ++a)
          for (int64_t b = 0; b < columns; ++b)
            taps.push_back(tap_at(
                y0 + static_cast<double>(i) * cell_h + (static_cast<double>(a) + 0.5) * cell_h / static_cast<double>(rows),
                x0 + static_cast<double>(j) * cell_w + (static_cast<double>(b) + 0.5) * cell_w / static_cast<double>(columns),
                height, width));
    for (int64_t c = 0; c < channels; ++c) {
      const float* plane = plain.data<float>() + (picture * channels + c) * height * width;
      float* y = wide.data<float>() + (r * channels + c) * p.height * p.width;
      const Tap* tap = taps.data();
      for (int64_t cell = 0; cell < p.height * p.width; ++cell) {
        float sum = 0, most = -std::numeric_limits<float>::infinity();
        for (int64_t s = 0; s < samples; ++s, ++tap) {
          float products[4];
          for (int k = 0; k < 4; ++k) products[k] = tap->weight[k] * plane[tap->at[k]];
          sum += products[0] + products[1] + products[2] + products[3];
          most = std::max({most, products[0], products[1], products[2], products[3]});
        }
        y[cell] = samples == 0 ? 0 : p.average ? sum / static_cast<float>(samples) : most;
      }
    }
  }
  if (x.dtype == DType::f32) return Tensors{std::move(wide)};
  return Tensors{from_doubles(x.dtype, wide.shape, as_doubles(wide))};
}

}  // namespace

Result<HostTensor> new_tensor(DType type, const Dims& shape, const std::string& what) {
  if (!checked_bytes(type, shape))
    return Error{Reason::size_overflow, what + " would have the shape " + shape.to_string() + ", more than can be addressed."};
  return HostTensor::zeros(type, shape);  // where memory ends, guard_memory() around the run says so
}

bool makes_tensors(const HostOp& op) {
  return op.kind == HostKind::non_zero || op.kind == HostKind::compress || op.kind == HostKind::unique ||
         op.kind == HostKind::roi_align || computes_bits(op) || op.kind == HostKind::determinant;
}

Result<std::vector<HostTensor>> host_values(const Op& op, const std::vector<const HostTensor*>& inputs) {
  const auto& p = std::get<HostOp>(op.params);
  for (size_t i = 0; i < static_cast<size_t>(p.own); ++i)
    if (i >= inputs.size() || !inputs[i]) return wrong(op, Reason::bad_model, "it lacks its input " + std::to_string(i));
  switch (p.kind) {
    case HostKind::non_zero: return non_zero(op, *inputs[0]);
    case HostKind::compress: return compress(op, *inputs[0], *inputs[1]);
    case HostKind::unique: return unique(op, *inputs[0]);
    case HostKind::roi_align: return roi_align(op, *inputs[0], *inputs[1], *inputs[2]);
    case HostKind::bit_and:
    case HostKind::bit_or:
    case HostKind::bit_xor:
    case HostKind::shift_left:
    case HostKind::shift_right:
    case HostKind::bit_cast: return host_bits(op, inputs);
    case HostKind::determinant: return host_determinants(op, *inputs[0]);
    default: return wrong(op, Reason::operator_not_served, "it makes no tensors by itself");
  }
}

}  // namespace sparkle
