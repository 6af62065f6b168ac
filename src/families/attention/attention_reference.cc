// The oracle of the attention family: one query after another in double precision, all its scores kept.
#include "families/attention/attention_reference.h"

#include <cmath>
#include <limits>

#include "families/attention/attention.h"
#include "families/values/element.h"
#include "families/loops/walk.h"

namespace sparkle {
namespace {

double load(const TensorView& view, const Dims& at) { return load_element(view.desc.dtype, element_at(view, at)); }

Dims joined(const Dims& batch, int64_t row, int64_t column) {
  Dims at = batch;
  at.push_back(row), at.push_back(column);
  return at;
}

}  // namespace

void attention_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const auto& p = get<AttentionParams>(params);
  const TensorView &q = inputs[0], &k = inputs[1], &v = inputs[2], &y = outputs[0];
  const int rank = q.desc.shape.size();
  const int64_t queries = q.desc.shape[rank - 2], depth = q.desc.shape.back(), keys = k.desc.shape[rank - 2];
  const TensorView* mask = p.mask ? &inputs[static_cast<size_t>(mask_operand(p))] : nullptr;
  const TensorView* lengths = p.lengths ? &inputs[static_cast<size_t>(lengths_operand(p))] : nullptr;
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  const double unseen = p.unseen_is_nan ? std::numeric_limits<double>::quiet_NaN() : 0;
  Dims batches = q.desc.shape;
  batches.erase(rank - 1), batches.erase(rank - 2);
  std::vector<double> scores(static_cast<size_t>(keys));
  const auto show = [&](const Dims& batch, int64_t row) {
    for (int64_t j = 0; j < keys; ++j)
      store_element(outputs[1].desc.dtype, scores[static_cast<size_t>(j)], element_at(outputs[1], joined(batch, row, j)));
  };
  for_each_index(batches, [&](const Dims& batch) {
    const int64_t length = lengths ? static_cast<int64_t>(load(*lengths, batch)) : keys;
    for (int64_t row = 0; row < queries; ++row) {
      for (int64_t j = 0; j < keys; ++j) {
        double sum = 0;
        for (int64_t i = 0; i < depth; ++i) sum += load(q, joined(batch, row, i)) * load(k, joined(batch, j, i));
        scores[static_cast<size_t>(j)] = sum * p.scale;
      }
      if (p.scores == ScoreOutput::raw) show(batch, row);
      if (p.softcap > 0)
        for (double& s : scores) s = p.softcap * std::tanh(s / p.softcap);
      if (p.scores == ScoreOutput::capped) show(batch, row);
      const KeyRange seen = key_range(p, row, queries, keys, length);
      double largest = kHidden, total = 0;
      for (int64_t j = 0; j < keys; ++j) {
        double& s = scores[static_cast<size_t>(j)];
        if (j < seen.begin || j >= seen.end || (mask && j >= mask->desc.shape.back())) {
          s = kHidden;
        } else if (mask) {
          const double m = load(*mask, joined(batch, row, j));
          s = mask->desc.dtype != DType::boolean ? s + m : m != 0 ? s : kHidden;
        }
        if (s > largest || std::isnan(s)) largest = s;
      }
      if (p.scores == ScoreOutput::masked) show(batch, row);
      for (double& s : scores) {
        s = largest == kHidden ? 0 : std::exp(s - largest);
        total += s;
      }
      for (double& s : scores) s = total == 0 ? unseen : s / total;
      if (p.scores == ScoreOutput::softmax) show(batch, row);
      for (int64_t c = 0; c < y.desc.shape.back(); ++c) {
        double sum = 0;
        for (int64_t j = 0; j < keys; ++j) sum += scores[static_cast<size_t>(j)] * load(v, joined(batch, j, c));
        store_element(y.desc.dtype, sum, element_at(y, joined(batch, row, c)));
      }
    }
  });
}

}  // namespace sparkle
