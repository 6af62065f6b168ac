#include "fix/quantize/bias.h"

#include <algorithm>

namespace sparkle::fix {

std::vector<double> tap_shares(const ::onnx::NodeProto& conv, const Dims& x, const Dims& w, const Dims& y) {
  const int rank = x.size() - 2;
  if (rank < 1 || w.size() != x.size() || y.size() != x.size()) return {};
  const auto listed = [&](const char* name) {
    return ints_attribute(conv, name).value_or(std::vector<int64_t>(static_cast<size_t>(rank), 1));
  };
  const std::vector<int64_t> strides = listed("strides"), dilations = listed("dilations");
  const auto pads = ints_attribute(conv, "pads");
  const std::string automatic = text_attribute(conv, "auto_pad", "NOTSET");
  std::vector<double> shares{1};
  for (int a = 0; a < rank; ++a) {
    const auto i = static_cast<size_t>(a);
    const int64_t in = x[a + 2], out = y[a + 2], taps = w[a + 2];
    int64_t before = pads && i < pads->size() ? (*pads)[i] : 0;
    if (automatic.starts_with("SAME")) {
      const int64_t both = std::max<int64_t>(0, (out - 1) * strides[i] + (taps - 1) * dilations[i] + 1 - in);
      before = automatic == "SAME_UPPER" ? both / 2 : both - both / 2;
    }
    std::vector<double> along;
    for (int64_t t = 0; t < taps; ++t) {
      int64_t met = 0;
      for (int64_t o = 0; o < out; ++o) {
        const int64_t at = o * strides[i] + t * dilations[i] - before;
        met += at >= 0 && at < in;
      }
      along.push_back(out > 0 ? static_cast<double>(met) / static_cast<double>(out) : 0);
    }
    std::vector<double> product;
    for (const double outer : shares)
      for (const double inner : along) product.push_back(outer * inner);
    shares = std::move(product);
  }
  return shares;
}

std::vector<double> mean_shift(const HostTensor& weights, std::span<const float> rounded, int64_t K, int axis,
                               std::span<const double> means, std::span<const double> shares) {
  const auto C = static_cast<int64_t>(means.size()), taps = std::max<int64_t>(1, static_cast<int64_t>(shares.size()));
  std::vector<double> shift(static_cast<size_t>(K), 0.0);
  if (K == 0 || C == 0 || weights.elements() % (K * taps) != 0) return shift;
  const int64_t per_group = weights.elements() / (K * taps), groups = std::max<int64_t>(1, C / std::max<int64_t>(1, per_group));
  if (per_group * groups != C || K % groups != 0) return shift;
  for (int64_t i = 0; i < weights.elements(); ++i) {
    const int64_t k = axis == 0 ? i / (per_group * taps) : i % K;
    const int64_t c = axis == 0 ? k / (K / groups) * per_group + i / taps % per_group : i / K;
    const double difference =
        static_cast<double>(rounded[static_cast<size_t>(i)]) - static_cast<double>(weights.data<float>()[i]);
    const double share = shares.empty() ? 1 : shares[static_cast<size_t>(i % taps)];
    shift[static_cast<size_t>(k)] += difference * share * means[static_cast<size_t>(c)];
  }
  return shift;
}

}  // namespace sparkle::fix
