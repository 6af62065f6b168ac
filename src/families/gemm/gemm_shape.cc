#include "families/gemm/gemm_shape.h"

#include <algorithm>

namespace sparkle {
std::array<std::vector<TapRange>, 3> tap_ranges(const Window& window, const FeatureMap& x, const FeatureMap& y) {
  const Triple in{x.d, x.h, x.w}, out{y.d, y.h, y.w};
  std::array<std::vector<TapRange>, 3> ranges;
  for (size_t i = 0; i < 3; ++i)
    ranges[i] = tap_ranges({in[i], out[i], window.filter[i], window.stride[i], window.dilation[i], window.pad_begin[i]});
  return ranges;
}

int64_t run_of_k(const GemmParams& params, const TensorDesc& x) {
  if (params.loader == Loader::dense) return x.shape[x.shape.size() - 1];
  const int64_t channels = x.shape[1] / std::max<int64_t>(1, params.groups);
  return params.groups == 1 && params.window.dilation[2] == 1 ? channels * params.window.filter[2] : channels;
}

int64_t stride_from_end(const TensorDesc& desc, int axis) {
  const int at = desc.shape.size() - 1 - axis;
  return at < 0 || desc.shape[at] == 1 ? 0 : desc.layout.strides[at];
}

GemmSizes gemm_sizes(const GemmParams& params, const std::vector<TensorDesc>& inputs, const TensorDesc& output) {
  GemmSizes sizes;
  if (params.loader == Loader::dense) {
    const int rank = output.shape.size();
    const TensorDesc& a = inputs[0];
    sizes.m = output.shape[rank - 2];
    sizes.n = output.shape[rank - 1];
    sizes.k = a.shape[a.shape.size() - 1];
    for (int i = 0; i < rank - 2; ++i) {
      const int64_t size = output.shape[i];
      if (size == 0) sizes.m = 0;
      // Batch axes along which the right operand stays the same are rows like any others.
      if (stride_from_end(inputs[1], rank - 1 - i) == 0) {
        sizes.m *= size;
      } else {
        sizes.instances *= size;
      }
    }
    sizes.weight_matrices = sizes.instances;
    sizes.k_steps = static_cast<double>(sizes.m) * static_cast<double>(sizes.k);
    return sizes;
  }
  const FeatureMap x = feature_map(inputs[0]), y = feature_map(output);
  sizes.instances = sizes.weight_matrices = params.groups;
  sizes.m = y.n * y.pixels();
  sizes.n = y.c / params.groups;
  sizes.k = x.c / params.groups * params.window.taps();
  double taps = 1;
  const Triple in{x.d, x.h, x.w}, out{y.d, y.h, y.w};
  const Window& w = params.window;
  for (size_t i = 0; i < 3; ++i) taps *= taps_inside({in[i], out[i], w.filter[i], w.stride[i], w.dilation[i], w.pad_begin[i]});
  sizes.k_steps = static_cast<double>(y.n) * taps * static_cast<double>(x.c / params.groups);
  return sizes;
}

}  // namespace sparkle
