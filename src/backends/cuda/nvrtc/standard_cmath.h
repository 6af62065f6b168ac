// <cmath> for NVRTC, which has no standard library: the functions of operations of pointwise programs. Those of floats are
// named by their own names, so that nothing is computed in double precision unasked.
#pragma once

namespace std {

#define SPARKLE_FUNCTION(name)                                            \
  __device__ __forceinline__ float name(float x) { return ::name##f(x); } \
  __device__ __forceinline__ double name(double x) { return ::name(x); }
#define SPARKLE_FUNCTION_OF_TWO(name)                                                 \
  __device__ __forceinline__ float name(float x, float y) { return ::name##f(x, y); } \
  __device__ __forceinline__ double name(double x, double y) { return ::name(x, y); }
SPARKLE_FUNCTION(exp)
SPARKLE_FUNCTION(expm1)
SPARKLE_FUNCTION(log)
SPARKLE_FUNCTION(log1p)
SPARKLE_FUNCTION(sqrt)
SPARKLE_FUNCTION(sin)
SPARKLE_FUNCTION(cos)
SPARKLE_FUNCTION(tan)
SPARKLE_FUNCTION(asin)
SPARKLE_FUNCTION(acos)
SPARKLE_FUNCTION(atan)
SPARKLE_FUNCTION(sinh)
SPARKLE_FUNCTION(cosh)
SPARKLE_FUNCTION(tanh)
SPARKLE_FUNCTION(asinh)
SPARKLE_FUNCTION(acosh)
SPARKLE_FUNCTION(atanh)
SPARKLE_FUNCTION(erf)
SPARKLE_FUNCTION(floor)
SPARKLE_FUNCTION(ceil)
SPARKLE_FUNCTION(nearbyint)
SPARKLE_FUNCTION_OF_TWO(pow)
SPARKLE_FUNCTION_OF_TWO(fmod)
SPARKLE_FUNCTION_OF_TWO(copysign)
#undef SPARKLE_FUNCTION
#undef SPARKLE_FUNCTION_OF_TWO
__device__ __forceinline__ float abs(float x) { return ::fabsf(x); }
__device__ __forceinline__ double abs(double x) { return ::fabs(x); }

}  // namespace std
