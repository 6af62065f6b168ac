#include "algorithms/problem.h"

#include <array>

#include "families/type_set.h"

namespace sparkle {
namespace {
constexpr std::array<std::string_view, 3> kNames = {"conv", "conv_transpose", "matmul"};
}

std::string_view name_of(ProblemKind kind) { return kNames[static_cast<size_t>(kind)]; }

bool parse_name(std::string_view text, ProblemKind& kind) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == text) return kind = static_cast<ProblemKind>(i), true;
  return false;
}

double Problem::nominal_flops() const {
  const auto d = [](int64_t v) { return static_cast<double>(v); };
  if (kind == ProblemKind::matmul) return 2 * d(batch) * d(rows) * d(columns) * d(depth);
  // A transposed convolution multiplies once per input pixel, an ordinary one once per output pixel.
  const Triple& pixels = kind == ProblemKind::conv ? out : in;
  return 2 * d(n) * d(k) * d(c) / d(groups) * d(window.taps()) * d(pixels[0]) * d(pixels[1]) * d(pixels[2]);
}

std::string short_name(const Problem& p) {
  if (p.kind == ProblemKind::matmul) {
    std::string text = p.batch > 1 ? std::to_string(p.batch) + " x " : "";
    return text + std::to_string(p.rows) + "x" + std::to_string(p.depth) + " * " + std::to_string(p.depth) + "x" +
           std::to_string(p.columns);
  }
  const auto sizes = [&](const Triple& t) {
    std::string text;
    for (size_t i = static_cast<size_t>(3 - p.rank); i < 3; ++i) text += (text.empty() ? "" : "x") + std::to_string(t[i]);
    return text;
  };
  std::string text = p.kind == ProblemKind::conv ? "" : "transposed ";
  text += std::to_string(p.c) + "x" + sizes(p.in) + " -> " + std::to_string(p.k) + " " + sizes(p.window.filter);
  if (p.window.stride != Triple{1, 1, 1}) text += " s" + std::to_string(p.window.stride[2]);
  if (p.window.dilation != Triple{1, 1, 1}) text += " d" + std::to_string(p.window.dilation[2]);
  if (p.window.pad_begin != Triple{0, 0, 0}) text += " p" + std::to_string(p.window.pad_begin[2]);
  if (p.groups > 1) text += " g" + std::to_string(p.groups);
  if (p.n > 1) text += " n" + std::to_string(p.n);
  return text;
}

ProblemOperands operands_of(const Problem& p) {
  ProblemOperands operands;
  const DType dtype = computed_in(dtype_from(p.dtype).value_or(DType::f32));
  const auto add = [&](const Dims& shape, bool maps) {
    operands.inputs.push_back({dtype, shape, maps ? channels_last(shape) : row_major(shape)});
  };
  Dims y;
  if (p.kind == ProblemKind::matmul) {
    y = p.batch > 1 ? Dims{p.batch, p.rows, p.columns} : Dims{p.rows, p.columns};
    add(p.batch > 1 ? Dims{p.batch, p.rows, p.depth} : Dims{p.rows, p.depth}, false);
    add(p.batch > 1 ? Dims{p.batch, p.depth, p.columns} : Dims{p.depth, p.columns}, false);
    operands.output = {dtype, y, row_major(y)};
  } else {
    const bool transposed = p.kind == ProblemKind::conv_transpose;
    Dims x{p.n, p.c}, w = transposed ? Dims{p.c, p.k / p.groups} : Dims{p.k, p.c / p.groups};
    y = {p.n, p.k};
    for (auto i = static_cast<size_t>(3 - p.rank); i < 3; ++i) {
      x.push_back(p.in[i]), w.push_back(p.window.filter[i]), y.push_back(p.out[i]);
    }
    add(x, true), add(w, false);
    operands.output = {dtype, y, channels_last(y)};
  }
  const int64_t channels = p.kind == ProblemKind::matmul ? p.columns : p.k;
  for (int i = 0; i < p.epilogue.scale + p.epilogue.bias; ++i) add({channels}, false);
  for (int i = 0; i < p.epilogue.residuals() + p.epilogue.post_op_operands(); ++i) add(y, p.kind != ProblemKind::matmul);
  return operands;
}

}  // namespace sparkle
