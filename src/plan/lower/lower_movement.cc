// Concat, Pad, Gather, Tile, DepthToSpace, SpaceToDepth, Cast: elements move.
#include "families/copy/copy.h"
#include "families/gather/gather.h"
#include "families/pad/pad.h"
#include "families/pointwise/cast.h"
#include "plan/lower/lower.h"
#include "plan/lower/view.h"

namespace sparkle {
namespace {

// Lets the producers of a part write straight into the whole: every view of the part's buffer is moved over, or none.
bool move_in(Draft& d, int part, int whole, int axis, int64_t begin) {
  const TensorDesc desc = d.desc(part), target = d.desc(whole);
  const int from = d.value(part).buffer;
  const DraftBuffer& buffer = d.buffers[static_cast<size_t>(from)];
  if (buffer.kind != PlaceKind::arena || buffer.fixed || buffer.elements != desc.elements() || desc.layout.offset != 0)
    return false;
  Layout wanted = dense(desc.shape, target.layout.order);
  for (int i = 0; i < desc.shape.size(); ++i)
    if (desc.shape[i] > 1 && wanted.strides[i] != desc.layout.strides[i]) return false;
  const int64_t inner = target.layout.strides[axis];
  std::vector<std::pair<int, Layout>> moved;
  for (int v = 0; v < static_cast<int>(d.values.size()); ++v) {
    if (d.value(v).buffer != from) continue;
    TensorDesc seen = d.desc(v);
    if (v == part) seen.layout = wanted;
    const auto layout = rehome(seen, desc.shape[axis], target.shape[axis], begin, inner);
    if (!layout) return false;
    moved.push_back({v, *layout});
  }
  for (auto& [v, layout] : moved) {
    d.value(v).buffer = d.value(whole).buffer;
    d.value(v).desc.layout = layout;
  }
  return true;
}

void lower_concat(Lowering& l, const Group& group, const Op& op, const ConcatOp& concat) {
  Draft& d = l.draft;
  const GraphTensor& result = l.result(group);
  const int rank = result.shape.size(), axis = static_cast<int>(concat.axis < 0 ? concat.axis + rank : concat.axis);
  bool own = true;
  for (TensorId id : op.inputs) own = own && l.has_own(id);
  own = own || l.in_16_bits(Family::copy, op.inputs, result.dtype);
  const auto value = [&](TensorId id) { return own ? l.value(id) : l.computed(id); };
  // The layout of most of the bytes.
  const Dims last = order_channels_last(rank), row = order_row_major(rank);
  int64_t votes = 0;
  for (TensorId id : op.inputs) {
    const int v = value(id);
    if (!d.constant_of(v)) votes += d.desc(v).layout.order == last ? d.desc(v).elements() : -d.desc(v).elements();
  }
  const int whole = d.make(result.name, own ? result.dtype : DType::f32, result.shape, votes > 0 ? last : row);
  int64_t begin = 0;
  std::vector<std::pair<int, int>> copies;  // part, its place
  for (TensorId id : op.inputs) {
    const int part = value(id);
    const int64_t size = d.desc(part).shape[axis];
    if (d.desc(part).elements() > 0 && !move_in(d, part, whole, axis, begin)) {
      TensorDesc place = d.desc(whole);
      place.shape = d.desc(part).shape;
      place.layout.offset += begin * place.layout.strides[axis];
      copies.push_back({part, d.view(whole, place)});
    }
    begin += size;
  }
  for (size_t i = 0; i < copies.size(); ++i)
    d.step(op.name + (copies.size() > 1 ? "/" + std::to_string(i) : ""), l.nodes(group), StageParams(CopyParams{"concat"}),
           {copies[i].first}, {copies[i].second});
  l.set(group.output, whole);
}

void lower_pad(Lowering& l, const Group& group, const Op& op, const PadOp& pad) {
  Draft& d = l.draft;
  const int x = l.either(op.inputs[0]);
  PadParams params{pad.mode, pad.begin, pad.end, pad.value};
  const int out = d.make(l.result(group).name, d.desc(x).dtype, l.result(group).shape, d.desc(x).layout.order);
  d.step(op.name, l.nodes(group), StageParams(params), {x}, {out});
  l.set(group.output, out);
}

void lower_gather(Lowering& l, const Group& group, const Op& op, const GatherOp& gather) {
  Draft& d = l.draft;
  int x = l.either(op.inputs[0]), indices = l.value(op.inputs[1]);
  const int rank = d.desc(x).shape.size();
  x = d.in_order(x, order_row_major(rank), "layout");
  indices = d.in_order(indices, order_row_major(d.desc(indices).shape.size()), "layout");
  const GraphTensor& result = l.result(group);
  const int out = d.make(result.name, d.desc(x).dtype, result.shape, order_row_major(result.shape.size()));
  const GatherParams params{static_cast<int>(gather.axis < 0 ? gather.axis + rank : gather.axis)};
  d.step(op.name, l.nodes(group), StageParams(params), {x, indices}, {out});
  l.set(group.output, out);
}

// Every repeated axis of the output is two axes, repetition and position; the source does not move along the former.
Status lower_tile(Lowering& l, const Group& group, const Op& op, const TileOp& tile) {
  Draft& d = l.draft;
  const int x = l.either(op.inputs[0]);
  TensorDesc from = d.desc(x);
  const int out = d.make(l.result(group).name, d.desc(x).dtype, l.result(group).shape, from.layout.order);
  TensorDesc to = d.desc(out);
  for (int axis = from.shape.size() - 1; axis >= 0; --axis) {
    const int64_t repeats = tile.repeats[axis];
    if (repeats == 1) continue;
    if (to.shape.size() == kMaxRank)
      return Error{Reason::operator_not_served, "Node '" + op.name + "' (Tile): too many repeated axes at this rank."};
    to = split_axis(to, axis, repeats, from.shape[axis]);
    Dims shape = from.shape, strides = from.layout.strides;
    shape.insert(axis, repeats), strides.insert(axis, 0);
    from.shape = shape, from.layout.strides = strides;
    from.layout.order = to.layout.order;
  }
  d.step(op.name, l.nodes(group), StageParams(CopyParams{"tile"}), {d.view(x, from)}, {d.view(out, to)});
  l.set(group.output, out);
  return ok();
}

// [N, C, H, W]: C is (block, block, C') (DCR) or (C', block, block) (CRD); H' = H*block + row, W' = W*block + column.
void lower_depth_to_space(Lowering& l, const Group& group, const Op& op, int64_t block, bool columns_first) {
  Draft& d = l.draft;
  const int x = l.either(op.inputs[0]);
  const Dims shape = l.result(group).shape;  // N, C', H', W'
  const int out = d.make(l.result(group).name, d.desc(x).dtype, shape, d.desc(x).layout.order);
  const int64_t channels = shape[1];
  TensorDesc from = d.desc(x), to = d.desc(out);
  to = split_axis(split_axis(to, 3, shape[3] / block, block), 2, shape[2] / block, block);  // N C' H row W column
  if (columns_first) {
    from = split_axis(split_axis(from, 1, channels, block * block), 2, block, block);  // N C' row column H W
    from = transpose_view(from, {0, 1, 4, 2, 5, 3});
  } else {
    from = split_axis(split_axis(from, 1, block, block * channels), 2, block, channels);  // N row column C' H W
    from = transpose_view(from, {0, 3, 4, 1, 5, 2});
  }
  d.step(op.name, l.nodes(group), StageParams(CopyParams{"depth_to_space"}), {d.view(x, from)}, {d.view(out, to)});
  l.set(group.output, out);
}

// The inverse: the block's rows and columns lie before the channels (DCR) or behind them (CRD).
void lower_space_to_depth(Lowering& l, const Group& group, const Op& op, int64_t block, bool columns_first) {
  Draft& d = l.draft;
  const int x = l.either(op.inputs[0]);
  const Dims in = d.desc(x).shape;
  const int out = d.make(l.result(group).name, d.desc(x).dtype, l.result(group).shape, d.desc(x).layout.order);
  TensorDesc from = split_axis(split_axis(d.desc(x), 3, in[3] / block, block), 2, in[2] / block, block);  // N C H row W column
  TensorDesc to = d.desc(out);
  if (columns_first) {
    from = transpose_view(from, {0, 1, 3, 5, 2, 4});  // N C row column H W
    to = split_axis(split_axis(to, 1, in[1], block * block), 2, block, block);
  } else {
    from = transpose_view(from, {0, 3, 5, 1, 2, 4});  // N row column C H W
    to = split_axis(split_axis(to, 1, block, block * in[1]), 2, block, in[1]);
  }
  d.step(op.name, l.nodes(group), StageParams(CopyParams{"space_to_depth"}), {d.view(x, from)}, {d.view(out, to)});
  l.set(group.output, out);
}

}  // namespace

Result<bool> lower_movement(Lowering& l, const Group& group) {
  const Op& op = l.op(group);
  if (const auto* concat = std::get_if<ConcatOp>(&op.params)) {
    lower_concat(l, group, op, *concat);
  } else if (const auto* pad = std::get_if<PadOp>(&op.params)) {
    lower_pad(l, group, op, *pad);
  } else if (const auto* gather = std::get_if<GatherOp>(&op.params)) {
    lower_gather(l, group, op, *gather);
  } else if (const auto* tile = std::get_if<TileOp>(&op.params)) {
    SPARKLE_CHECK(lower_tile(l, group, op, *tile));
  } else if (const auto* to_space = std::get_if<DepthToSpaceOp>(&op.params)) {
    lower_depth_to_space(l, group, op, to_space->block, to_space->columns_first);
  } else if (const auto* to_depth = std::get_if<SpaceToDepthOp>(&op.params)) {
    lower_space_to_depth(l, group, op, to_depth->block, to_depth->columns_first);
  } else if (const auto* cast = std::get_if<CastOp>(&op.params)) {
    const GraphTensor& result = l.result(group);
    const PointwiseParams program = cast_program(cast->to, cast->saturate, cast->rounding);
    l.set(group.output,
          pointwise_step(l, op.name, l.nodes(group), program, {l.either(op.inputs[0])}, result.dtype, result.shape));
  } else {
    return false;
  }
  return true;
}

}  // namespace sparkle
