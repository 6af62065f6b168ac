// Shape rules of sliding windows: Conv, ConvTranspose, pooling. Sizes are computed wide so that hostile attributes cannot
// overflow; after the rule every list has one entry per spatial axis and auto_pad is notset.
#include "graph/infer/infer.h"

namespace sparkle {
namespace {

struct WindowFields {
  Dims &kernel, &strides, &dilations, &pads_begin, &pads_end;
};

Status fill_list(InferContext& c, Dims& list, int spatial, int64_t missing, int64_t least, const char* what) {
  if (list.empty()) list = Dims::filled(spatial, missing);
  if (list.size() != spatial)
    return c.fail(Reason::bad_model, std::string(what) + " has " + std::to_string(list.size()) + " entries, but " +
                                         c.describe(0) + " has " + std::to_string(spatial) + " spatial axes");
  for (int64_t v : list)
    if (v < least || v > (int64_t{1} << 31))
      return c.fail(Reason::bad_model, std::string(what) + " holds " + std::to_string(v) + ", which is out of range");
  return ok();
}

Status fill_window(InferContext& c, WindowFields w, int spatial) {
  SPARKLE_CHECK(fill_list(c, w.kernel, spatial, 1, 1, "kernel_shape"));
  WideInt taps = 1;  // of lists of at most three sizes up to 2^31 each, and more sizes only where checked_bytes() bounds them
  for (int64_t size : w.kernel) SPARKLE_CHECK(c.size(taps *= size, "the number of its window's taps"));
  SPARKLE_CHECK(fill_list(c, w.strides, spatial, 1, 1, "strides"));
  SPARKLE_CHECK(fill_list(c, w.dilations, spatial, 1, 1, "dilations"));
  constexpr int64_t kLeastPad = -(int64_t{1} << 31);
  SPARKLE_CHECK(fill_list(c, w.pads_begin, spatial, 0, kLeastPad, "pads"));
  return fill_list(c, w.pads_end, spatial, 0, kLeastPad, "pads");
}

// Output size of an ordinary window along spatial axis i; resolves auto_pad into the pads.
Result<int64_t> window_size(InferContext& c, WindowFields w, AutoPad auto_pad, bool ceil_mode, int i, int64_t in) {
  const WideInt filter = WideInt{w.kernel[i] - 1} * w.dilations[i] + 1;
  if (auto_pad == AutoPad::same_upper || auto_pad == AutoPad::same_lower) {
    const int64_t out = in / w.strides[i] + (in % w.strides[i] != 0);
    const WideInt total = std::max<WideInt>(WideInt{out - 1} * w.strides[i] + filter - in, 0);
    SPARKLE_TRY(pad, c.size(total, "the padding"));
    w.pads_begin[i] = auto_pad == AutoPad::same_upper ? pad / 2 : pad - pad / 2;
    w.pads_end[i] = pad - w.pads_begin[i];
    return out;
  }
  if (auto_pad == AutoPad::valid) w.pads_begin[i] = w.pads_end[i] = 0;
  const WideInt room = WideInt{in} + w.pads_begin[i] + w.pads_end[i] - filter;
  if (room < 0)
    return c.fail(Reason::bad_shape, "the window of " + w.kernel.to_string() + " (dilations " + w.dilations.to_string() +
                                         ") does not fit into " + c.describe(0) + " with its padding");
  WideInt out = room / w.strides[i] + 1;
  // A window that rounding up added must start inside the input or the padding before it.
  if (ceil_mode && room % w.strides[i] != 0 && out * w.strides[i] < WideInt{in} + w.pads_begin[i]) ++out;
  return c.size(out, "its output");
}

// Output size of a transposed window along spatial axis i; resolves output_shape and auto_pad into the pads.
Result<int64_t> transposed_size(InferContext& c, ConvOp& op, int i, int64_t in) {
  const WideInt filter = WideInt{op.kernel[i] - 1} * op.dilations[i] + 1;
  const WideInt full = WideInt{op.strides[i]} * (in - 1) + op.output_padding[i] + filter;
  const bool same = op.auto_pad == AutoPad::same_upper || op.auto_pad == AutoPad::same_lower;
  if (op.auto_pad == AutoPad::valid) op.pads_begin[i] = op.pads_end[i] = 0;
  if (!op.output_shape.empty() || same) {
    const WideInt wanted = op.output_shape.empty() ? WideInt{in} * op.strides[i] : WideInt{op.output_shape[i]};
    SPARKLE_TRY(out, c.size(wanted, "its output"));
    const WideInt total = full - wanted;
    if (total < 0) {  // more is asked for than the input reaches: the end stays empty
      op.pads_begin[i] = 0;
      op.pads_end[i] = static_cast<int64_t>(total);
    } else {
      SPARKLE_TRY(pad, c.size(total, "the padding"));
      op.pads_begin[i] = op.auto_pad == AutoPad::same_upper ? pad / 2 : pad - pad / 2;
      op.pads_end[i] = pad - op.pads_begin[i];
    }
    return out;
  }
  return c.size(full - op.pads_begin[i] - op.pads_end[i], "its output");
}

}  // namespace

Result<Dims> infer_convolution(InferContext& c, ConvOp& op) {
  const Dims &x = c.shape(0), &w = c.shape(1);
  const int spatial = x.size() - 2;
  if (spatial < 1) return c.fail(Reason::bad_shape, c.describe(0) + " should have rank 3 or more");
  SPARKLE_CHECK(c.expect_rank(1, x.size()));
  if (op.groups < 1 || op.groups > w[0])
    return c.fail(Reason::bad_model, "group " + std::to_string(op.groups) + " is out of range");
  const int64_t expected = op.transposed ? w[0] : w[1];
  const int64_t channels = op.transposed ? x[1] : x[1] / op.groups;
  if (channels != expected || x[1] % op.groups != 0 || w[0] % op.groups != 0)
    return c.fail(Reason::bad_shape, "the channels of " + c.describe(0) + " do not match the weights " + c.describe(1) +
                                         " in " + std::to_string(op.groups) + " group(s)");
  Dims kernel;
  for (int i = 0; i < spatial; ++i) kernel.push_back(w[i + 2]);
  if (!op.kernel.empty() && op.kernel != kernel)
    return c.fail(Reason::bad_model, "kernel_shape " + op.kernel.to_string() + " contradicts the weights " + c.describe(1));
  op.kernel = kernel;
  const WindowFields window{op.kernel, op.strides, op.dilations, op.pads_begin, op.pads_end};
  SPARKLE_CHECK(fill_window(c, window, spatial));
  const WideInt filters = op.transposed ? WideInt{w[1]} * op.groups : WideInt{w[0]};
  SPARKLE_TRY(k, c.size(filters, "the number of filters"));
  if (c.given(2) && c.shape(2) != Dims{k})
    return c.fail(Reason::bad_shape,
                  "the bias " + c.describe(2) + " should have one value for each of the " + std::to_string(k) + " filters");
  Dims y{x[0], k};
  if (op.transposed) {
    SPARKLE_CHECK(fill_list(c, op.output_padding, spatial, 0, 0, "output_padding"));
    if (op.output_shape.size() == x.size()) op.output_shape.erase(0), op.output_shape.erase(0);
    if (!op.output_shape.empty()) SPARKLE_CHECK(fill_list(c, op.output_shape, spatial, 0, 0, "output_shape"));
  }
  for (int i = 0; i < spatial; ++i) {
    SPARKLE_TRY(out,
                op.transposed ? transposed_size(c, op, i, x[i + 2]) : window_size(c, window, op.auto_pad, false, i, x[i + 2]));
    y.push_back(out);
  }
  op.auto_pad = AutoPad::notset;
  op.output_shape = {};
  return y;
}

Status infer_rule(InferContext& c, ConvOp& op) {
  SPARKLE_CHECK(c.expect(2, 3));
  if (c.type(1) != c.type(0) || (c.given(2) && c.type(2) != c.type(0)))
    return c.fail(Reason::bad_model, "the types of " + c.describe(0) + " and of the weights differ");
  SPARKLE_TRY(y, infer_convolution(c, op));
  return c.set(0, c.type(0), y);
}

Status infer_rule(InferContext& c, PoolOp& op) {
  SPARKLE_CHECK(c.expect(1, 1));
  const Dims& x = c.shape(0);
  const int spatial = x.size() - 2;
  if (spatial < 1) return c.fail(Reason::bad_shape, c.describe(0) + " should have rank 3 or more");
  if (op.kernel.empty()) return c.fail(Reason::bad_model, "kernel_shape is missing");
  const WindowFields window{op.kernel, op.strides, op.dilations, op.pads_begin, op.pads_end};
  SPARKLE_CHECK(fill_window(c, window, spatial));
  Dims y{x[0], x[1]};
  for (int i = 0; i < spatial; ++i) {
    SPARKLE_TRY(out, window_size(c, window, op.auto_pad, op.ceil_mode, i, x[i + 2]));
    y.push_back(out);
  }
  // With SAME the pads reach as far as the last window, so that rounding up adds none.
  op.auto_pad = AutoPad::notset;
  SPARKLE_CHECK(c.set(1, DType::i64, y));
  return c.set(0, c.type(0), y);
}

}  // namespace sparkle
