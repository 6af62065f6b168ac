// Expressions: random ones made from the grammar against an evaluator of the test's own, in double precision; each error with
// the character it points at; types and shapes of the graphs.
#include "graph/expressions/expression.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "graph/expressions/expression_functions.h"

namespace sparkle {
namespace {

// A rule of the grammar expanded: its text, how tightly it binds, and its value for given x, y, z.
struct Made {
  std::string text;
  int rank = 0;  // 0 choice ... 9 primary, as in docs/expressions.md
  double value = 0;
};

class Grammar {
 public:
  explicit Grammar(uint64_t seed) : random_(seed) {
    for (double& v : operands_) v = std::round(normal_(random_) * 8) / 4;
  }
  std::vector<double> operands(const std::vector<std::string>& names) const {
    std::vector<double> values;
    for (const std::string& n : names) values.push_back(operands_[static_cast<size_t>(n[0] - 'x')]);
    return values;
  }
  Made expression(int depth) {
    if (depth == 0 || chance(12)) return leaf();
    switch (between(0, 10)) {
      case 0: {
        const Made c = expression(depth - 1), a = expression(depth - 1), b = expression(depth - 1);
        return {at_least(c, 1) + space() + "?" + space() + a.text + space() + ":" + space() + b.text, 0,
                c.value != 0 ? a.value : b.value};
      }
      case 1: return left(depth, 1, {{" or ", or_}, {"||", or_}});
      case 2: return left(depth, 2, {{" xor ", [](double a, double b) { return double((a != 0) != (b != 0)); }}});
      case 3: {
        const auto both = [](double a, double b) { return double(a != 0 && b != 0); };
        return left(depth, 3, {{" and ", both}, {"&&", both}});
      }
      case 4: {
        const Made x = expression(depth - 1);
        return {(chance(50) ? "not " : "!") + at_least(x, 4), 4, double(x.value == 0)};
      }
      case 5: {
        const std::vector<Binary> all = {{"<", [](double a, double b) { return double(a < b); }},
                                         {"<=", [](double a, double b) { return double(a <= b); }},
                                         {">", [](double a, double b) { return double(a > b); }},
                                         {">=", [](double a, double b) { return double(a >= b); }},
                                         {"==", [](double a, double b) { return double(a == b); }},
                                         {"!=", [](double a, double b) { return double(a != b); }}};
        const Made a = expression(depth - 1), b = expression(depth - 1);
        const Binary& op = pick(all);
        return {at_least(a, 6) + space() + op.sign + space() + at_least(b, 6), 5, op.value(a.value, b.value)};
      }
      case 6:
        return left(depth, 6,
                    {{"+", [](double a, double b) { return a + b; }}, {"-", [](double a, double b) { return a - b; }}});
      case 7:
        return left(depth, 7,
                    {{"*", [](double a, double b) { return a * b; }},
                     {"/", [](double a, double b) { return a / b; }},
                     {"%", [](double a, double b) { return evaluate(PointwiseOp::floor_mod, a, b, 0, 0, 0); }}});
      case 8: {
        const Made x = expression(depth - 1);
        const bool minus = chance(60);
        return {(minus ? "-" : "+") + space() + at_least(x, 8), 8, minus ? -x.value : x.value};
      }
      case 9: {  // the exponent may have a sign and is a power itself where it is one
        const Made a = expression(depth - 1), b = expression(depth - 1);
        return {at_least(a, 10) + space() + "**" + space() + at_least(b, 8), 9, std::pow(a.value, b.value)};
      }
      default: return call(depth);
    }
  }

 private:
  struct Binary {
    std::string sign;
    double (*value)(double, double);
  };
  static double or_(double a, double b) { return double(a != 0 || b != 0); }
  int between(int a, int b) { return std::uniform_int_distribution<int>(a, b)(random_); }
  bool chance(int percent) { return between(1, 100) <= percent; }
  std::string space() { return chance(40) ? std::string(static_cast<size_t>(between(1, 2)), ' ') : ""; }
  template <class T>
  const T& pick(const std::vector<T>& list) {
    return list[static_cast<size_t>(between(0, static_cast<int>(list.size()) - 1))];
  }
  std::string at_least(const Made& m, int rank) {
    return m.rank >= rank && !chance(10) ? m.text : "(" + space() + m.text + space() + ")";
  }
  Made left(int depth, int rank, const std::vector<Binary>& all) {
    const Made a = expression(depth - 1), b = expression(depth - 1);
    const Binary& op = pick(all);
    return {at_least(a, rank) + space() + op.sign + space() + at_least(b, rank + 1), rank, op.value(a.value, b.value)};
  }
  Made leaf() {
    if (chance(60)) {
      const int i = between(0, 2);
      return {std::string(1, static_cast<char>('x' + i)), 10, operands_[static_cast<size_t>(i)]};
    }
    const std::vector<std::pair<std::string, double>> numbers = {{"0", 0},
                                                                 {"1", 1},
                                                                 {"2.5", 2.5},
                                                                 {".5", 0.5},
                                                                 {"3.", 3},
                                                                 {"1e-3", 1e-3},
                                                                 {"2E+2", 200},
                                                                 {"0.1", 0.1},
                                                                 {"pi", 3.141592653589793},
                                                                 {"inf", std::numeric_limits<double>::infinity()},
                                                                 {"nan", std::numeric_limits<double>::quiet_NaN()}};
    const auto& [text, value] = pick(numbers);
    return {text, 10, value};
  }
  Made call(int depth) {
    const auto all = expression_function_list();
    const ExpressionFunction& f = all[static_cast<size_t>(between(0, static_cast<int>(all.size()) - 1))];
    std::string text = std::string(f.name) + space() + "(";
    std::vector<double> values;
    const int count = f.values == kAnyValues ? between(2, 4) : f.values;
    for (int i = 0; i < count; ++i) {
      const Made x = expression(depth - 1);
      text += (i ? "," + space() : "") + x.text;
      values.push_back(x.value);
    }
    double parameters[2] = {f.defaults[0], f.defaults[1]};
    const int given = f.needed ? f.parameters : between(0, f.parameters);
    for (int i = 0; i < given; ++i) {
      parameters[i] = i == 0 ? -1.25 : 3.5;
      text += i == 0 ? ", -1.25" : ", 7 / 2";
    }
    text += ")";
    values.resize(std::max<size_t>(values.size(), 3));
    if (f.values != kAnyValues)
      return {text, 10, evaluate(f.op, values[0], values[1], values[2], parameters[0], parameters[1])};
    double result = values[0];
    for (int i = 1; i < count; ++i) result = evaluate(f.op, result, values[static_cast<size_t>(i)], 0, 0, 0);
    return {text, 10, result};
  }

  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::array<double, 3> operands_{};
};

TEST(Expression, RandomOnesOfTheGrammarHaveTheirValue) {
  std::set<std::string> seen;
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    Grammar grammar(seed);
    const Made made = grammar.expression(static_cast<int>(seed % 6));
    const auto parsed = parse_expression(made.text);
    ASSERT_TRUE(parsed.ok()) << "seed " << seed << "\n" << parsed.error().message;
    const double value = evaluate(*parsed, grammar.operands(parsed->names));
    // The same operations in the same order: the same bits, but for the sign of NaN.
    ASSERT_TRUE(std::bit_cast<uint64_t>(value) == std::bit_cast<uint64_t>(made.value) ||
                (value != value && made.value != made.value))
        << "seed " << seed << ": " << made.text << " is " << value << " instead of " << made.value;
    for (const ExpressionStep& s : parsed->steps)
      if (s.kind == ExpressionStep::Kind::operation) seen.insert(std::string(name_of(s.op)));
  }
  EXPECT_GE(seen.size(), 60u) << "hardly any functions were met";
}

TEST(Expression, BindsAsWritten) {
  const auto value = [](const std::string& text) {
    const auto e = parse_expression(text);
    EXPECT_TRUE(e.ok()) << e.error().message;
    return evaluate(*e, {});
  };
  EXPECT_EQ(value("-2 ** 2"), -4);
  EXPECT_EQ(value("2 ** -1"), 0.5);
  EXPECT_EQ(value("2 ** 3 ** 2"), 512);
  EXPECT_EQ(value("1 - 2 - 3"), -4);
  EXPECT_EQ(value("8 / 4 / 2"), 1);
  EXPECT_EQ(value("-7 % 3"), 2);
  EXPECT_EQ(value("1 + 2 * 3 < 8 and not 0"), 1);
  EXPECT_EQ(value("1 < 2 ? 3 : 4 < 5 ? 6 : 7"), 3);
  EXPECT_EQ(value("0 or 1 xor 1"), 0);
  EXPECT_EQ(value("clip(5, -1, 2)"), 2);
  EXPECT_EQ(value("nan != nan"), 1);
  EXPECT_EQ(value("1e-400"), 0);
}

// The error's first line, and the place of its caret.
void expect_error(const std::string& text, size_t column, const std::string& says,
                  const std::vector<ExpressionOperand>& operands = {}) {
  auto parsed = parse_expression(text);
  std::string message;
  if (!parsed.ok()) {
    message = parsed.error().message;
  } else {
    const auto graph = expression_graph(*parsed, operands);
    ASSERT_FALSE(graph.ok()) << text;
    message = graph.error().message;
  }
  const std::string head = "column " + std::to_string(column) + ": " + says;
  EXPECT_EQ(message.substr(0, head.size()), head) << message;
  const size_t caret = message.rfind('\n');
  ASSERT_NE(caret, std::string::npos);
  EXPECT_EQ(message.substr(caret), "\n" + std::string(column + 1, ' ') + "^") << message;
  EXPECT_NE(message.find("\n  " + text + "\n"), std::string::npos) << message;
}

TEST(Expression, ErrorsPointAtTheCharacter) {
  expect_error("", 1, "the expression ends where a number, a name or '(' should be");
  expect_error("x + ", 5, "the expression ends where a number, a name or '(' should be");
  expect_error("x + * y", 5, "'*' stands where a number, a name or '(' should be");
  expect_error("(x + y", 7, "the expression ends where ')' should be");
  expect_error("x y", 3, "'y' stands where an operator or the end should be");
  expect_error("x + slu(x)", 5, "there is no function 'slu'; did you mean 'silu'?");
  expect_error("wibble(x)", 1, "there is no function 'wibble'; docs/expressions.md lists them");
  expect_error("x ^ 2", 3, "there is no operator '^'; write ** for powers");
  expect_error("x & y", 3, "there is no operator '&'; write and");
  expect_error("x | y", 3, "there is no operator '|'; write or");
  expect_error("x = y", 3, "there is no operator '='; write == to compare");
  expect_error("~x", 1, "there is no operator '~'; write not");
  expect_error("x # y", 3, "the character '#' has no meaning here");
  expect_error("a < b < c", 7, "comparisons do not chain; write a < b and b < c");
  expect_error("2x", 2, "'x' does not belong to a number; write * between factors");
  expect_error("1.5.2", 4, "'.' does not belong to a number");
  expect_error("1e999", 1, "this number is beyond the range of double precision");
  expect_error("exp(x, y)", 1, "'exp' takes 1 value, 2 are given");
  expect_error("max(x)", 1, "'max' takes 2 or more values, 1 is given");
  expect_error("clip(x)", 1, "'clip' takes 3 values, 1 is given");
  expect_error("elu()", 1, "'elu' takes 1 to 2 values, 0 are given");
  expect_error("elu(x, y)", 8, "value 2 of 'elu' must be a number");
  expect_error("exp + 1", 1, "'exp' is a function; write exp(...)");
  expect_error("x ? y", 6, "the expression ends where ':' should be");
  expect_error("f32(x, y)", 1, "'f32' takes 1 value, 2 are given");
  expect_error("x and or y", 7, "'or' stands where a number, a name or '(' should be");
  expect_error("max(x y)", 7, "'y' stands where ',' or ')' should be");

  const ExpressionOperand x{"x", DType::f32, {2, 3}, false, 0}, y{"y", DType::f32, {4}, false, 0};
  const ExpressionOperand u{"u", DType::u64, {3}, false, 0}, i{"i", DType::i32, {3}, false, 0},
      q{"q", DType::f8e5m2, {3}, false, 0};
  expect_error("x * z", 5, "'z' is not given; there are x", {x});
  expect_error("1 + z", 5, "'z' is not given; nothing is");
  expect_error("x + exp(x * y)", 11, "the shapes 2x3 and 4 do not broadcast", {x, y});
  expect_error("u + i", 3, "u64 and i32 have no common type; convert one, as in i64(x)", {u, i});
  expect_error("1 + q", 3, "nothing is computed in f8e5m2; convert it, as in f32(x)", {q});
  expect_error("i * 3000000000", 3, "the number does not fit i32", {i});
  expect_error("i + i32(4) / (i32(1) - i32(1))", 12, "an integer constant is divided by zero", {i});

  // Columns count characters, lines are counted, and only a part of a long text is shown.
  EXPECT_EQ(error_at(Reason::bad_format, "\xc3\xa4\xc3\xb6+", 4, "m").message, "column 3: m\n  \xc3\xa4\xc3\xb6+\n    ^");
  EXPECT_EQ(error_at(Reason::bad_format, "a +\nb c", 6, "m").message, "line 2, column 3: m\n  b c\n    ^");
  const std::string far = error_at(Reason::bad_format, std::string(500, 'a') + "?" + std::string(500, 'b'), 500, "m").message;
  EXPECT_EQ(far, "column 501: m\n  " + std::string(60, 'a') + "?" + std::string(59, 'b') + "\n  " + std::string(60, ' ') + "^");
}

TEST(Expression, LimitsAreErrors) {
  const auto says = [](const std::string& text, const std::string& what) {
    const auto e = parse_expression(text);
    ASSERT_FALSE(e.ok());
    EXPECT_NE(e.error().message.find(what), std::string::npos) << e.error().message;
  };
  says(std::string(100000, '('), "the expression is longer than 65536 characters");
  says(std::string(60000, '('), "nested more than 200 deep");
  says(std::string(60000, '-') + "x", "nested more than 200 deep");
  says(std::string(60000, '!') + "x", "nested more than 200 deep");
  std::string powers = "x", sums = "x";
  for (int i = 0; i < 10000; ++i) powers += "**x", sums += "+x";
  says(powers, "nested more than 200 deep");
  says(sums, "the expression has more than 4096 steps");
}

TEST(Expression, TypesMeet) {
  const auto type_of = [](const std::string& text, DType x, DType y) {
    const auto e = parse_expression(text);
    EXPECT_TRUE(e.ok());
    const auto g = expression_graph(*e, {{"x", x, {2, 1}, false, 0}, {"y", y, {3}, false, 0}});
    EXPECT_TRUE(g.ok()) << g.error().message;
    return g->tensor(g->outputs[0]).dtype;
  };
  using enum DType;
  EXPECT_EQ(type_of("x + y", f32, f32), f32);
  EXPECT_EQ(type_of("x + y", f16, bf16), f32);
  EXPECT_EQ(type_of("x + y", f16, u8), f16);
  EXPECT_EQ(type_of("x + y", f32, i32), f64);
  EXPECT_EQ(type_of("x + y", u8, i8), i16);
  EXPECT_EQ(type_of("x + y", u32, i64), i64);
  EXPECT_EQ(type_of("x < y", f32, f32), boolean);
  EXPECT_EQ(type_of("where(x < 0, y, 1)", f32, i64), i64);
  EXPECT_EQ(type_of("(x < 0) + (y < 0)", f32, f32), i32);
  EXPECT_EQ(type_of("x + 0.5", i8, i8), f32);
  EXPECT_EQ(type_of("x + 0.5", i64, i8), f64);
  EXPECT_EQ(type_of("x * 2", i8, i8), i8);
  EXPECT_EQ(type_of("exp(x)", u8, i8), f32);
  EXPECT_EQ(type_of("f16(x) * 2", i64, i8), f16);
  EXPECT_EQ(type_of("not x", f32, f32), boolean);
  EXPECT_EQ(type_of("clip(x, 0, 0.5)", f16, f32), f16);
}

}  // namespace
}  // namespace sparkle
