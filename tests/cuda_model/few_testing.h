// Random layers for the kernels of the gemm variant "few", run in the model.
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace sparkle::cuda {

struct FewLayer {
  int n = 1, c = 1, k = 1, h = 1, w = 1, r = 1, s = 1, pad_h = 0, pad_w = 0, p = 1, q = 1;  // p, q: outputs
  int gap_x = 0, gap_y = 0;  // elements beside rows that belong to nobody
  bool fp16 = false, scale = false, bias = false;
  int activation = 0;
  std::string text() const;
};
// Sizes that the variant serves; every other one lies so that copies of 16 bytes take it.
FewLayer random_few_layer(std::mt19937& random);

// Launches the layer's kernel, or the one of this name: the first difference beyond what the sum's length and the types allow,
// or the model's fault; empty where all is well. `blocks`: of the grid.
std::string run_few_in_model(const FewLayer& layer, uint32_t seed, uint32_t blocks, const std::string& name = "");
// The kernel that the layer would have; empty: the variant does not run it.
std::string few_kernel_of(const FewLayer& layer);

}  // namespace sparkle::cuda
