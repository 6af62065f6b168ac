// Exact rewrites, one small function per theme: each sweeps the operators once and says whether it changed anything. They
// take only what is certain, so that they work before shapes are known and after.
#pragma once

#include "graph/rewrites/editor.h"

namespace sparkle {

struct Rewrite {
  const char* name;
  bool (*run)(Editor& editor);
};

// Each in the file of its name.
bool fold_constants(Editor& editor);             // operators on constants alone
bool resolve_clips(Editor& editor);              // Clip's constant bounds; Clip and Relu of one another merged
bool drop_no_ops(Editor& editor);                // Identity, casts to the same type, reshapes to the same shape, ...
bool merge_moves(Editor& editor);                // chains of Transpose, chains of Reshape
bool merge_pads(Editor& editor);                 // zeros around Conv and pooling
bool fold_affine(Editor& editor);                // BatchNormalization, Mul, Add ... per channel into weights and bias
bool match_activations(Editor& editor);          // SiLU, hard swish, GELU, Mish as exported
bool simplify_powers(Editor& editor);            // x^2, x^0.5, x^1
bool match_quantized(Editor& editor);            // DequantizeLinear, operator, QuantizeLinear to one on integers
bool match_matmul_bias(Editor& editor);          // Add(MatMul(x, w), b) -> MatMul with c
bool match_group_normalization(Editor& editor);  // Reshape, InstanceNormalization, Reshape and affine
bool match_attention(Editor& editor);            // MatMul, Softmax, MatMul
bool share_constants(Editor& editor);            // equal small constants become one

}  // namespace sparkle
