// Shape rules of Attention and RotaryEmbedding.
#include <algorithm>
#include <cmath>

#include "graph/infer/infer.h"

namespace sparkle {
namespace {

// [batch, heads, rows, size] of an operand of rank 3 or 4.
Result<Dims> headed(InferContext& c, int i, int64_t heads) {
  const Dims& x = c.shape(i);
  if (x.size() == 4) return x;
  if (x.size() != 3) return c.fail(Reason::bad_shape, c.describe(i) + " should have rank 3 or 4");
  if (heads < 1 || x[2] % heads != 0)
    return c.fail(Reason::bad_shape,
                  "the last axis of " + c.describe(i) + " does not divide into " + std::to_string(heads) + " heads");
  return Dims{x[0], heads, x[1], x[2] / heads};
}

Status expect_shape(InferContext& c, int i, const Dims& shape, const char* what) {
  if (!c.given(i) || c.shape(i) == shape) return ok();
  return c.fail(Reason::bad_shape,
                "its " + std::string(what) + " " + c.describe(i) + " should have the shape " + shape.to_string());
}

}  // namespace

Status infer_rule(InferContext& c, AttentionOp& op) {
  SPARKLE_CHECK(c.expect(3, 7));
  SPARKLE_TRY(q, headed(c, 0, op.query_heads));
  SPARKLE_TRY(k, headed(c, 1, op.key_heads));
  SPARKLE_TRY(v, headed(c, 2, op.key_heads));
  if (c.shape(0).size() != c.shape(1).size() || c.shape(0).size() != c.shape(2).size())
    return c.fail(Reason::bad_shape, "queries, keys and values should have the same rank");
  if (q[0] != k[0] || q[0] != v[0] || k[1] != v[1] || k[2] != v[2] || q[3] != k[3])
    return c.fail(Reason::bad_shape, c.describe(0) + ", " + c.describe(1) + " and " + c.describe(2) + " do not fit together");
  if (k[1] < 1 || q[1] % k[1] != 0)
    return c.fail(Reason::bad_shape,
                  std::to_string(q[1]) + " heads of queries cannot share " + std::to_string(k[1]) + " heads of keys evenly");
  for (int i : {0, 2})
    if ((i == 0 ? q : v)[3] < 1) return c.fail(Reason::bad_shape, c.describe(i) + " has heads of no elements");
  if (op.left < -1 || op.right < -1) return c.fail(Reason::bad_model, "a bound of its window is below -1");
  // Wider than any tensor: positions plus a bound stay far from overflow.
  constexpr int64_t kWidest = int64_t{1} << 48;
  op.left = std::min(op.left, kWidest), op.right = std::min(op.right, kWidest);
  if (c.given(4) != c.given(5)) return c.fail(Reason::bad_model, "past key and past value belong together");
  int64_t past = 0;
  if (c.given(4)) {
    SPARKLE_CHECK(c.expect_rank(4, 4));
    past = c.shape(4)[2];
    SPARKLE_CHECK(expect_shape(c, 4, {k[0], k[1], past, k[3]}, "past key"));
    SPARKLE_CHECK(expect_shape(c, 5, {v[0], v[1], past, v[3]}, "past value"));
  }
  SPARKLE_TRY(total, c.size(WideInt{past} + k[2], "the number of keys"));
  SPARKLE_CHECK(expect_shape(c, 6, {q[0]}, "list of lengths"));
  if (c.given(3)) {
    // A last axis that is shorter hides the keys beyond it.
    Dims mask = c.shape(3);
    const Dims whole{q[0], q[1], q[2], total};
    if (!mask.empty() && mask.back() <= total) mask[mask.size() - 1] = total;
    const auto both = broadcast(mask, whole);
    if (mask.empty() || !both || *both != whole)
      return c.fail(Reason::bad_shape, "its mask " + c.describe(3) + " does not broadcast to " + whole.to_string());
  }
  if (!op.scale) op.scale = 1 / std::sqrt(static_cast<double>(q[3]));
  SPARKLE_CHECK(c.set(1, c.type(1), {k[0], k[1], total, k[3]}));
  SPARKLE_CHECK(c.set(2, c.type(2), {v[0], v[1], total, v[3]}));
  SPARKLE_CHECK(c.set(3, c.type(0), {q[0], q[1], q[2], total}));
  if (c.shape(0).size() == 4) return c.set(0, c.type(0), {q[0], q[1], q[2], v[3]});
  SPARKLE_TRY(width, c.size(WideInt{q[1]} * v[3], "its output"));
  return c.set(0, c.type(0), {q[0], q[2], width});
}

Status infer_rule(InferContext& c, RotaryEmbeddingOp& op) {
  SPARKLE_CHECK(c.expect(3, 4));
  SPARKLE_TRY(x, headed(c, 0, op.heads));
  if (op.turned == 0) op.turned = x[3];
  if (op.turned < 0 || op.turned > x[3] || op.turned % 2 != 0)
    return c.fail(Reason::bad_shape, std::to_string(op.turned) + " elements cannot turn in rows of " + std::to_string(x[3]));
  const int64_t half = op.turned / 2;
  for (int i = 1; i <= 2; ++i) {
    SPARKLE_CHECK(c.expect_rank(i, c.given(3) ? 2 : 3));
    // Of wider tables, as files from before the operator's first correction have them, the first columns count.
    const int64_t columns = std::max(half, c.shape(i).back());
    SPARKLE_CHECK(expect_shape(c, i, c.given(3) ? Dims{c.shape(1)[0], columns} : Dims{x[0], x[2], columns}, "table"));
  }
  SPARKLE_CHECK(expect_shape(c, 3, {x[0], x[2]}, "list of positions"));
  return c.set(0, c.type(0), c.shape(0));
}

}  // namespace sparkle
