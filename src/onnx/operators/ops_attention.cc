// Attention and the rotary embedding of positions.
#include "onnx/node.h"

namespace sparkle {
namespace {

OpParams read_attention(Node& node) {
  AttentionOp op;
  op.query_heads = node.integer("q_num_heads", 0);
  op.key_heads = node.integer("kv_num_heads", 0);
  op.causal = node.flag("is_causal", false);
  if (node.has("scale")) op.scale = node.real("scale", 0);
  op.softcap = node.real("softcap", 0);
  op.left = node.integer("left_window_size", -1);
  op.right = node.integer("right_window_size", -1);
  op.scores = node.integer("qk_matmul_output_mode", 0);
  node.ignore("softmax_precision");  // sums and exponentials are fp32 at least
  if (op.scale && !(*op.scale >= 0)) node.fail(Reason::bad_model, "has the scale " + std::to_string(*op.scale));
  if (op.scores < 0 || op.scores > 3) return UnknownOp{"its attribute 'qk_matmul_output_mode' is " + std::to_string(op.scores)};
  if (node.given(4) != node.given(5)) node.fail(Reason::bad_model, "has a past key without a past value, or the reverse");
  if (node.given(4) && node.given(6)) node.fail(Reason::bad_model, "has past keys and lengths of keys at once");
  return op;
}

OpParams read_rotary_embedding(Node& node) {
  RotaryEmbeddingOp op;
  op.interleaved = node.flag("interleaved", false);
  op.heads = node.integer("num_heads", 0);
  op.turned = node.integer("rotary_embedding_dim", 0);
  return op;
}

constexpr OperatorRow kRows[] = {
    {"Attention", read_attention, 3},
    {"RotaryEmbedding", read_rotary_embedding, 3},
};
}  // namespace

std::span<const OperatorRow> attention_operators() { return kRows; }

}  // namespace sparkle
