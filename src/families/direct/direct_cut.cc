#include "families/direct/direct_cut.h"

#include <algorithm>

#include "base/round_up.h"
#include "families/direct/direct_family.h"

namespace sparkle {

DirectCut direct_cut(const Stage& stage, const DirectSchedule& s, int64_t lanes) {
  const auto& p = get<DirectParams>(stage.params);
  const Window& w = p.window;
  DirectCut c;
  c.x = feature_map(stage.inputs[0]), c.y = feature_map(stage.outputs[0]);
  c.lanes = lanes;
  c.pixels = s.variant == "pixels", c.slides = s.variant == "slide";
  c.planes = c.pixels || (c.x.c > 1 && c.x.channel_stride != 1);
  c.depth = c.x.c / p.groups, c.maps = c.y.c / p.groups, c.bundle = direct_bundle(p.groups, c.depth);
  c.columns = std::clamp<int64_t>(s.columns, 1, std::max<int64_t>(1, c.y.w));
  c.rows = s.rows > 0 ? s.rows : std::max<int64_t>(1, c.y.h);
  c.ring = w.span(1, 1);
  c.reading = direct_reading(stage, s.variant, c.columns, lanes);
  const auto follow = [](const FeatureMap& m) { return m.row_stride == m.w * m.pixel_stride; };
  const bool same = w.is_pointwise() && c.x.h == c.y.h && c.x.w == c.y.w;  // no outputs beyond the image
  c.joins = c.in_place() && !c.pixels && !c.slides && same && c.columns == c.y.w && follow(c.x) && follow(c.y);
  c.row = direct_row_of(s, stage, c.columns, lanes);
  c.channel = c.in_place() ? c.x.channel_stride : c.row.channel;
  c.column = c.in_place() ? c.x.pixel_stride : c.row.column;
  return c;
}

DirectRowCut direct_row_cut(const DirectCut& cut, int64_t width, int64_t most) {
  const int64_t along = divided(width, cut.unit()), tiles = divided(along, std::max<int64_t>(1, most));
  const int64_t length = divided(along, std::max<int64_t>(1, tiles));
  return {length, along - tiles * (length - 1), tiles};
}

DirectBlocks direct_blocks(const Stage& stage, const DirectSchedule& s, const DirectCut& cut, bool many) {
  const auto& p = get<DirectParams>(stage.params);
  const int64_t lanes = cut.pixels ? 1 : cut.lanes, vectors = divided(cut.maps, lanes), taps = p.window.filter[2];
  const int64_t widest = cut.slides ? 1 : cut.pixels || many ? 4 : 2, most = std::clamp<int64_t>(s.maps, 1, widest);
  const int64_t n = divided(vectors, most), last = cut.y.w - (divided(cut.y.w, cut.columns) - 1) * cut.columns;
  DirectBlocks all;
  for (int64_t i = 0; i < p.groups * n; ++i) {
    DirectBlock block;
    const int64_t begin = i % n * vectors / n, end = (i % n + 1) * vectors / n;
    block.group = i / n, block.vectors = end - begin;
    block.first = block.group * cut.maps + begin * lanes, block.maps = std::min(cut.maps, end * lanes) - begin * lanes;
    block.weights = all.weight_floats, block.row_floats = taps * cut.depth * block.vectors * lanes;
    all.weight_floats += p.window.filter[1] * block.row_floats;
    block.most = most_direct_pixels(s.variant, block.vectors, taps, many);
    if (block.vectors == most) block.most = std::min<int64_t>(block.most, std::max(1, s.pixels));
    block.tiles[0] = direct_row_cut(cut, cut.columns, block.most);
    block.tiles[1] = direct_row_cut(cut, last, block.most);
    all.blocks.push_back(block);
  }
  return all;
}

}  // namespace sparkle
