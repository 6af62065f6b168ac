// The epilogue of convolutions that finish outputs whose channels lie next to each other: where its operands lie, scale and
// bias padded to whole vectors, and all that remains to be done to raw sums.
#pragma once

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/gemm/gemm_tile.h"
#include "families/values/epilogue.h"
#include "families/windows/window.h"

namespace sparkle::cpu {

// Of a launch.
struct EpilogueOperands {
  const float* scale = nullptr;  // padded channels; nullptr: 1
  const float* bias = nullptr;   // padded channels
  const float* residual[2] = {nullptr, nullptr};
};

// What a sum is clamped to where the activation is no more than that.
struct Clamp {
  bool below = false, above = false;
  float low = 0, high = 0;
};

// Outputs [q0, q1) of row p of image n, channels [first, first + channels).
struct OutputRow {
  int64_t n = 0, p = 0, q0 = 0, q1 = 0;
  int64_t first = 0, channels = 0;
};

class ChannelEpilogue {
 public:
  // Its operands follow x and w among the inputs of the stage; scale and bias of the workspace hold `padded` channels, the last
  // one repeated.
  ChannelEpilogue(const Stage& stage, const Epilogue& epilogue, int64_t padded);

  int64_t workspace_bytes() const { return (scales_ ? 2 : 1) * vector_bytes_; }
  EpilogueOperands prepare(const CpuLaunch& launch, int64_t workspace_at) const;

  bool clamps() const { return clamps_; }  // no activation, or one that clamps
  bool scales() const { return scales_; }
  int residuals() const { return epilogue_.residuals_before + epilogue_.residuals_after; }
  bool dense_residuals() const { return dense_residuals_; }  // whole vectors of their channels can be loaded
  Clamp clamp() const;

  const FeatureMap& residual_map(int i) const { return residual_[i]; }
  const float* residual(const EpilogueOperands& operands, int i, const OutputRow& at) const;  // at q0, the first channel

  // Sums, [output][sums_stride], to outputs: y is element 0 of the map `y_map`. Behind the sums as many floats as a vector has
  // can be read.
  void finish(const TileKernels& tiles, const EpilogueOperands& operands, const OutputRow& row, float* sums,
              int64_t sums_stride, const FeatureMap& y_map, float* y) const;

 private:
  void pad(const float* values, const TensorDesc& desc, float factor, float* to) const;

  Epilogue epilogue_;
  TensorDesc scale_, bias_;
  FeatureMap residual_[2];
  int64_t channels_ = 0, padded_ = 0, vector_bytes_ = 0;
  bool clamps_ = false, scales_ = false, dense_residuals_ = true;
};

}  // namespace sparkle::cpu
