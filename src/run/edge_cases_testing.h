// The table of docs/nan_and_infinity.md as graphs: for each family what comes out where NaN, infinities and the ends of the
// range go in. Tests run it on every CPU unit, the reference and Vulkan.
#pragma once

#include <cmath>
#include <functional>
#include <limits>

#include "graph/test_graphs.h"
#include "graph/evaluate/values.h"

namespace sparkle::testing {

inline constexpr double kEdgeInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kEdgeNan = std::numeric_limits<double>::quiet_NaN();

struct EdgeCase {
  std::string name;
  Graph graph;
  std::vector<HostTensor> inputs;
  std::vector<double> want;
};

class EdgeCases {
 public:
  static std::vector<EdgeCase> all() {
    EdgeCases cases;
    cases.unary(), cases.binary(), cases.clips(), cases.reductions(), cases.positions(), cases.softmax(), cases.pools();
    cases.conversions(), cases.movement(), cases.norms(), cases.attention();
    return std::move(cases.list_);
  }

 private:
  using Values = std::vector<double>;
  static constexpr double kInf = kEdgeInfinity, kNan = kEdgeNan;

  static HostTensor tensor(const Dims& shape, const Values& v, DType type = DType::f32) { return from_doubles(type, shape, v); }
  static int64_t count(const Values& v) { return static_cast<int64_t>(v.size()); }
  static Values repeated(const Values& v, int times) {
    Values all;
    for (int i = 0; i < times; ++i) all.insert(all.end(), v.begin(), v.end());
    return all;
  }
  void add(std::string name, Graph graph, std::vector<HostTensor> inputs, Values want) {
    list_.push_back({std::move(name), std::move(graph), std::move(inputs), std::move(want)});
  }
  // Each list seven times over, so that whole vectors and what is left of them hold every value.
  void pointwise(PointwiseOp op, const std::vector<Values>& x, const Values& want, double a = 0, double b = 0) {
    GraphBuilder g;
    std::vector<TensorId> ids;
    std::vector<HostTensor> inputs;
    for (const Values& v : x) {
      inputs.push_back(tensor({7 * count(v)}, repeated(v, 7)));
      ids.push_back(g.input(inputs.back().shape));
    }
    add(std::string(name_of(op)), g.done(g.pointwise(op, ids, a, b)), std::move(inputs), repeated(want, 7));
  }

  void unary() {
    using enum PointwiseOp;
    const Values x{kNan, kInf, -kInf, 2, -2, 0};
    const std::pair<PointwiseOp, Values> rows[] = {
        {sign, {kNan, 1, -1, 1, -1, 0}},
        {relu, {kNan, kInf, 0, 2, 0, 0}},
        {sigmoid, {kNan, 1, 0, 0.88079708, 0.11920292, 0.5}},
        {tanh, {kNan, 1, -1, 0.96402758, -0.96402758, 0}},
        {softplus, {kNan, kInf, 0, 2.12692801, 0.12692801, 0.69314718}},
        {softsign, {kNan, kNan, kNan, 2.0 / 3, -2.0 / 3, 0}},
        {hard_swish, {kNan, kInf, kNan, 5.0 / 3, -1.0 / 3, 0}},
        {silu, {kNan, kInf, kNan, 1.76159416, -0.23840584, 0}},
        {mish, {kNan, kInf, kNan, 1.94395896, -0.25250148, 0}},
        {gelu, {kNan, kInf, kNan, 1.95449974, -0.04550026, 0}},
        {gelu_tanh, {kNan, kInf, kNan, 1.95459769, -0.04540231, 0}},
        {exp, {kNan, kInf, 0, 7.3890561, 0.13533528, 1}},
        {log, {kNan, kInf, kNan, 0.69314718, kNan, -kInf}},
        {sqrt, {kNan, kInf, kNan, 1.41421356, kNan, 0}},
        {reciprocal, {kNan, 0, 0, 0.5, -0.5, kInf}},
        {floor, {kNan, kInf, -kInf, 2, -2, 0}},
        {round, {kNan, kInf, -kInf, 2, -2, 0}},
        {erf, {kNan, 1, -1, 0.99532227, -0.99532227, 0}},
        {abs, {kNan, kInf, kInf, 2, 2, 0}},
        {sin, {kNan, kNan, kNan, 0.90929743, -0.90929743, 0}},
        {is_nan, {1, 0, 0, 0, 0, 0}},
    };
    for (const auto& [op, want] : rows) pointwise(op, {x}, want);
    pointwise(thresholded_relu, {x}, {0, kInf, 0, 2, 0, 0}, 1);
    pointwise(leaky_relu, {x}, {kNan, kInf, -kInf, 2, -0.02, 0}, 0.01);
    pointwise(elu, {x}, {kNan, kInf, -1, 2, -0.86466472, 0}, 1);
    pointwise(elu, {x}, {kNan, kInf, 1, 2, 0.86466472, 0}, -1);
    pointwise(selu, {x}, {kNan, kInf, -1.75809932, 2.10140204, -1.52016652, 0}, 1.67326319217681884765625,
              1.05070102214813232421875);
    pointwise(hard_sigmoid, {x}, {kNan, 1, 0, 0.9, 0.1, 0.5}, 0.2, 0.5);
    pointwise(celu, {x}, {kNan, kInf, -2, 2, -1.26424112, 0}, 2);
    // A negative alpha: alpha (exp(x / alpha) - 1) grows beyond all bounds.
    pointwise(celu, {{kNan, kInf, -kInf, 2, -2, -0.1, 0, -60}}, {kNan, kInf, -kInf, 2, -26.7990750, -0.11070138, 0, -kInf},
              -0.5);
    pointwise(log, {{1e-40, 1e-44, 1.1754943508222875e-38, -1e-40}}, {-92.103413, -101.323, -87.3365447, kNan});
    list_.back().name = "log of denormals";
    list_.back().want[1] = std::log(static_cast<double>(1e-44f));
    for (size_t i = 1; i < list_.back().want.size(); i += 4) list_.back().want[i] = list_.back().want[1];
  }

  void binary() {
    using enum PointwiseOp;
    const Values x{kNan, 1, kNan, kInf, -kInf}, y{1, kNan, kNan, 1, 1};
    pointwise(max, {x, y}, {kNan, kNan, kNan, kInf, 1});
    pointwise(min, {x, y}, {kNan, kNan, kNan, 1, -kInf});
    for (const PointwiseOp op : {less, less_equal, greater, greater_equal, equal}) {
      const bool equals = op != less && op != greater;
      pointwise(op, {{kNan, 1, kInf, kNan}, {kNan, kNan, kInf, 0}}, {0, 0, equals ? 1.0 : 0.0, 0});
    }
    pointwise(pow, {{kNan, 1, -8, 0, -kInf, kInf, -2}, {0, kNan, 1.0 / 3, -1, 3, -1, kInf}},
              {1, 1, kNan, kInf, -kInf, 0, kInf});
    pointwise(mod, {{kNan, kInf, 1, -3}, {1, 2, kInf, kInf}}, {kNan, kNan, 1, -3});
    pointwise(prelu, {{kNan, -1, kInf, -kInf}, {0.5, kNan, 0, 0}}, {kNan, kNan, kInf, kNan});
    pointwise(mul, {{0, kNan, kInf}, {kInf, 0, -1}}, {kNan, kNan, -kInf});
  }

  // Bounds that are NaN, constant or not, make all NaN; bounds that cross give the upper one.
  void clips() {
    const Values x{kNan, kInf, -kInf, 2, -2, 0};
    for (const bool constant : {true, false})
      for (const auto& [low, high] : {std::pair{-1.0, 1.0}, std::pair{kNan, 1.0}, std::pair{-1.0, kNan}, std::pair{3.0, 1.0}}) {
        GraphBuilder g;
        std::vector<HostTensor> inputs{tensor({6}, x)};
        std::vector<TensorId> ids{g.input({6})};
        for (const double bound : {low, high}) {
          if (constant) {
            ids.push_back(g.floats({}, {static_cast<float>(bound)}));
          } else {
            ids.push_back(g.input({}));
            inputs.push_back(tensor({}, {bound}));
          }
        }
        const Values want = std::isnan(low) || std::isnan(high) ? Values(6, kNan)
                            : low > high                        ? Values{kNan, 1, 1, 1, 1, 1}
                                                                : Values{kNan, 1, -1, 1, -1, 0};
        const TensorId y = g.pointwise(PointwiseOp::clip, ids, -kInf, kInf);
        add("clip to " + std::to_string(low) + ", " + std::to_string(high) + (constant ? "" : " at run time"), g.done(y),
            std::move(inputs), want);
      }
  }

  // NaN at each place of a row of 37, then rows of infinities.
  void reductions() {
    constexpr int64_t kLength = 37;
    for (const ReduceKind kind : {ReduceKind::max, ReduceKind::min, ReduceKind::sum, ReduceKind::mean, ReduceKind::product,
                                  ReduceKind::l1, ReduceKind::l2, ReduceKind::sum_square, ReduceKind::log_sum_exp}) {
      Values x(static_cast<size_t>(kLength * kLength), 1);
      for (int64_t i = 0; i < kLength; ++i) x[static_cast<size_t>(i * kLength + i)] = kNan;
      for (const int64_t axis : {1, 0}) reduce(kind, {kLength, kLength}, x, axis, Values(kLength, kNan));
    }
    const auto rows = [&](ReduceKind kind, const Values& want) {
      reduce(kind, {3, 3}, {kInf, -kInf, 1, -kInf, -kInf, -kInf, kInf, 1, 2}, 1, want);
    };
    rows(ReduceKind::max, {kInf, -kInf, kInf});
    rows(ReduceKind::min, {-kInf, -kInf, 1});
    rows(ReduceKind::sum, {kNan, -kInf, kInf});
    rows(ReduceKind::mean, {kNan, -kInf, kInf});
    rows(ReduceKind::product, {-kInf, -kInf, kInf});
    rows(ReduceKind::l1, {kInf, kInf, kInf});
    rows(ReduceKind::l2, {kInf, kInf, kInf});
    rows(ReduceKind::log_sum, {kNan, kNan, kInf});
    rows(ReduceKind::log_sum_exp, {kInf, -kInf, kInf});
  }
  void reduce(ReduceKind kind, const Dims& shape, const Values& x, int64_t axis, const Values& want) {
    GraphBuilder g;
    ReduceOp op;
    op.kind = kind;
    op.keep_dims = false;
    add("reduce " + std::string(name_of(kind)), g.done(g.op("Reduce", op, {g.input(shape), g.ints({axis})})),
        {tensor(shape, x)}, want);
  }

  void positions() {
    for (const bool largest : {true, false}) {
      GraphBuilder g;
      ArgOp op;
      op.smallest = !largest;
      op.axis = 1;
      op.keep_dims = false;
      add(largest ? "argmax" : "argmin", g.done(g.op("Arg", op, {g.input({2, 4})})),
          {tensor({2, 4}, {1, kNan, 3, kNan, kInf, -kInf, 1, kInf})}, largest ? Values{1, 0} : Values{1, 1});
      GraphBuilder top;
      TopKOp k;
      k.largest = largest;
      const std::vector<TensorId> y = top.many("TopK", k, {top.input({1, 5}), top.ints({3})}, 2);
      add(largest ? "top 3" : "lowest 3", top.done(y[1]), {tensor({1, 5}, {1, kNan, 3, -kInf, kInf})},
          largest ? Values{1, 4, 2} : Values{3, 0, 2});
    }
    GraphBuilder g;
    add("cumulative sum", g.done(g.op("CumSum", CumSumOp{}, {g.input({4}), g.ints({0})})), {tensor({4}, {1, kNan, 2, kInf})},
        {1, kNan, kNan, kNan});
  }

  void softmax() {
    for (const bool logarithm : {false, true})
      for (const int64_t length : {3, 70}) {
        Values x, want;
        const auto row = [&](const Values& head, double rest, const Values& head_want, double rest_want) {
          for (int64_t i = 0; i < length; ++i) {
            x.push_back(i < 2 ? head[static_cast<size_t>(i)] : rest);
            want.push_back(i < 2 ? head_want[static_cast<size_t>(i)] : rest_want);
          }
        };
        const Values none{kNan, kNan};
        row({1, kNan}, 3, none, kNan);
        row({kInf, 1}, 2, none, kNan);
        row({-kInf, -kInf}, -kInf, none, kNan);
        const double zero = logarithm ? -kInf : 0, one = logarithm ? 0 : 1;
        row({-kInf, 1}, -kInf, {zero, one}, zero);
        GraphBuilder g;
        SoftmaxOp op;
        op.logarithm = logarithm;
        add(logarithm ? "log softmax" : "softmax", g.done(g.op("Softmax", op, {g.input({4, length})})),
            {tensor({4, length}, x)}, want);
      }
  }

  // One NaN in a map of 5x5, at each place in turn: it is in all windows that hold it, and in no other.
  void pools() {
    for (const int64_t channels : {1, 8, 21})
      for (const PoolKind kind : {PoolKind::max, PoolKind::average}) {
        const Dims shape{25, channels, 5, 5};
        Values x, want;
        for (int64_t n = 0; n < 25; ++n)
          for (int64_t c = 0; c < channels; ++c) {
            for (int64_t i = 0; i < 25; ++i) x.push_back(i == n ? kNan : static_cast<double>(i + c));
            for (int64_t row = 0; row < 3; ++row)
              for (int64_t column = 0; column < 3; ++column) {
                const bool inside = n / 5 >= row && n / 5 < row + 3 && n % 5 >= column && n % 5 < column + 3;
                const int64_t at = kind == PoolKind::max ? (row + 2) * 5 + column + 2 : (row + 1) * 5 + column + 1;
                want.push_back(inside ? kNan : static_cast<double>(at + c));
              }
          }
        GraphBuilder g;
        PoolOp op;
        op.kind = kind;
        op.kernel = {3, 3};
        add(std::string(name_of(kind)) + " pool of " + std::to_string(channels) + " channels",
            g.done(g.op("Pool", op, {g.input(shape)})), {tensor(shape, x)}, want);
      }
    GraphBuilder g;
    PoolOp op;
    op.kernel = {2};
    add("max pool of infinities", g.done(g.op("Pool", op, {g.input({1, 1, 4})})),
        {tensor({1, 1, 4}, {-kInf, -kInf, kInf, kNan})}, {-kInf, kInf, kNan});
  }

  void conversions() {
    const Values x{kNan, kInf, -kInf, 2, -2, 0};
    const std::pair<DType, Values> casts[] = {{DType::i32, {0, 2147483647, -2147483648.0, 2, -2, 0}},
                                              {DType::i8, {0, 127, -128, 2, -2, 0}},
                                              {DType::u8, {0, 255, 0, 2, 0, 0}},
                                              {DType::boolean, {1, 1, 1, 1, 1, 0}},
                                              {DType::f16, {kNan, kInf, -kInf, 2, -2, 0}},
                                              {DType::bf16, {kNan, kInf, -kInf, 2, -2, 0}}};
    for (const auto& [type, want] : casts) {
      GraphBuilder g;
      add("cast to " + std::string(name_of(type)), g.done(g.op("Cast", CastOp{type}, {g.input({6})})), {tensor({6}, x)}, want);
    }
    for (const DType type : {DType::u8, DType::i8}) {
      GraphBuilder g;
      const TensorId zero = g.graph.add_constant("zero", tensor({}, {3}, type));
      add("quantize", g.done(g.op("QuantizeLinear", QuantizeOp{}, {g.input({6}), g.floats({}, {0.5f}), zero})),
          {tensor({6}, x)}, type == DType::u8 ? Values{3, 255, 0, 7, 0, 3} : Values{3, 127, -128, 7, -1, 3});
    }
  }

  // A tap of weight 0 makes NaN of an infinity, as a filter does.
  void movement() {
    GraphBuilder g;
    ResizeOp op;
    op.params.mode = ResizeMode::linear;
    op.params.coordinates = ResizeCoordinates::asymmetric;
    add("resize linear", g.done(g.op("Resize", op, {g.input({1, 1, 4}), kAbsent, g.floats({3}, {1, 1, 2})})),
        {tensor({1, 1, 4}, {1, kInf, 2, kNan})}, {kNan, kInf, kInf, kInf, kNan, kNan, kNan, kNan});
    GraphBuilder s;
    ScatterElementsOp scatter;
    scatter.reduction = ScatterReduction::max;
    add("scatter max", s.done(s.op("ScatterElements", scatter, {s.input({3}), s.ints({0, 1, 2}), s.input({3})})),
        {tensor({3}, {1, kNan, 2}), tensor({3}, {kNan, 1, 3})}, {kNan, kNan, 3});
    GraphBuilder w;
    const TensorId c = w.input({2}, DType::boolean);
    add("where", w.done(w.pointwise(PointwiseOp::select, {c, w.input({2}), w.input({2})})),
        {tensor({2}, {1, 0}, DType::boolean), tensor({2}, {1, kNan}), tensor({2}, {kNan, 2})}, {1, 2});
  }

  void norms() {
    GraphBuilder g;
    const TensorId y = g.op("InstanceNormalization", InstanceNormalizationOp{0},
                            {g.input({1, 2, 2}), g.floats({2}, {1, 1}), g.floats({2}, {0, 0})});
    add("instance normalization", g.done(y), {tensor({1, 2, 2}, {kNan, 1, 2, 4})}, {kNan, kNan, -1, 1});
    GraphBuilder l;
    const TensorId z = l.op("LayerNormalization", LayerNormalizationOp{-1, 0}, {l.input({2, 2}), l.floats({2}, {1, 1})});
    add("layer normalization", l.done(z), {tensor({2, 2}, {kInf, 1, 2, 4})}, {kNan, kNan, -1, 1});
  }

  // softmax(q k^T + mask) v, written out: a row that the mask hides wholly has no softmax, with a mask or a product that does
  // it.
  void attention() {
    for (const int64_t keys : {1, 40}) {
      GraphBuilder g;
      const Dims q{1, 1, 3, 2}, k{1, 1, 2, keys}, m{1, 1, 3, keys}, v{1, 1, keys, 4};
      const TensorId scores = g.op("MatMul", MatMulOp{}, {g.input(q), g.input(k)});
      const TensorId sum = g.pointwise(PointwiseOp::add, {scores, g.input(m)});
      const TensorId weights = g.op("Softmax", SoftmaxOp{}, {sum});
      const TensorId y = g.op("MatMul", MatMulOp{}, {weights, g.input(v)});
      Values mask(static_cast<size_t>(3 * keys), -kInf);
      mask[0] = 0;  // row 0 sees one key, row 1 none, row 2 what is no number
      mask[static_cast<size_t>(3 * keys - 1)] = kNan;
      add("attention over " + std::to_string(keys) + " keys", g.done(y),
          {tensor(q, Values(6, 1)), tensor(k, Values(static_cast<size_t>(2 * keys), 0.5)), tensor(m, mask),
           tensor(v, Values(static_cast<size_t>(4 * keys), 0.25))},
          {0.25, 0.25, 0.25, 0.25, kNan, kNan, kNan, kNan, kNan, kNan, kNan, kNan});
    }
  }

  std::vector<EdgeCase> list_;
};

inline std::vector<EdgeCase> edge_cases() { return EdgeCases::all(); }

// The first element that is not as wanted: NaN is NaN, infinities have their sign, numbers agree to 3e-6; empty: none.
inline std::string edge_difference(const EdgeCase& edge, const HostTensor& y) {
  if (y.elements() != static_cast<int64_t>(edge.want.size())) return "another number of elements";
  const std::vector<double> got = as_doubles(y);
  for (size_t i = 0; i < got.size(); ++i) {
    const double want = edge.want[i];
    const bool same = std::isnan(want)   ? std::isnan(got[i])
                      : std::isinf(want) ? got[i] == want
                                         : std::abs(got[i] - want) <= 3e-6 * std::max(1.0, std::abs(want));
    if (!same)
      return edge.name + ": element " + std::to_string(i) + " is " + std::to_string(got[i]) + " instead of " +
             std::to_string(want);
  }
  return {};
}

}  // namespace sparkle::testing
