#include "backends/cpu/fft/fft_geometry.h"

#include <algorithm>

#include "backends/cpu/fft/fft_filters.h"
#include "base/round_up.h"
#include "families/fft/fft.h"
#include "families/loops/grain.h"

namespace sparkle::cpu {

int64_t FftGeometry::weights_point() const {
  if (tiled) return 2 * filters * depth;
  return 2 * lanes * (single ? 1 : depth * out_slots);
}

Result<FftGeometry> fft_geometry(const Stage& stage, const FftSchedule& schedule, const FftKernels& kernels) {
  const auto& params = get<FftParams>(stage.params);
  FftGeometry g;
  g.x = feature_map(stage.inputs[0]), g.w = feature_map(stage.inputs[1]), g.y = feature_map(stage.outputs[0]);
  if (g.x.d != 1 || params.window.filter[0] != 1)
    return Error{Reason::filter_not_served, "The CPU's fft kernels support one or two spatial dimensions, not three."};
  if ((g.x.c > 1 && g.x.channel_stride != 1) || (g.y.c > 1 && g.y.channel_stride != 1))
    return Error{Reason::layout_not_served, "The CPU's fft kernels read and write channels that lie next to each other."};
  g.groups = std::max<int64_t>(1, params.groups);
  if (g.x.c % g.groups != 0 || g.y.c % g.groups != 0)
    return Error{Reason::groups_not_served, "The CPU's fft kernels need groups of equal size."};
  g.depth = g.x.c / g.groups, g.filters = g.y.c / g.groups;
  g.height = fft_axis(stage, 1), g.width = fft_axis(stage, 2);
  if (g.y.n * g.y.pixels() * g.y.c == 0) return g;
  const bool sizes = schedule.rows >= 1 && schedule.rows <= kMostFftPoints && schedule.columns >= 1 &&
                     schedule.columns <= kMostFftPoints && is_fft_size(schedule.rows) && is_fft_size(schedule.columns);
  if (!sizes || !cut(g.height, schedule.rows) || !cut(g.width, schedule.columns))
    return Error{Reason::filter_not_served, "The CPU's fft kernels cannot cut this convolution into transforms of " +
                                                std::to_string(schedule.rows) + " by " + std::to_string(schedule.columns) +
                                                " points; sizes are products of 2, 3 and 5 that the filter fits."};
  g.flat = schedule.rows == 1;
  g.tiled = schedule.variant == "tiles";
  g.single = !g.tiled && g.depth == 1 && g.filters == 1;
  g.lanes = kernels.lanes;
  g.in_slots = g.tiled ? g.depth : divided(g.depth, g.lanes);
  g.out_slots = g.tiled ? g.filters : divided(g.filters, g.lanes);
  g.parts = g.single ? divided(g.x.c, g.lanes) : g.groups;
  g.tiles = g.y.n * g.height.tiles * g.width.tiles;
  g.slot_tiles = (g.tiled ? g.lanes : 1) * (g.flat ? 2 : 1);
  g.slots = divided(g.tiles, g.slot_tiles);
  g.strip = g.tiled || g.single ? 1 : std::clamp<int64_t>(schedule.strip, 1, std::min(g.slots, kMostStrip));
  g.strips = divided(g.slots, g.strip);
  g.row = fft_plan(schedule.columns, kernels.registers);
  g.line = g.flat ? g.row : fft_plan(schedule.rows, kernels.registers);
  g.lines = g.flat ? 1 : schedule.columns / 2 + 1;
  g.line_points = g.line.points;
  // A point more than they need: at powers of two a row's points would all fall into one set of the L1.
  g.line_stride = (g.line_points + 1) * 2 * g.lanes;
  g.plane_stride = g.lines * g.line_stride;
  const int64_t planes = g.strip * (g.single ? 1 : g.in_slots + g.out_slots);
  g.scratch_floats = planes * g.plane_stride + 2 * g.lanes * g.row.points;
  g.packed_floats = g.parts * g.lines * g.line_points * g.weights_point();
  return g;
}

void pack_fft_filters(const FftGeometry& g, const float* weights, float* to, Executor& executor) {
  if (g.packed_floats == 0) return;
  using Complex = std::complex<double>;
  const DoubleTransform along_width(g.row.points), along_height(g.flat ? 1 : g.line.points);
  const int64_t rows = g.flat ? 1 : g.line_points, columns = g.row.points, points = g.line_points;
  std::fill_n(to, g.packed_floats, 0.0f);
  // The parting of rows doubles, and no transform divides.
  const double factor = (g.flat ? 1.0 : 0.5) / static_cast<double>(rows * columns);
  // The points of each filter pass through two transforms.
  const int64_t total = g.y.c, moved = 2 * total * g.depth * rows * columns * static_cast<int64_t>(sizeof(Complex));
  const int64_t tasks = moving_tasks(moved, total, executor.width());
  for_each_range(executor, total, tasks, [&](int64_t begin, int64_t end) {
    std::vector<Complex> taps(static_cast<size_t>(rows * columns)), wide(taps.size()), line(static_cast<size_t>(rows));
    for (int64_t k = begin; k < end; ++k)
      for (int64_t c = 0; c < g.depth; ++c) {
        std::fill(taps.begin(), taps.end(), Complex());
        const auto kept = [](const FftAxis& axis, int64_t tap, int64_t& at) {
          at = tap * axis.dilation - axis.first;
          return at >= 0 && at < axis.filter;
        };
        for (int64_t r = 0, row = 0; r < g.height.taps; ++r) {
          if (!kept(g.height, r, row)) continue;
          for (int64_t s = 0, column = 0; s < g.width.taps; ++s)
            if (kept(g.width, s, column))
              taps[static_cast<size_t>(row % rows * columns + column % columns)] += static_cast<double>(
                  weights[k * g.w.image_stride + c * g.w.channel_stride + r * g.w.row_stride + s * g.w.pixel_stride]);
        }
        for (int64_t row = 0; row < rows; ++row) along_width.run(taps.data() + row * columns, 1, wide.data() + row * columns);
        // Where a weight of this channel and filter lies among those of a point.
        const int64_t group = k / g.filters, filter = k % g.filters;
        int64_t part = group, at = 0, imaginary = g.lanes;
        if (g.tiled) {
          at = 2 * (filter * g.depth + c), imaginary = 1;
        } else if (g.single) {
          part = k / g.lanes, at = k % g.lanes;
        } else {
          at = (filter / g.lanes * g.depth + c) * 2 * g.lanes + filter % g.lanes;
        }
        for (int64_t l = 0; l < g.lines; ++l) {
          const Complex* values = wide.data();
          if (!g.flat) {
            along_height.run(wide.data() + l, columns, line.data());
            values = line.data();
          }
          for (int64_t p = 0; p < points; ++p) {
            // A convolution of machine learning is a correlation: the conjugate.
            const Complex value = std::conj(values[p]) * factor;
            float* place = to + g.packed_at(part, l, g.line.place[static_cast<size_t>(p)]) + at;
            place[0] = static_cast<float>(value.real()), place[imaginary] = static_cast<float>(value.imag());
          }
        }
      }
  });
}

}  // namespace sparkle::cpu
