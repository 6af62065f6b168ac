#include "measure/checks/exact_sums.h"

#include <algorithm>
#include <cstring>

#include "families/gemm/gemm_shape.h"
#include "families/loops/walk.h"
#include "families/windows/window.h"

namespace sparkle {
namespace {

constexpr int64_t kVector = 8;     // rows of operands end in whole vectors of so many
constexpr int64_t kTogether = 32;  // rows that share what is read of the filters
constexpr int kSide = 4;           // of a block of sums

// Sums of kSide rows with kSide columns, each `padded` long.
void block(const int16_t* a, const int16_t* b, int64_t padded, int32_t (&sums)[kSide][kSide]) {
  for (int i = 0; i < kSide; i += 2) {
    const int16_t *a0 = a + i * padded, *a1 = a0 + padded;
    for (int j = 0; j < kSide; j += 2) {
      const int16_t *b0 = b + j * padded, *b1 = b0 + padded;
      int32_t s00 = 0, s01 = 0, s10 = 0, s11 = 0;
      for (int64_t d = 0; d < padded; ++d) {
        s00 += a0[d] * b0[d], s01 += a0[d] * b1[d];
        s10 += a1[d] * b0[d], s11 += a1[d] * b1[d];
      }
      sums[i][j] = s00, sums[i][j + 1] = s01, sums[i + 1][j] = s10, sums[i + 1][j + 1] = s11;
    }
  }
}

int32_t one_sum(const int16_t* a, const int16_t* b, int64_t padded) {
  int32_t sum = 0;
  for (int64_t d = 0; d < padded; ++d) sum += a[d] * b[d];
  return sum;
}

int64_t whole_vectors(int64_t depth) { return (depth + kVector - 1) / kVector * kVector; }
int64_t whole_blocks(int64_t columns) { return (columns + kSide - 1) / kSide * kSide; }

}  // namespace

ExactSums::ExactSums(const AnchorCall& call, const std::vector<int16_t>& x, const std::vector<int16_t>& w) : call_(call) {
  if (call.problem.kind == ProblemKind::matmul) pack_matrices(x, w);
  else pack_window(x, w);
}

void ExactSums::pack_window(const std::vector<int16_t>& x, const std::vector<int16_t>& w) {
  const Problem& p = call_.problem;
  const FeatureMap from = feature_map(call_.inputs[0]), filters = feature_map(call_.inputs[1]);
  const bool transposed = p.kind == ProblemKind::conv_transpose;
  groups_ = p.groups, columns_ = p.k;
  rows_ = p.n * p.out[0] * p.out[1] * p.out[2];
  const int64_t group_c = p.c / groups_, group_k = p.k / groups_, pixels = p.in[0] * p.in[1] * p.in[2];
  depth_ = group_c * p.window.taps(), padded_ = whole_vectors(depth_);
  x_.resize(static_cast<size_t>(p.n * p.c * pixels));
  size_t to = 0;
  const int64_t x_offset = call_.inputs[0].layout.offset, w_offset = call_.inputs[1].layout.offset;
  for (int64_t g = 0; g < groups_; ++g)
    for (int64_t n = 0; n < p.n; ++n)
      for (int64_t d = 0; d < p.in[0]; ++d)
        for (int64_t h = 0; h < p.in[1]; ++h)
          for (int64_t v = 0; v < p.in[2]; ++v)
            for (int64_t c = g * group_c; c < (g + 1) * group_c; ++c)
              x_[to++] = x[static_cast<size_t>(x_offset + n * from.image_stride + d * from.plane_stride + h * from.row_stride +
                                               v * from.pixel_stride + c * from.channel_stride)];
  w_.assign(static_cast<size_t>(groups_ * whole_blocks(group_k) * padded_), 0);
  for (int64_t g = 0; g < groups_; ++g)
    for (int64_t k = 0; k < group_k; ++k) {
      int16_t* row = w_.data() + (g * whole_blocks(group_k) + k) * padded_;
      for (int64_t t0 = 0; t0 < p.window.filter[0]; ++t0)
        for (int64_t t1 = 0; t1 < p.window.filter[1]; ++t1)
          for (int64_t t2 = 0; t2 < p.window.filter[2]; ++t2)
            for (int64_t c = 0; c < group_c; ++c) {
              const int64_t first = transposed ? g * group_c + c : g * group_k + k, second = transposed ? k : c;
              *row++ = w[static_cast<size_t>(w_offset + first * filters.image_stride + second * filters.channel_stride +
                                             t0 * filters.plane_stride + t1 * filters.row_stride + t2 * filters.pixel_stride)];
            }
    }
}

void ExactSums::pack_matrices(const std::vector<int16_t>& x, const std::vector<int16_t>& w) {
  const TensorDesc &a = call_.inputs[0], &b = call_.inputs[1], &y = call_.output;
  const int rank = y.shape.size();
  columns_ = y.shape[rank - 1], rows_ = y.shape.product() / std::max<int64_t>(columns_, 1);
  depth_ = a.shape.back(), padded_ = whole_vectors(depth_);
  const int64_t a_k = stride_from_end(a, 0), b_k = stride_from_end(b, 1), b_n = stride_from_end(b, 0);
  // The place of an index of y's first axes in an operand: the last `mine` axes are its own.
  const auto place = [&](const TensorDesc& desc, const Dims& at, int mine) {
    int64_t sum = desc.layout.offset;
    for (int axis = 0; axis + mine < rank; ++axis) sum += at[axis] * stride_from_end(desc, rank - 1 - axis);
    return sum;
  };
  Dims outer = y.shape, batch = y.shape;
  outer[rank - 1] = 1, batch[rank - 1] = batch[rank - 2] = 1;
  x_.assign(static_cast<size_t>(rows_ * depth_), 0);
  int16_t* to = x_.data();
  for_each_index(outer, [&](const Dims& at) {
    const int64_t from = place(a, at, 1);
    for (int64_t k = 0; k < depth_; ++k) *to++ = x[static_cast<size_t>(from + k * a_k)];
  });
  bool shared = true;
  for (int axis = 0; axis < rank - 2; ++axis) shared &= y.shape[axis] == 1 || stride_from_end(b, rank - 1 - axis) == 0;
  matrices_ = shared ? 1 : batch.product();
  if (shared) batch = Dims::filled(rank, 1);
  w_.assign(static_cast<size_t>(matrices_ * whole_blocks(columns_) * padded_), 0);
  int16_t* matrix = w_.data();
  for_each_index(batch, [&](const Dims& at) {
    const int64_t from = place(b, at, 2);
    for (int64_t k = 0; k < depth_; ++k)
      for (int64_t n = 0; n < columns_; ++n) matrix[n * padded_ + k] = w[static_cast<size_t>(from + k * b_k + n * b_n)];
    matrix += whole_blocks(columns_) * padded_;
  });
}

void ExactSums::gather_window(int64_t row, int64_t group, int16_t* to) const {
  const Problem& p = call_.problem;
  const Window& f = p.window;
  const int64_t group_c = p.c / groups_, pixels = p.in[0] * p.in[1] * p.in[2];
  const bool transposed = p.kind == ProblemKind::conv_transpose;
  const int64_t q = row % p.out[2], r = row / p.out[2] % p.out[1], z = row / p.out[2] / p.out[1] % p.out[0];
  const int64_t image = row / p.out[2] / p.out[1] / p.out[0];
  const int16_t* x = x_.data() + (group * p.n + image) * pixels * group_c;
  // The input's place along one axis; -1 outside, or where a transposed filter has nothing.
  const auto at = [&](size_t i, int64_t o, int64_t tap) -> int64_t {
    int64_t place = o * f.stride[i] - f.pad_begin[i] + tap * f.dilation[i];
    if (transposed) {
      place = o + f.pad_begin[i] - tap * f.dilation[i];
      if (place < 0 || place % f.stride[i] != 0) return -1;
      place /= f.stride[i];
    }
    return place < p.in[i] ? place : -1;
  };
  for (int64_t t0 = 0; t0 < f.filter[0]; ++t0)
    for (int64_t t1 = 0; t1 < f.filter[1]; ++t1) {
      const int64_t d = at(0, z, t0), h = at(1, r, t1), length = f.filter[2] * group_c;
      const int16_t* line = x + (d * p.in[1] + h) * p.in[2] * group_c;
      const int64_t first = q * f.stride[2] - f.pad_begin[2];
      if (d < 0 || h < 0) {
        std::fill_n(to, length, int16_t{0});
      } else if (!transposed && f.dilation[2] == 1) {
        const int64_t begin = std::clamp<int64_t>(-first, 0, f.filter[2]);
        const int64_t end = std::clamp<int64_t>(p.in[2] - first, begin, f.filter[2]);
        std::fill_n(to, begin * group_c, int16_t{0});
        std::copy_n(line + (first + begin) * group_c, (end - begin) * group_c, to + begin * group_c);
        std::fill_n(to + end * group_c, (f.filter[2] - end) * group_c, int16_t{0});
      } else {
        for (int64_t t2 = 0; t2 < f.filter[2]; ++t2) {
          const int64_t v = at(2, q, t2);
          if (v < 0) std::fill_n(to + t2 * group_c, group_c, int16_t{0});
          else std::copy_n(line + v * group_c, group_c, to + t2 * group_c);
        }
      }
      to += length;
    }
}

void ExactSums::gather(int64_t row, int64_t group, int16_t* to) const {
  if (call_.problem.kind == ProblemKind::matmul) std::copy_n(x_.data() + row * depth_, depth_, to);
  else gather_window(row, group, to);
  std::fill(to + depth_, to + padded_, int16_t{0});
}

void ExactSums::compute(std::span<const int64_t> rows, int32_t* sums) const {
  std::vector<int16_t> a(static_cast<size_t>(kTogether * padded_), 0);
  const int64_t group_k = columns_ / groups_, blocks = whole_blocks(group_k);
  const int64_t rows_of_matrix = rows_ / matrices_;
  for (size_t begin = 0; begin < rows.size();) {
    // Rows together have one matrix.
    const int64_t matrix = rows[begin] / rows_of_matrix;
    size_t count = 0;
    while (count < kTogether && begin + count < rows.size() && rows[begin + count] / rows_of_matrix == matrix) ++count;
    for (int64_t g = 0; g < groups_; ++g) {
      for (size_t i = 0; i < count; ++i) gather(rows[begin + i], g, a.data() + static_cast<int64_t>(i) * padded_);
      const int16_t* b = w_.data() + (g + matrix) * blocks * padded_;
      if (group_k == 1) {
        for (size_t i = 0; i < count; ++i)
          sums[static_cast<int64_t>(begin + i) * columns_ + g] =
              one_sum(a.data() + static_cast<int64_t>(i) * padded_, b, padded_);
        continue;
      }
      for (int64_t k = 0; k < group_k; k += kSide)
        for (size_t i = 0; i < count; i += kSide) {
          int32_t of[kSide][kSide];
          block(a.data() + static_cast<int64_t>(i) * padded_, b + k * padded_, padded_, of);
          for (size_t r = 0; r < std::min<size_t>(kSide, count - i); ++r)
            for (int64_t j = 0; j < std::min<int64_t>(kSide, group_k - k); ++j)
              sums[static_cast<int64_t>(begin + i + r) * columns_ + g * group_k + k + j] = of[r][j];
        }
    }
    begin += count;
  }
}

}  // namespace sparkle
