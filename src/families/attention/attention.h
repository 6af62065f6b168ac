// The attention family: y = softmax(mask(cap(scale * q k^T))) v for each batch, the scores never kept as a whole unless they
// are asked for. m queries and n keys of depth k, values of e columns.
// Operands: q [batch..., m, k], k [batch..., n, k], v [batch..., n, e], then mask [batch..., m, n'] (bool: true is seen; float:
// added; keys from n' on are hidden) and lengths [batch...] (i64: keys from there on are hidden) if present; batch axes
// broadcast by stride 0 (heads that share keys are an axis of stride 0) -> y [batch..., m, e], scores [batch..., m, n] if
// asked. A query that sees no key gives zeros, or NaN where unseen_is_nan. Formulas:
// https://onnx.ai/onnx/operators/onnx__Attention.html
#pragma once

#include "base/record.h"
#include "base/tensor.h"

namespace sparkle {

// What the second output holds: scale * q k^T, that after the soft cap, that with the mask, or the weights of the values.
enum class ScoreOutput : uint8_t { none, raw, capped, masked, softmax };
std::string_view name_of(ScoreOutput output);
bool parse_name(std::string_view text, ScoreOutput& output);

struct AttentionParams {
  double scale = 1;
  double softcap = 0;  // cap * tanh(score / cap); 0: none
  bool mask = false, lengths = false;
  // Query i sees the keys i + offset - left .. i + offset + right; a negative bound is none. A causal mask is right = 0.
  int64_t left = -1, right = -1;
  int64_t offset = 0;               // keys before the first query
  bool offset_from_length = false;  // the offset is each batch's length - m
  ScoreOutput scores = ScoreOutput::none;
  bool unseen_is_nan = false;  // a query that sees no key gives NaN, as softmax has it

  template <class V>
  void visit(V& v) {
    v("scale", scale), v("softcap", softcap), v("mask", mask), v("lengths", lengths), v("left", left), v("right", right);
    v("offset", offset), v("offset_from_length", offset_from_length), v("scores", scores);
    if (v.present("unseen_is_nan", unseen_is_nan)) v("unseen_is_nan", unseen_is_nan);
  }
  friend bool operator==(const AttentionParams&, const AttentionParams&) = default;
};

// The keys that a query may see by position: [begin, end) within [0, n). `length`: the batch's, or n.
struct KeyRange {
  int64_t begin = 0, end = 0;
};
KeyRange key_range(const AttentionParams& params, int64_t query, int64_t queries, int64_t keys, int64_t length);

// Positions of the optional operands, or -1.
inline int mask_operand(const AttentionParams& params) { return params.mask ? 3 : -1; }
inline int lengths_operand(const AttentionParams& params) { return params.lengths ? 3 + params.mask : -1; }

}  // namespace sparkle
