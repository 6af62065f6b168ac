// The two steps of a separable resize in f32: lines of x are mixed into one, and that line is stretched.
#pragma once

#include <cstdint>
#include <string_view>

namespace sparkle::cpu {

// y[i] = sum over k of w[k] * x[k][i]
struct MixArguments {
  const float* const* x;
  const float* w;
  int taps;
  float* y;
  int64_t n;
  bool stream;  // stores bypass the caches where y's alignment allows it
};
// y[o * stride + r] = sum over k of w[o * taps + k] * x[index[o * taps + k] * run + r], r < run, o < n; taps 1, 2 or 4.
struct StretchRuns {
  const float* x;
  float* y;
  const int32_t* index;
  const float* w;
  int taps;
  int64_t n, run, stride;
  bool stream;  // stores bypass the caches where y's alignment allows it
};
// y[o] = sum over k of w[k * planes + o] * x[index[k * planes + o] + start], o < n, where each group of as many outputs as a
// vector has lanes has its own start: s[g] >= 0 says that all its elements lie within one vector from there on (two vectors
// for -2 - s[g] >= 0); s[g] = -1 that they are anywhere, from x on.
struct StretchElements {
  const float* x;
  float* y;
  const int32_t* index;
  const float* w;
  const int32_t* start;
  int taps;
  int64_t n, planes;
  bool stream;
};
struct LineFunctions {
  void (*mix)(const MixArguments&);
  void (*runs)(const StretchRuns&);
  void (*elements)(const StretchElements&);
  int64_t (*lanes)();
};
// mix is nullptr where there is no such unit.
LineFunctions line_functions(std::string_view unit);

}  // namespace sparkle::cpu
