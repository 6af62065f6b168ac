// Activation: the functions that an epilogue applies to a sum before it is stored, also operations of pointwise programs.
#pragma once

#include <cstdint>
#include <string_view>

namespace sparkle {

enum class Activation : uint8_t {
  none,
  relu,
  clip,
  leaky_relu,
  elu,
  selu,
  sigmoid,
  hard_sigmoid,
  tanh,
  silu,
  hard_swish,
  gelu,
  gelu_tanh,
  softplus,
  mish,
};
std::string_view name_of(Activation activation);
bool parse_name(std::string_view text, Activation& activation);

// The function in double precision: the definition every kernel is compared with.
//   clip: min(max(x,a),b); leaky_relu: x<0 ? a*x : x; elu: x<0 ? a*(exp(x)-1) : x; selu: b*(x<0 ? a*(exp(x)-1) : x);
//   hard_sigmoid: min(max(a*x+b,0),1); silu: x*sigmoid(x); hard_swish: x*min(max(x/6+0.5,0),1); gelu: erf form;
//   gelu_tanh: tanh form; mish: x*tanh(softplus(x)).
double activate(Activation activation, double a, double b, double x);

// What a function takes of vectors of arithmetic, as multiply-adds that take as long, two operations each: measured alone with
// one thread, AVX-512, on a Zen 4 (docs/performance.md, "Functions on CPUs"). 0 for clamps, which are free beside
// sums.
double flops_of(Activation activation);

}  // namespace sparkle
