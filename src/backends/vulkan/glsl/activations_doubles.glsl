// Activations in double precision, as in activations.glsl; all but the gelu that needs erf.
double activation_f64(uint kind, double x, double a, double b) {
  switch (kind) {
    case 1u: return x < 0.0lf ? 0.0lf : x;
    case 2u: return within_f64(x, a, b);
    case 3u: return x < 0.0lf ? a * x : x;
    case 4u: return x < 0.0lf ? a * expm1_of_f64(x) : x;
    case 5u: return b * (x < 0.0lf ? a * expm1_of_f64(x) : x);
    case 6u: return sigmoid_of_f64(x);
    case 7u: return within_f64(a * x + b, 0.0lf, 1.0lf);
    case 8u: return tanh_of_f64(x);
    case 9u: return x * sigmoid_of_f64(x);
    case 10u: return x * within_f64(x / 6.0lf + 0.5lf, 0.0lf, 1.0lf);
    case 12u: return gelu_tanh_of_f64(x);
    case 13u: return softplus_of_f64(x);
    case 14u: return x * tanh_of_f64(softplus_of_f64(x));
    default: return x;
  }
}
// Comparisons may lose NaN: it is told by its bits.
double activated_f64(uint kind, double x, double a, double b) {
  const double y = activation_f64(kind, x, a, b);
  return kind != 0u && is_nan_of_f64(x) ? x : y;
}
