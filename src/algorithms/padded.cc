// A convolution as a copy of its input between zero columns and a product without padding along them. The implicit product
// never mixes outputs that see different taps in a tile: on small planes these are one or two at each border, whose tiles take
// as long as whole ones. Rows of the filter are still left out where they lie outside.
#include "algorithms/stages.h"
#include "families/gemm/gemm.h"
#include "families/pad/pad.h"

namespace sparkle {
namespace {

constexpr size_t kColumns = 2;  // the axis W of windows
// A border column of outputs in so many at least: in wider planes few tiles are short.
constexpr int64_t kMostColumns = 8;

// Columns that the windows reach over: before the image's first one and behind its last.
struct Reach {
  int64_t before, behind;
};
Reach reach_of(const Problem& p) {
  const Window& w = p.window;
  const int64_t end = (p.out[kColumns] - 1) * w.stride[kColumns] + (w.filter[kColumns] - 1) * w.dilation[kColumns] + 1;
  return {w.pad_begin[kColumns], end - w.pad_begin[kColumns] - p.in[kColumns]};
}

}  // namespace

Reason padded_applies(const AnchorCall& call) {
  const Problem& p = call.problem;
  if (p.kind != ProblemKind::conv) return Reason::not_this_family;
  if (!computed_in_f32(p)) return Reason::type_not_served;
  const auto [before, behind] = reach_of(p);
  if (before < 0 || behind < 0 || before + behind == 0) return Reason::filter_not_served;
  const int64_t stride = p.window.stride[kColumns];
  const int64_t border = (before + stride - 1) / stride + (behind + stride - 1) / stride;
  return p.out[kColumns] <= kMostColumns * border ? Reason::none : Reason::filter_not_served;
}

StagePlan padded_stages(const AnchorCall& call) {
  const Problem& p = call.problem;
  const auto [before, behind] = reach_of(p);
  const TensorDesc& x = call.inputs[0];
  TensorDesc wide = x;
  const int axis = x.shape.size() - 1;
  PadParams pads;
  pads.begin = pads.end = Dims::filled(x.shape.size(), 0);
  pads.begin[axis] = before, pads.end[axis] = behind;
  wide.shape[axis] += before + behind;
  wide.layout = channels_last(wide.shape);
  const int inputs = static_cast<int>(call.inputs.size()), temporary = inputs + 1;

  AnchorCall inside = call;
  inside.inputs[0] = wide;
  GemmParams product;
  product.groups = p.groups;
  product.window = p.window;
  product.window.pad_begin[kColumns] = product.window.pad_end[kColumns] = 0;
  product.epilogue = p.epilogue;
  StageUse multiply = whole_call(inside, product);
  multiply.inputs[0] = temporary;
  return {{{{pads, {x}, {wide}}, {0}, {temporary}}, std::move(multiply)}, {wide}};
}

}  // namespace sparkle
