// An explicit Pad before a window becomes padding of the window, where the window reads the same values.
#include <limits>

#include "graph/rewrites/rewrites.h"
#include "graph/evaluate/values.h"

namespace sparkle {
namespace {

// Pads per axis and the value of a constant Pad whose attributes are known.
bool read_pad(Editor& e, const Op& op, const PadOp& pad, Dims& begin, Dims& end, double& value) {
  if (pad.mode != PadMode::constant) return false;
  begin = pad.begin, end = pad.end, value = pad.value;
  if (op.inputs.size() > 3 && op.inputs[3] != kAbsent) return false;
  if (op.inputs.size() > 1 && op.inputs[1] != kAbsent) {
    const HostTensor* pads = e.constant(op.inputs[1]);
    if (!pads || pads->dtype != DType::i64 || pads->elements() % 2 != 0 || pads->elements() > 2 * kMaxRank) return false;
    const int64_t rank = pads->elements() / 2;
    begin = Dims(std::span<const int64_t>(pads->data<int64_t>(), static_cast<size_t>(rank)));
    end = Dims(std::span<const int64_t>(pads->data<int64_t>() + rank, static_cast<size_t>(rank)));
  }
  if (op.inputs.size() > 2 && op.inputs[2] != kAbsent) {
    const HostTensor* constant = e.constant(op.inputs[2]);
    if (!constant || constant->elements() != 1) return false;
    value = scalar(*constant);
  }
  if (begin.size() < 3 || end.size() != begin.size()) return false;
  for (int i = 0; i < begin.size(); ++i) {
    if (begin[i] < 0 || end[i] < 0 || begin[i] > (1 << 20) || end[i] > (1 << 20)) return false;
    if (i < 2 && (begin[i] != 0 || end[i] != 0)) return false;
  }
  return true;
}

bool all_zero(const Dims& dims) {
  for (int64_t v : dims)
    if (v != 0) return false;
  return true;
}

// Pads smaller than the window, so that every window still meets the input.
bool within(const Dims& pads, const Dims& kernel) {
  for (int i = 0; i < kernel.size(); ++i)
    if (pads[i + 2] >= kernel[i]) return false;
  return true;
}

bool takes(const ConvOp& conv, const Dims&, const Dims&, double value) { return !conv.transposed && value == 0; }

bool takes(PoolOp& pool, const Dims& begin, const Dims& end, double value) {
  if (pool.ceil_mode || pool.kernel.size() != begin.size() - 2 || !within(begin, pool.kernel) || !within(end, pool.kernel))
    return false;
  const bool unpadded = all_zero(pool.pads_begin) && all_zero(pool.pads_end);
  if (pool.kind == PoolKind::max) return unpadded && value == -std::numeric_limits<double>::infinity();
  if (pool.kind != PoolKind::average || value != 0 || !(unpadded || pool.count_pad)) return false;
  pool.count_pad = true;
  return true;
}

template <class Window>
bool merge(Editor& e, int i, Window& window) {
  const TensorId between = e.op(i).inputs[0];
  const PadOp* pad = e.made_by<PadOp>(between);
  if (!pad || (window.auto_pad != AutoPad::notset && window.auto_pad != AutoPad::valid)) return false;
  const Op& pad_op = e.op(e.producer(between));
  Dims begin, end;
  double value = 0;
  if (!read_pad(e, pad_op, *pad, begin, end, value)) return false;
  const int spatial = begin.size() - 2;
  const bool valid = window.auto_pad == AutoPad::valid;
  Dims pads_begin = valid || window.pads_begin.empty() ? Dims::filled(spatial, 0) : window.pads_begin;
  Dims pads_end = valid || window.pads_end.empty() ? Dims::filled(spatial, 0) : window.pads_end;
  if (pads_begin.size() != spatial || pads_end.size() != spatial) return false;
  for (int k = 0; k < spatial; ++k)
    if (pads_begin[k] < 0 || pads_end[k] < 0) return false;  // such a window cuts the padding off again
  if (valid) window.pads_begin = pads_begin, window.pads_end = pads_end;
  if (!takes(window, begin, end, value)) return false;
  for (int k = 0; k < spatial; ++k) pads_begin[k] += begin[k + 2], pads_end[k] += end[k + 2];
  window.auto_pad = AutoPad::notset;
  window.pads_begin = pads_begin, window.pads_end = pads_end;
  e.set_input(i, 0, pad_op.inputs[0]);
  return true;
}

}  // namespace

bool merge_pads(Editor& e) {
  bool changed = false;
  for (int i = 0; i < e.count(); ++i) {
    if (e.erased(i) || e.op(i).inputs.empty()) continue;
    if (auto* conv = std::get_if<ConvOp>(&e.op(i).params)) changed = merge(e, i, *conv) || changed;
    if (auto* pool = std::get_if<PoolOp>(&e.op(i).params)) {
      if (e.op(i).outputs.size() < 2) changed = merge(e, i, *pool) || changed;  // indices count in the padded tensor
    }
  }
  return changed;
}

}  // namespace sparkle
