#include "backends/vulkan/kernels/products/fft_tables.h"

#include <complex>
#include <cstring>

#include "families/values/element.h"

namespace sparkle::vulkan {
namespace {

using Complex = std::complex<double>;

// Where the passes leave frequency k: first all k with the same rest, then by quotient.
std::vector<int32_t> offsets_of(int64_t points) {
  std::vector<int32_t> offsets(static_cast<size_t>(points), 0);
  const std::vector<int> radices = fft_radices(points, kFftGpuRegisters);
  for (int64_t k = 0; k < points; ++k) {
    int64_t rest = k, step = points, place = 0;
    for (const int radix : radices) {
      step /= radix;
      place += rest % radix * step;
      rest /= radix;
    }
    offsets[static_cast<size_t>(k)] = static_cast<int32_t>(place);
  }
  return offsets;
}

// The shaders' passes, on numbers `stride` apart.
class Line {
 public:
  explicit Line(int64_t points) : points_(points), radices_(fft_radices(points, kFftGpuRegisters)) {
    for (int64_t j = 0; j < points; ++j) roots_.push_back(fft_root(j, points));
  }
  void run(Complex* x, int64_t stride) const {
    int64_t block = points_;
    for (const int radix : radices_) {
      const int64_t step = block / radix, scale = points_ / block;
      for (int64_t from = 0; from < points_; from += block)
        for (int64_t k = 0; k < step; ++k) {
          Complex v[8], sums[8];
          for (int q = 0; q < radix; ++q) v[q] = x[(from + k + q * step) * stride];
          for (int s = 0; s < radix; ++s) {
            sums[s] = v[0];
            for (int q = 1; q < radix; ++q) sums[s] += v[q] * at(int64_t{s} * q % radix * (points_ / radix));
          }
          for (int s = 0; s < radix; ++s) x[(from + k + s * step) * stride] = sums[s] * at(s * k * scale);
        }
      block = step;
    }
  }

 private:
  Complex at(int64_t j) const { return roots_[static_cast<size_t>(j)]; }
  int64_t points_;
  std::vector<int> radices_;
  std::vector<Complex> roots_;
};

void fill(int32_t (&to)[4], const FeatureMap& m) {
  const int64_t from[] = {m.image_stride, m.channel_stride, m.row_stride, m.pixel_stride};
  for (int i = 0; i < 4; ++i) to[i] = static_cast<int32_t>(from[i]);
}

}  // namespace

Result<FftCut> fft_cut(const Stage& stage, const FftTileSchedule& s) {
  const auto& params = get<FftParams>(stage.params);
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  FftCut c;
  c.whole = s.variant == "whole";
  if (x.d != 1 || y.d != 1 || params.window.filter[0] != 1)
    return Error{Reason::filter_not_served, "The fft kernels for Vulkan support one or two spatial dimensions, not three."};
  c.groups = std::max<int64_t>(1, params.groups);
  if (x.c % c.groups != 0 || y.c % c.groups != 0 || (c.whole && (c.groups != x.c || x.c != y.c)))
    return Error{Reason::groups_not_served, c.whole ? "The fft variant 'whole' for Vulkan needs a filter for each channel."
                                                    : "The fft kernels for Vulkan need groups of equal size."};
  if (c.whole) c.groups = 1;
  c.depth = x.c / c.groups, c.filters = y.c / c.groups;
  c.height = fft_axis(stage, 1), c.width = fft_axis(stage, 2);
  const auto supported = [](int64_t points) {
    return points >= 1 && is_fft_size(points) && fft_radices(points, kFftGpuRegisters).size() <= kMostFftPasses;
  };
  const bool sizes = supported(s.rows) && supported(s.columns) && s.columns > 1 && s.pairs > 0 && s.threads > 0 &&
                     fft_shared_bytes(s) <= int64_t{1} << 20;
  if (!sizes || (stage.outputs[0].elements() > 0 && (!cut(c.height, s.rows) || !cut(c.width, s.columns))))
    return Error{Reason::filter_not_served, "The fft kernels for Vulkan cannot cut this convolution into transforms of " +
                                                std::to_string(s.rows) + " by " + std::to_string(s.columns) +
                                                " points; sizes are products of 2, 3 and 5 that the filter fits."};
  c.tiles = y.n * c.height.tiles * c.width.tiles;
  c.rows = s.rows, c.columns = s.columns, c.frequencies = fft_frequencies(s);
  return c;
}

FftRecord fft_record(const Stage& stage, const FftCut& c) {
  const auto& p = get<FftParams>(stage.params);
  const Epilogue& e = p.epilogue;
  FftRecord r{};
  fill(r.x_strides, feature_map(stage.inputs[0]));
  fill(r.y_strides, feature_map(stage.outputs[0]));
  fill(r.w_strides, feature_map(stage.inputs[1]));
  size_t next = 2;
  const auto stride_of = [](const TensorDesc& d) {
    return d.layout.strides.empty() ? 0 : static_cast<int32_t>(d.layout.strides.back());
  };
  if (e.scale) r.vector_strides[0] = stride_of(stage.inputs[next++]);
  if (e.bias) r.vector_strides[1] = stride_of(stage.inputs[next++]);
  for (int i = 0; i < e.residuals_before + e.residuals_after; ++i) fill(r.r_strides[i], feature_map(stage.inputs[next++]));
  const FftAxis* axes[] = {&c.height, &c.width};
  for (int i = 0; i < 2; ++i) {
    const FftAxis& a = *axes[i];
    const auto set = [i](int32_t(&to)[2], int64_t value) { to[i] = static_cast<int32_t>(value); };
    set(r.x_size, a.in), set(r.y_size, a.out), set(r.stride, a.stride), set(r.dilation, a.dilation);
    set(r.first, a.first), set(r.reach, a.filter), set(r.pad, a.pad), set(r.tile, a.tile), set(r.span, a.span());
  }
  r.tiles_w = divisor(c.width.tiles), r.tiles_h = divisor(c.height.tiles), r.tiles = divisor(c.tiles);
  r.channels = static_cast<int32_t>(c.depth), r.filters = static_cast<int32_t>(c.filters);
  r.alpha = static_cast<float>(e.alpha), r.a = static_cast<float>(e.a), r.b = static_cast<float>(e.b);
  return r;
}

std::vector<uint32_t> fft_passes(int64_t points) {
  std::vector<uint32_t> passes(kMostFftPasses, 1);
  size_t i = 0;
  for (const int radix : fft_radices(points, kFftGpuRegisters)) passes[i++] = static_cast<uint32_t>(radix);
  return passes;
}

std::vector<float> fft_roots(const FftCut& c) {
  std::vector<float> roots;
  for (const int64_t points : {c.columns, c.rows})
    for (int64_t j = 0; j < points; ++j) {
      const Complex w = fft_root(j, points);
      roots.push_back(static_cast<float>(w.real())), roots.push_back(static_cast<float>(w.imag()));
    }
  return roots;
}

std::vector<int32_t> fft_offsets(const FftCut& c) {
  const std::vector<int32_t> columns = offsets_of(c.columns), rows = offsets_of(c.rows);
  const int64_t half = c.columns / 2 + 1;
  std::vector<int32_t> offsets(static_cast<size_t>(2 * half + c.rows));
  for (int64_t k = 0; k < half; ++k) {
    offsets[static_cast<size_t>(k)] = columns[static_cast<size_t>(k)];
    offsets[static_cast<size_t>(half + k)] = columns[static_cast<size_t>((c.columns - k) % c.columns)];
  }
  for (int64_t k = 0; k < c.rows; ++k)
    offsets[static_cast<size_t>(2 * half + rows[static_cast<size_t>(k)])] = rows[static_cast<size_t>((c.rows - k) % c.rows)];
  return offsets;
}

void FftPacked::operator()(const std::byte* from, std::byte* to, Executor& executor) const {
  std::memset(to, 0, static_cast<size_t>(floats) * 4);
  const int64_t step = size_of(given);
  auto* out = reinterpret_cast<float*>(to);
  const Line wide(cut.columns), high(cut.rows);
  const std::vector<int32_t> offsets = fft_offsets(cut);
  const int64_t half = cut.columns / 2 + 1, rows = cut.rows, columns = cut.columns;
  const int64_t channels = cut.whole ? 1 : cut.depth, tasks = cut.groups * channels;
  // The parting of planes doubles here and again of the inputs, and no transform divides.
  const double factor = 0.25 / static_cast<double>(rows * columns);
  const auto kept = [](const FftAxis& axis, int64_t tap, int64_t& at) {
    at = tap * axis.dilation - axis.first;
    return at >= 0 && at < axis.filter;
  };
  const auto pairs_of = [&](int64_t group, int64_t channel, int64_t first, int64_t last, std::vector<Complex>& plane) {
    for (int64_t p = first; p < last; ++p) {
      std::fill(plane.begin(), plane.end(), Complex());
      for (int64_t l = 0; l < 2 && 2 * p + l < cut.filters; ++l) {
        const std::byte* taps =
            from + step * (offset + (group * cut.filters + 2 * p + l) * w.image_stride + channel * w.channel_stride);
        for (int64_t r = 0, row = 0; r < cut.height.taps; ++r) {
          if (!kept(cut.height, r, row)) continue;
          for (int64_t s = 0, column = 0; s < cut.width.taps; ++s) {
            if (!kept(cut.width, s, column)) continue;
            const double tap = load_element(given, taps + step * (r * w.row_stride + s * w.pixel_stride));
            plane[static_cast<size_t>(row % rows * columns + column % columns)] += l == 0 ? Complex(tap, 0) : Complex(0, tap);
          }
        }
      }
      for (int64_t row = 0; row < rows; ++row) wide.run(plane.data() + row * columns, 1);
      if (rows > 1)
        for (int64_t column = 0; column < columns; ++column) high.run(plane.data() + column, columns);
      float* place = out + p * pair + (group * outers + channel) * outer;
      for (int64_t k = 0; k < half; ++k)
        for (int64_t row = 0; row < rows; ++row, place += frequency) {
          const Complex z = plane[static_cast<size_t>(row * columns + offsets[static_cast<size_t>(k)])];
          const Complex m = plane[static_cast<size_t>(offsets[static_cast<size_t>(2 * half + row)] * columns +
                                                      offsets[static_cast<size_t>(half + k)])];
          // Sums of products go along with the filter, not against it: the conjugates of both planes' numbers.
          place[0] = static_cast<float>(factor * (z.real() + m.real())),
          place[1] = static_cast<float>(factor * (m.imag() - z.imag()));
          place[2] = static_cast<float>(factor * (z.imag() + m.imag())),
          place[3] = static_cast<float>(factor * (z.real() - m.real()));
        }
    }
  };
  const int64_t pieces = std::min<int64_t>(cut.pairs_out(), 32);  // a single channel has many filters
  parallel_for(executor, static_cast<int>(tasks * pieces), [&](int task, int) {
    std::vector<Complex> plane(static_cast<size_t>(rows * columns));
    const int64_t piece = task % pieces, at = task / pieces;
    pairs_of(at / channels, at % channels, piece * cut.pairs_out() / pieces, (piece + 1) * cut.pairs_out() / pieces, plane);
  });
}

}  // namespace sparkle::vulkan
