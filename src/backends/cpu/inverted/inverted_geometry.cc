#include "backends/cpu/inverted/inverted_geometry.h"

#include <algorithm>

#include "backends/cpu/inverted/inverted_rows.h"
#include "base/round_up.h"
#include "families/inverted/inverted.h"

namespace sparkle::cpu {
namespace {}  // namespace

Result<InvertedGeometry> inverted_geometry(const Stage& stage, const InvertedSchedule& schedule, int64_t lanes) {
  const auto& p = get<InvertedParams>(stage.params);
  const InvertedOperands at = inverted_operands(p);
  InvertedGeometry g;
  g.x = feature_map(stage.inputs[0]), g.y = feature_map(stage.outputs[0]);
  const bool residual = at.residual < 0 || channels_innermost(stage.inputs[static_cast<size_t>(at.residual)]);
  if (!channels_innermost(g.x) || !channels_innermost(g.y) || !residual)
    return Error{Reason::layout_not_served, "The CPU's inverted kernels read and write channels that lie next to each other."};
  const Window& w = p.window;
  const bool size = w.filter == Triple{1, 3, 3} || w.filter == Triple{1, 5, 5};
  if (!size || w.dilation != Triple{1, 1, 1} || w.stride[0] != 1 || w.stride[1] != w.stride[2] || w.stride[1] < 1 ||
      w.stride[1] > 2 || w.pad_begin[1] < 0 || w.pad_begin[2] < 0)
    return Error{Reason::filter_not_served,
                 "The CPU's inverted kernels support depthwise filters of 3x3 and 5x5 with strides of "
                 "1 and 2, without dilation or negative padding."};
  g.filter = w.filter[1], g.stride = w.stride[1], g.pad_h = w.pad_begin[1], g.pad_w = w.pad_begin[2];
  g.wide = stage.inputs[static_cast<size_t>(at.deep_weights)].shape[0];
  g.padded_wide = rounded_up(g.wide, lanes), g.padded_k = rounded_up(g.y.c, lanes);
  g.vectors = g.padded_wide / lanes;
  g.tasks = std::clamp<int64_t>(schedule.tasks, 1, std::max<int64_t>(1, g.y.h));
  g.rows = std::clamp<int64_t>(schedule.rows, 1, std::max<int64_t>(1, (g.y.h + g.tasks - 1) / g.tasks));
  g.slots = (g.rows - 1) * g.stride + g.filter;
  const int64_t columns = std::max<int64_t>(0, (g.y.w - 1) * g.stride + g.filter);
  g.plane = columns * lanes;
  g.slot_stride = g.vectors * g.plane;
  g.inside_at = std::min(g.pad_w, columns) * lanes;
  g.inside = std::clamp<int64_t>(columns - g.pad_w, 0, g.x.w);
  // A power of two would put all pixels of a register tile into a few sets of the L1.
  g.pairs = schedule.variant == "pairs6x4";
  g.deep_stride = g.padded_wide * (g.pairs ? 2 : 1);
  if (g.deep_stride % 256 == 0) g.deep_stride += lanes;
  return g;
}

void pack_panels(const FeatureMap& w, const float* from, int64_t filters, int64_t channels, int64_t width, int64_t lanes,
                 float* to) {
  for (int64_t first = 0; first < filters; first += width) {
    const int64_t count = std::min(width, filters - first), padded = rounded_up(count, lanes);
    for (int64_t c = 0; c < channels; ++c, to += padded) {
      for (int64_t j = 0; j < count; ++j) to[j] = from[(first + j) * w.image_stride + c * w.channel_stride];
      std::fill(to + count, to + padded, 0.0f);
    }
  }
}

void pack_pairs(const FeatureMap& w, const float* from, int64_t filters, int64_t channels, int64_t lanes, float* to) {
  const int64_t full = filters / lanes * lanes;
  for (int64_t i = 0; i < rounded_up(channels, lanes); ++i, to += full + lanes) {
    const int64_t c = i / lanes * lanes + channel_in_pairs(i % lanes, lanes);
    for (int64_t j = 0; j < full + lanes; ++j) {
      const int64_t filter = j < full ? j : full + (j - full) / 2;
      to[j] = c < channels && filter < filters ? from[filter * w.image_stride + c * w.channel_stride] : 0.0f;
    }
  }
}

void pack_taps(const FeatureMap& w, const float* from, int64_t channels, int64_t lanes, float* to) {
  for (int64_t first = 0; first < channels; first += lanes) {
    const int64_t count = std::min(lanes, channels - first);
    for (int64_t r = 0; r < w.h; ++r)
      for (int64_t s = 0; s < w.w; ++s, to += lanes) {
        for (int64_t j = 0; j < count; ++j) to[j] = from[(first + j) * w.image_stride + r * w.row_stride + s * w.pixel_stride];
        std::fill(to + count, to + lanes, 0.0f);
      }
  }
}

}  // namespace sparkle::cpu
