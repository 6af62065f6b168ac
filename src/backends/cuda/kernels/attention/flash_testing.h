// Random attention for the kernels over blocks of queries: operands as a kernel is given them, and the family's reference.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "backends/cuda/kernels/attention/attention_record.h"
#include "base/dtype.h"
#include "families/attention/attention.h"

namespace sparkle::cuda {

// The kernel, and what its launch takes.
struct FlashKernel {
  std::string name;
  DType type = DType::f16;
  int queries = 64, size = 64, threads = 128;
  bool matrices = true;
};

struct AttentionCase {
  int batches = 1, heads = 2, shared_heads = 1;  // heads of queries that share keys and values
  int queries = 70, keys = 130, depth = 64, columns = 64;
  int gap = 0;              // elements between rows that belong to nobody
  bool transposed = false;  // rows of keys, values and results lie beside each other
  bool boolean_mask = false, hides_rows = false, shared_mask = false;
  int mask_keys = 0;
  bool special = false;  // NaN and infinities among queries, keys and the mask
  double growth = 0;     // of scores from key to key
  AttentionParams params;
  std::string text() const;
};
AttentionCase random_attention(std::mt19937& random, int size);

// Launches the kernel in the model: the first difference beyond what the types allow, or the model's fault; empty where all is
// well. The seed is of the operands and of the order of threads.
std::string run_in_model(const FlashKernel& kernel, const AttentionCase& c, uint32_t seed);

}  // namespace sparkle::cuda
