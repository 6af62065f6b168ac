// Attention and RotaryEmbedding: heads, shared keys and broadcast masks are views; past and new keys are written into one
// buffer.
#include "families/attention/attention.h"
#include "families/copy/copy.h"
#include "families/gather/gather.h"
#include "families/rotary/rotary.h"
#include "plan/lower/lower.h"
#include "plan/lower/view.h"

namespace sparkle {
namespace {

// [batch, heads, rows, size] of an operand of rank 4 or 3 ([batch, rows, heads * size]).
TensorDesc headed(const TensorDesc& x, int64_t heads) {
  if (x.shape.size() == 4) return x;
  return transpose_view(split_axis(x, 2, heads, x.shape[2] / heads), {0, 2, 1, 3});
}

// A further axis of stride 0.
TensorDesc repeated(const TensorDesc& x, int axis, int64_t count) {
  TensorDesc y = x;
  y.shape.insert(axis, count);
  y.layout.strides.insert(axis, 0);
  y.layout.order = order_row_major(y.shape.size());
  return y;
}

int last_axis_contiguous(Draft& d, int v) {
  const TensorDesc& desc = d.desc(v);
  if (desc.shape.back() <= 1 || desc.layout.strides.back() == 1) return v;
  return d.in_order(v, order_row_major(desc.shape.size()), "layout");
}

// Past rows, then the new ones, in one buffer.
int joined(Lowering& l, const Group& group, const std::string& name, int past, int rows) {
  Draft& d = l.draft;
  const TensorDesc first = d.desc(past), second = d.desc(rows);
  Dims shape = second.shape;
  shape[2] += first.shape[2];
  const int whole = d.make(name, second.dtype, shape, order_row_major(4));
  const auto copy = [&](int from, int64_t begin, const char* suffix) {
    if (d.desc(from).elements() == 0) return;
    const TensorDesc place = slice_view(d.desc(whole), {0, 0, begin, 0}, {1, 1, 1, 1}, d.desc(from).shape);
    d.step(l.op(group).name + suffix, l.nodes(group), StageParams(CopyParams{"concat"}), {from}, {d.view(whole, place)});
  };
  copy(past, 0, "/past");
  copy(rows, first.shape[2], "/new");
  return whole;
}

void lower_attention(Lowering& l, const Group& group, const Op& op, const AttentionOp& attention) {
  Draft& d = l.draft;
  const auto given = [&](size_t i) { return i < op.inputs.size() && op.inputs[i] != kAbsent; };
  const auto wanted = [&](size_t i) { return i < op.outputs.size() && op.outputs[i] != kAbsent; };
  int q = last_axis_contiguous(d, l.computed(op.inputs[0]));
  q = d.view(q, headed(d.desc(q), attention.query_heads));
  int keys[2];  // and values
  int64_t past = 0;
  for (size_t i = 0; i < 2; ++i) {
    const int v = l.computed(op.inputs[1 + i]);
    keys[i] = d.view(v, headed(d.desc(v), attention.key_heads));
    if (given(4 + i)) {
      const int before = l.computed(op.inputs[4 + i]);
      past = d.desc(before).shape[2];
      keys[i] = joined(l, group, op.name + (i ? "/values" : "/keys"), before, keys[i]);
    }
    if (wanted(1 + i)) l.set(op.outputs[1 + i], keys[i]);
  }
  const Dims shape = d.desc(q).shape, key_shape = d.desc(keys[0]).shape;
  const int64_t key_heads = key_shape[1], sharing = shape[1] / key_heads;

  AttentionParams params;
  params.scale = *attention.scale;
  params.softcap = attention.softcap;
  params.unseen_is_nan = attention.unseen_is_nan;
  params.mask = given(3), params.lengths = given(6);
  params.left = attention.left, params.right = attention.right;
  if (attention.causal) params.right = 0;
  params.offset = past;
  params.offset_from_length = params.lengths;
  // Neighbouring heads of queries share a head of keys: an axis of stride 0 for keys and values.
  const auto per_query = [&](const TensorDesc& x) { return sharing == 1 ? x : split_axis(x, 1, key_heads, sharing); };
  std::vector<int> inputs{d.view(q, per_query(d.desc(q)))};
  for (int v : keys) inputs.push_back(sharing == 1 ? v : d.view(v, repeated(d.desc(v), 2, sharing)));
  if (params.mask) {
    const int v = l.computed(op.inputs[3]);
    const TensorDesc mask = d.desc(v);
    inputs.push_back(d.view(v, per_query(broadcast_view(mask, {shape[0], shape[1], shape[2], mask.shape.back()}))));
  }
  if (params.lengths) {
    const int v = l.value(op.inputs[6]);
    inputs.push_back(d.view(v, per_query(repeated(d.desc(v), 1, shape[1]))));
  }
  const GraphTensor& result = l.result(group);
  const int out = d.make(result.name, l.computed_type(result.dtype), result.shape, order_row_major(result.shape.size()));
  std::vector<int> outputs{d.view(out, per_query(headed(d.desc(out), shape[1])))};
  if (wanted(3)) {
    params.scores = static_cast<ScoreOutput>(attention.scores + 1);
    const GraphTensor& t = l.graph.tensor(op.outputs[3]);
    const int scores = d.make(t.name, l.computed_type(t.dtype), t.shape, order_row_major(4));
    outputs.push_back(d.view(scores, per_query(d.desc(scores))));
    l.set(op.outputs[3], scores);
  }
  d.step(op.name, l.nodes(group), StageParams(params), inputs, outputs);
  l.set(op.outputs[0], out);
}

void lower_rotary(Lowering& l, const Group& group, const Op& op, const RotaryEmbeddingOp& rotary) {
  Draft& d = l.draft;
  const int x = last_axis_contiguous(d, l.computed(op.inputs[0]));
  const TensorDesc rows = headed(d.desc(x), rotary.heads);
  std::vector<int> inputs{d.view(x, rows)};
  const bool by_position = op.inputs.size() > 3 && op.inputs[3] != kAbsent;
  for (size_t i = 1; i <= 2; ++i) {
    int table = d.in_order(l.computed(op.inputs[i]), order_row_major(by_position ? 2 : 3), "layout");
    if (by_position) {  // the rows that the positions name
      const int positions = d.in_order(l.value(op.inputs[3]), order_row_major(2), "layout");
      const Dims shape{rows.shape[0], rows.shape[2], d.desc(table).shape[1]};
      const int picked = d.make(op.name + (i == 1 ? "/cosine" : "/sine"), d.desc(table).dtype, shape, order_row_major(3));
      d.step(d.value(picked).name, {op.name}, StageParams(GatherParams{0}), {table, positions}, {picked});
      table = picked;
    }
    TensorDesc angles = d.desc(table);  // of a wider table the first columns
    angles.shape[2] = rotary.turned / 2;
    inputs.push_back(d.view(table, repeated(angles, 1, rows.shape[1])));
  }
  const GraphTensor& result = l.result(group);
  const int out = d.make(result.name, l.computed_type(result.dtype), result.shape, order_row_major(result.shape.size()));
  d.step(op.name, l.nodes(group), StageParams(RotaryParams{rotary.interleaved}), inputs,
         {d.view(out, headed(d.desc(out), rotary.heads))});
  l.set(group.output, out);
}

}  // namespace

Result<bool> lower_attention(Lowering& l, const Group& group) {
  const Op& op = l.op(group);
  if (const auto* attention = std::get_if<AttentionOp>(&op.params)) {
    lower_attention(l, group, op, *attention);
  } else if (const auto* rotary = std::get_if<RotaryEmbeddingOp>(&op.params)) {
    lower_rotary(l, group, op, *rotary);
  } else {
    return false;
  }
  return true;
}

}  // namespace sparkle
