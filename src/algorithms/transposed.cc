#include <algorithm>
#include <numeric>

#include "algorithms/stages.h"
#include "families/gemm/gemm.h"

namespace sparkle {
namespace {

// The transposed convolution scatters; seen from the output it is, for each phase (output position modulo stride), an ordinary
// convolution of stride 1 with every stride-th tap of the filter, taps in reverse. Each phase writes its own pixels: an output
// view of strides times those of the window. With z = phase + stride*q and tap t = t0 + stride*j the input position is q +
// (phase + pad - dilation*t)/stride.
struct Phase {
  int64_t first_tap = 0, taps = 0, step = 1;  // taps first, first+step, ... of the filter
  int64_t begin = 0;                          // input position of output 0 under the first of these taps
  int64_t outputs = 0;
};

Phase phase_of(int64_t phase, int64_t filter, int64_t stride, int64_t dilation, int64_t pad, int64_t out) {
  Phase p;
  p.outputs = out > phase ? (out - phase + stride - 1) / stride : 0;
  const int64_t period = stride / std::gcd(stride, dilation);  // taps of one phase are that far apart
  for (int64_t t = 0; t < std::min(filter, period); ++t) {
    const int64_t position = phase + pad - dilation * t;
    if (position % stride != 0) continue;
    p.first_tap = t, p.begin = position / stride;
    p.taps = 1 + (filter - 1 - t) / period;
    if (p.taps > 1) p.step = period;
    break;
  }
  return p;
}

TensorDesc slice_axis(TensorDesc desc, int axis, int64_t begin, int64_t step, int64_t size) {
  desc.layout.offset += begin * desc.layout.strides[axis];
  desc.layout.strides[axis] *= step;
  desc.shape[axis] = size;
  return desc;
}

// Phases beyond the output's end write nothing.
Triple phases_of(const Problem& p) {
  Triple phases;
  for (size_t i = 0; i < 3; ++i) phases[i] = std::min(p.window.stride[i], p.out[i]);
  return phases;
}

}  // namespace

double transposed_stage_count(const Problem& problem) {
  double count = static_cast<double>(problem.groups);
  for (const int64_t phases : phases_of(problem)) count *= static_cast<double>(phases);
  return count;
}

// ONNX stores the filter of a transposed convolution as [C, K/groups, taps]; the gemm family wants [K, C/groups, taps]. Within
// one group that is a swap of two axes; over several groups there is no single stride for K, so each group gets a stage of its
// own.
StagePlan transposed_stages(const AnchorCall& call) {
  StagePlan plan;
  const Problem& p = call.problem;
  const int rank = p.rank;
  const Triple phases = phases_of(p);
  const int64_t k_per_group = p.k / p.groups, c_per_group = p.c / p.groups;
  for (int64_t group = 0; group < p.groups; ++group) {
    for (int64_t pz = 0; pz < phases[0]; ++pz)
      for (int64_t py = 0; py < phases[1]; ++py)
        for (int64_t px = 0; px < phases[2]; ++px) {
          const Triple phase{pz, py, px};
          AnchorCall part = call;
          GemmParams params;
          params.epilogue = p.epilogue;
          bool empty = false, no_taps = false;
          TensorDesc& w = part.inputs[1];
          w = slice_axis(w, 0, group * c_per_group, 1, c_per_group);
          std::swap(w.shape[0], w.shape[1]);
          std::swap(w.layout.strides[0], w.layout.strides[1]);
          auto narrow = [&](TensorDesc& desc, int axis, int64_t begin, int64_t step, int64_t size) {
            desc = slice_axis(desc, axis, begin, step, size);
          };
          narrow(part.inputs[0], 1, group * c_per_group, 1, c_per_group);
          narrow(part.output, 1, group * k_per_group, 1, k_per_group);
          for (size_t i = 2; i < part.inputs.size(); ++i)
            narrow(part.inputs[i], part.inputs[i].shape.size() == 1 ? 0 : 1, group * k_per_group, 1, k_per_group);
          for (int s = 0; s < rank; ++s) {
            const auto d = static_cast<size_t>(3 - rank + s);
            const Phase f = phase_of(phase[d], p.window.filter[d], p.window.stride[d], p.window.dilation[d],
                                     p.window.pad_begin[d], p.out[d]);
            empty |= f.outputs == 0;
            no_taps |= f.taps == 0;
            // Reverse the taps: the last one lies over the smallest input position.
            const int64_t back = f.step * p.window.dilation[d] / p.window.stride[d];  // input distance of two taps
            const int64_t last = f.first_tap + f.step * (f.taps - 1);
            w = slice_axis(w, 2 + s, std::max<int64_t>(last, 0), -f.step, f.taps);
            params.window.filter[d] = f.taps;
            params.window.dilation[d] = std::max<int64_t>(back, 1);
            params.window.pad_begin[d] = -(f.begin - back * (f.taps - 1));
            narrow(part.output, 2 + s, phase[d], p.window.stride[d], f.outputs);
            for (size_t i = 2; i < part.inputs.size(); ++i)
              if (part.inputs[i].shape.size() > 1) narrow(part.inputs[i], 2 + s, phase[d], p.window.stride[d], f.outputs);
          }
          if (empty) continue;
          if (no_taps) {
            // No tap reaches these outputs: a single tap that lies wholly in the padding gives the epilogue of zero.
            for (int s = 0; s < rank; ++s) {
              const auto d = static_cast<size_t>(3 - rank + s);
              w.shape[2 + s] = 1;
              w.layout.strides[2 + s] = 1;
              params.window.filter[d] = 1;
              params.window.dilation[d] = 1;
              params.window.pad_begin[d] = p.in[d] + p.out[d];
            }
            w.layout.offset = call.inputs[1].layout.offset;
          }
          plan.stages.push_back(whole_call(part, params));
        }
  }
  return plan;
}

}  // namespace sparkle
