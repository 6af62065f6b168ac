// Activations in fp32, in the order of families/values/activation.h; `kind` is a constant of the pipeline, so that one remains.
float sigmoid(float x) { return 1.0 / (1.0 + exp(-x)); }
// log(1 + x) for x in (0, 1], without losing small x.
float log_of_one_plus(float x) {
  const float u = 1.0 + x;
  return u == 1.0 ? x : log(u) * (x / (u - 1.0));
}
float softplus(float x) { return max(x, 0.0) + log_of_one_plus(exp(-abs(x))); }
// exp(x) - 1 for x <= 0: the series where the difference would cancel.
float exp_minus_one(float x) {
  return x > -0.25 ? x * (1.0 + x * (0.5 + x * (1.0 / 6.0 + x * (1.0 / 24.0 + x * (1.0 / 120.0 + x * (1.0 / 720.0)))))) : exp(x) - 1.0;
}
float tanh_of(float x) {
  const float e = exp_minus_one(-2.0 * abs(x));
  return sign(x) * (-e / (2.0 + e));
}
// Abramowitz and Stegun 7.1.26 is good to 1.5e-7 absolute; near zero the series keeps small values whole.
float erf_of(float x) {
  const float a = abs(x);
  if (a < 0.5) {
    const float s = a * a;
    return x * (1.1283791671 + s * (-0.3761263890 + s * (0.1128379167 + s * (-0.0268661706 + s * (0.0052239776 + s * -0.0008548327)))));
  }
  const float t = 1.0 / (1.0 + 0.3275911 * a);
  const float p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return sign(x) * (1.0 - p * exp(-a * a));
}

float activation_of(uint kind, float x, float a, float b) {
  switch (kind) {
    case 1u: return x < 0.0 ? 0.0 : x;
    case 2u: return x < a ? a : x > b ? b : x;
    case 3u: return x < 0.0 ? a * x : x;
    case 4u: return x < 0.0 ? a * exp_minus_one(x) : x;
    case 5u: return b * (x < 0.0 ? a * exp_minus_one(x) : x);
    case 6u: return sigmoid(x);
    case 7u: return clamp(a * x + b, 0.0, 1.0);
    case 8u: return tanh_of(x);
    case 9u: return x * sigmoid(x);
    case 10u: return x * clamp(x / 6.0 + 0.5, 0.0, 1.0);
    case 11u: return 0.5 * x * (1.0 + erf_of(x * 0.70710678118654752));
    case 12u: return 0.5 * x * (1.0 + tanh_of(0.79788456080286536 * (x + 0.044715 * x * x * x)));
    case 13u: return softplus(x);
    case 14u: return x * tanh_of(softplus(x));
    default: return x;
  }
}
// Drivers may take comparisons for smallest and largest values, which lose NaN: it is told by its bits.
float activated(uint kind, float x, float a, float b) {
  const float y = activation_of(kind, x, a, b);
  return kind != 0u && (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u ? x : y;
}
