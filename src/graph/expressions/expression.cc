// The parser: one function per rule of the grammar (docs/expressions.md), from what binds least to what binds most.
#include "graph/expressions/expression.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include "graph/expressions/expression_functions.h"

namespace sparkle {
namespace {

constexpr size_t kLongestText = 65536, kMostSteps = 4096;
constexpr int kDeepest = 200;  // nested parentheses and signs: the parser calls itself

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

struct Token {
  enum class Kind : uint8_t { end, number, word, sign } kind = Kind::end;
  std::string_view text;
  size_t at = 0;
  double number = 0;
};

class Parser {
 public:
  explicit Parser(std::string_view text) { result_.text = text; }

  Result<Expression> parse() {
    const std::string_view text = result_.text;
    if (text.size() > kLongestText)
      return error_at(Reason::bad_format, text, 0, "the expression is longer than 65536 characters");
    SPARKLE_CHECK(advance());
    SPARKLE_TRY(last, choice());
    if (token_.kind != Token::Kind::end) return unexpected("an operator or the end");
    // The result is the last step, wherever it was found.
    if (last != static_cast<int>(result_.steps.size()) - 1) {
      const size_t at = result_.steps[static_cast<size_t>(last)].at;
      SPARKLE_TRY(same, operation(PointwiseOp::identity, at, last));
      (void)same;
    }
    return std::move(result_);
  }

 private:
  using Step = ExpressionStep;

  Error fail(size_t at, const std::string& message) const { return error_at(Reason::bad_format, result_.text, at, message); }
  Error unexpected(const std::string& wanted) const {
    if (token_.kind == Token::Kind::end) return fail(token_.at, "the expression ends where " + wanted + " should be");
    return fail(token_.at, "'" + std::string(token_.text.substr(0, 40)) + "' stands where " + wanted + " should be");
  }

  // -- characters to tokens

  Status advance() {
    const std::string_view text = result_.text;
    while (at_ < text.size() && is_space(text[at_])) ++at_;
    token_ = {Token::Kind::end, {}, at_};
    if (at_ == text.size()) return ok();
    const char c = text[at_];
    if (is_digit(c) || (c == '.' && at_ + 1 < text.size() && is_digit(text[at_ + 1]))) return number();
    size_t end = at_;
    if (is_letter(c)) {
      while (end < text.size() && (is_letter(text[end]) || is_digit(text[end]))) ++end;
      token_.kind = Token::Kind::word;
    } else {
      static constexpr std::string_view kSigns[] = {"**", "<=", ">=", "==", "!=", "&&", "||", "+", "-", "*",
                                                    "/",  "%",  "<",  ">",  "!",  "(",  ")",  ",", "?", ":"};
      const auto sign = std::find_if(std::begin(kSigns), std::end(kSigns),
                                     [&](std::string_view s) { return text.substr(at_).starts_with(s); });
      if (sign == std::end(kSigns)) return unknown_sign(c);
      end += sign->size();
      token_.kind = Token::Kind::sign;
    }
    token_.text = text.substr(at_, end - at_);
    at_ = end;
    return ok();
  }
  Status unknown_sign(char c) const {
    switch (c) {
      case '^': return fail(at_, "there is no operator '^'; write ** for powers, xor for truth values");
      case '&': return fail(at_, "there is no operator '&'; write and");
      case '|': return fail(at_, "there is no operator '|'; write or");
      case '=': return fail(at_, "there is no operator '='; write == to compare");
      case '~': return fail(at_, "there is no operator '~'; write not");
      default: break;
    }
    const bool printable = c > ' ' && c < 127;
    return fail(at_, printable ? "the character '" + std::string(1, c) + "' has no meaning here"
                               : "a character that has no meaning stands here");
  }
  Status number() {
    const std::string_view text = result_.text;
    double value = 0;
    const auto [end, failed] = std::from_chars(text.data() + at_, text.data() + text.size(), value);
    if (failed == std::errc::result_out_of_range) {
      // Too small is zero, too large is an error: from_chars does not tell which.
      const std::string_view digits(text.data() + at_, static_cast<size_t>(end - text.data()) - at_);
      const size_t exponent = digits.find_first_of("eE");
      const bool small = exponent == std::string_view::npos ? digits.find_first_of("123456789") > digits.find('.')
                                                            : digits.substr(exponent + 1).starts_with('-');
      if (!small) return fail(at_, "this number is beyond the range of double precision");
      value = 0;
    } else if (failed != std::errc()) {
      return fail(at_, "this is no number");
    }
    const auto stop = static_cast<size_t>(end - text.data());
    token_ = {Token::Kind::number, text.substr(at_, stop - at_), at_, value};
    at_ = stop;
    if (at_ < text.size() && (is_letter(text[at_]) || text[at_] == '.'))
      return fail(at_, "'" + std::string(1, text[at_]) + "' does not belong to a number; write * between factors");
    return ok();
  }

  bool is_sign(std::string_view s) const { return token_.kind == Token::Kind::sign && token_.text == s; }
  bool is_word(std::string_view s) const { return token_.kind == Token::Kind::word && token_.text == s; }
  Status expect(std::string_view sign, const std::string& wanted) {
    if (!is_sign(sign)) return unexpected(wanted);
    return advance();
  }

  // -- steps

  const Step& step(int i) const { return result_.steps[static_cast<size_t>(i)]; }
  bool is_number(int i) const { return step(i).kind == Step::Kind::number; }

  Result<int> add(const Step& s) {
    if (result_.steps.size() >= kMostSteps) return fail(s.at, "the expression has more than 4096 steps");
    result_.steps.push_back(s);
    return static_cast<int>(result_.steps.size()) - 1;
  }
  Result<int> number_step(double value, size_t at) {
    Step s;
    s.kind = Step::Kind::number, s.a = value, s.at = at;
    return add(s);
  }
  // Among numbers alone it is worked out.
  Result<int> operation(PointwiseOp op, size_t at, int x, int y = -1, int z = -1, double a = 0, double b = 0) {
    const int arguments[] = {x, y, z};
    bool numbers = true;
    for (const int i : arguments) numbers = numbers && (i < 0 || is_number(i));
    if (numbers) {
      const auto value = [&](int i) { return i < 0 ? 0.0 : step(i).a; };
      return number_step(sparkle::evaluate(op, value(x), value(y), value(z), a, b), at);
    }
    Step s;
    s.kind = Step::Kind::operation, s.op = op, s.x = x, s.y = std::max(y, 0), s.z = std::max(z, 0), s.a = a, s.b = b, s.at = at;
    return add(s);
  }

  // -- the grammar

  struct Deeper {
    explicit Deeper(int& d) : depth(d) { ++depth; }
    ~Deeper() { --depth; }
    int& depth;
  };
  Status check_depth() const {
    if (depth_ > kDeepest) return fail(token_.at, "the expression is nested more than 200 deep");
    return ok();
  }

  Result<int> choice() {
    const Deeper deeper(depth_);
    SPARKLE_CHECK(check_depth());
    SPARKLE_TRY(condition, disjunction());
    if (!is_sign("?")) return condition;
    const size_t at = token_.at;
    SPARKLE_CHECK(advance());
    SPARKLE_TRY(yes, choice());
    SPARKLE_CHECK(expect(":", "':'"));
    SPARKLE_TRY(no, choice());
    return operation(PointwiseOp::select, at, condition, yes, no);
  }

  // Operators of one rank, from left to right.
  template <class Find, class Inner>
  Result<int> chain(Find&& find, Inner&& inner) {
    SPARKLE_TRY(left, inner());
    while (const std::optional<PointwiseOp> op = find()) {
      const size_t at = token_.at;
      SPARKLE_CHECK(advance());
      SPARKLE_TRY(right, inner());
      SPARKLE_TRY(both, operation(*op, at, left, right));
      left = both;
    }
    return left;
  }
  Result<int> disjunction() {
    return chain([&] { return is_word("or") || is_sign("||") ? std::optional(PointwiseOp::logical_or) : std::nullopt; },
                 [&] { return exclusive(); });
  }
  Result<int> exclusive() {
    return chain([&] { return is_word("xor") ? std::optional(PointwiseOp::logical_xor) : std::nullopt; },
                 [&] { return conjunction(); });
  }
  Result<int> conjunction() {
    return chain([&] { return is_word("and") || is_sign("&&") ? std::optional(PointwiseOp::logical_and) : std::nullopt; },
                 [&] { return negation(); });
  }
  Result<int> negation() {
    if (!is_word("not") && !is_sign("!")) return comparison();
    const Deeper deeper(depth_);
    SPARKLE_CHECK(check_depth());
    const size_t at = token_.at;
    SPARKLE_CHECK(advance());
    SPARKLE_TRY(x, negation());
    return operation(PointwiseOp::logical_not, at, x);
  }
  // Not equal is the negation of equal: it holds for NaN.
  Result<int> comparison() {
    SPARKLE_TRY(left, sum());
    const std::optional<PointwiseOp> op = compares();
    if (!op) return left;
    const bool negated = is_sign("!=");
    const size_t at = token_.at;
    SPARKLE_CHECK(advance());
    SPARKLE_TRY(right, sum());
    if (compares()) return fail(token_.at, "comparisons do not chain; write a < b and b < c");
    SPARKLE_TRY(both, operation(*op, at, left, right));
    if (negated) return operation(PointwiseOp::logical_not, at, both);
    return both;
  }
  std::optional<PointwiseOp> compares() const {
    if (is_sign("<")) return PointwiseOp::less;
    if (is_sign("<=")) return PointwiseOp::less_equal;
    if (is_sign(">")) return PointwiseOp::greater;
    if (is_sign(">=")) return PointwiseOp::greater_equal;
    if (is_sign("==") || is_sign("!=")) return PointwiseOp::equal;
    return std::nullopt;
  }
  Result<int> sum() {
    return chain(
        [&] {
          return is_sign("+") ? std::optional(PointwiseOp::add) : is_sign("-") ? std::optional(PointwiseOp::sub) : std::nullopt;
        },
        [&] { return product(); });
  }
  Result<int> product() {
    return chain(
        [&]() -> std::optional<PointwiseOp> {
          if (is_sign("*")) return PointwiseOp::mul;
          if (is_sign("/")) return PointwiseOp::div;
          if (is_sign("%")) return PointwiseOp::floor_mod;
          return std::nullopt;
        },
        [&] { return with_sign(); });
  }
  Result<int> with_sign() {
    if (!is_sign("-") && !is_sign("+")) return power();
    const Deeper deeper(depth_);
    SPARKLE_CHECK(check_depth());
    const bool negative = is_sign("-");
    const size_t at = token_.at;
    SPARKLE_CHECK(advance());
    SPARKLE_TRY(x, with_sign());
    if (!negative) return x;
    return operation(PointwiseOp::neg, at, x);
  }
  // Binds more than a sign on its left, less than one on its right; from right to left.
  Result<int> power() {
    SPARKLE_TRY(base, primary());
    if (!is_sign("**")) return base;
    const Deeper deeper(depth_);
    SPARKLE_CHECK(check_depth());
    const size_t at = token_.at;
    SPARKLE_CHECK(advance());
    SPARKLE_TRY(exponent, with_sign());
    return operation(PointwiseOp::pow, at, base, exponent);
  }
  Result<int> primary() {
    const Token token = token_;
    if (token.kind == Token::Kind::number) {
      SPARKLE_CHECK(advance());
      return number_step(token.number, token.at);
    }
    if (is_sign("(")) {
      SPARKLE_CHECK(advance());
      SPARKLE_TRY(inner, choice());
      SPARKLE_CHECK(expect(")", "')'"));
      return inner;
    }
    if (token.kind != Token::Kind::word) return unexpected("a number, a name or '('");
    for (const std::string_view word : {"and", "or", "xor", "not"})
      if (token.text == word) return unexpected("a number, a name or '('");
    SPARKLE_CHECK(advance());
    if (is_sign("(")) return call(token);
    if (token.text == "pi") return number_step(std::numbers::pi, token.at);
    if (token.text == "inf") return number_step(std::numeric_limits<double>::infinity(), token.at);
    if (token.text == "nan") return number_step(std::numeric_limits<double>::quiet_NaN(), token.at);
    if (const auto known = expression_function(token.text))
      return fail(token.at, "'" + std::string(known->name) + "' is a function; write " + std::string(known->name) + "(...)");
    return operand(token);
  }
  Result<int> operand(const Token& token) {
    auto& names = result_.names;
    const auto at = std::find(names.begin(), names.end(), token.text);
    Step s;
    s.kind = Step::Kind::operand, s.x = static_cast<int>(at - names.begin()), s.at = token.at;
    if (at == names.end()) names.emplace_back(token.text);
    for (size_t i = 0; i < result_.steps.size(); ++i)
      if (result_.steps[i].kind == Step::Kind::operand && result_.steps[i].x == s.x) return static_cast<int>(i);
    return add(s);
  }

  Result<int> call(const Token& name) {
    const ExpressionFunction* f = expression_function(name.text);
    DType type = DType::f32;
    const bool cast = !f && (name.text == "bool" || dtype_from(name.text).has_value());
    if (cast) type = name.text == "bool" ? DType::boolean : *dtype_from(name.text);
    if (!f && !cast) {
      const std::string_view nearest = nearest_function(name.text);
      return fail(name.at, "there is no function '" + std::string(name.text.substr(0, 40)) + "'" +
                               (nearest.empty() ? "; docs/expressions.md lists them"
                                                : "; did you mean '" + std::string(nearest) + "'?"));
    }
    SPARKLE_CHECK(advance());
    std::vector<int> values;
    std::vector<size_t> places;
    while (!is_sign(")")) {
      if (!values.empty()) SPARKLE_CHECK(expect(",", "',' or ')'"));
      places.push_back(token_.at);
      SPARKLE_TRY(value, choice());
      values.push_back(value);
    }
    const int given = static_cast<int>(values.size());
    const int least = cast ? 1 : f->values == kAnyValues ? 2 : f->values + (f->needed ? f->parameters : 0);
    const int most = cast ? 1 : f->values == kAnyValues ? static_cast<int>(kMostSteps) : f->values + f->parameters;
    if (given < least || given > most) {
      const std::string range = least == most                  ? std::to_string(least)
                                : f && f->values == kAnyValues ? "2 or more"
                                                               : std::to_string(least) + " to " + std::to_string(most);
      return fail(name.at, "'" + std::string(name.text) + "' takes " + range + (most == 1 ? " value" : " values") + ", " +
                               std::to_string(given) + (given == 1 ? " is given" : " are given"));
    }
    SPARKLE_CHECK(advance());
    if (cast) return cast_step(type, name.at, values[0]);
    if (f->values == kAnyValues) {
      int all = values[0];
      for (size_t i = 1; i < values.size(); ++i) {
        SPARKLE_TRY(both, operation(f->op, name.at, all, values[i]));
        all = both;
      }
      return all;
    }
    std::array<double, 2> parameters = f->defaults;
    for (int i = f->values; i < given; ++i) {
      const auto k = static_cast<size_t>(i);
      if (!is_number(values[k])) {
        if (f->op == PointwiseOp::clip) return bounded(name.at, values);
        return fail(places[k], "value " + std::to_string(i + 1) + " of '" + std::string(f->name) + "' must be a number");
      }
      parameters[static_cast<size_t>(i - f->values)] = step(values[k]).a;
    }
    return operation(f->op, name.at, values[0], f->values > 1 ? values[1] : -1, f->values > 2 ? values[2] : -1, parameters[0],
                     parameters[1]);
  }
  // Bounds that are tensors: the upper one wins where they cross.
  Result<int> bounded(size_t at, const std::vector<int>& values) {
    SPARKLE_TRY(raised, operation(PointwiseOp::max, at, values[0], values[1]));
    return operation(PointwiseOp::min, at, raised, values[2]);
  }
  Result<int> cast_step(DType type, size_t at, int x) {
    Step s;
    s.kind = Step::Kind::cast, s.x = x, s.to = type, s.at = at;
    return add(s);
  }

  Expression result_;
  Token token_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<Expression> parse_expression(std::string_view text) { return Parser(text).parse(); }

Error error_at(Reason reason, std::string_view text, size_t at, const std::string& message) {
  constexpr size_t kAround = 60;  // characters shown on each side
  at = std::min(at, text.size());
  const size_t begin = text.substr(0, at).rfind('\n') + 1;  // npos + 1 is 0
  size_t end = text.find('\n', at);
  if (end == std::string_view::npos) end = text.size();
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };  // inside of a UTF-8 character
  const auto characters = [&](size_t from, size_t to) {
    return static_cast<size_t>(std::count_if(text.begin() + static_cast<std::ptrdiff_t>(from),
                                             text.begin() + static_cast<std::ptrdiff_t>(to),
                                             [&](char c) { return !continues(c); }));
  };
  const auto line = static_cast<size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(begin), '\n')) + 1;
  std::string where = "column " + std::to_string(characters(begin, at) + 1);
  if (text.find('\n') != std::string_view::npos) where = "line " + std::to_string(line) + ", " + where;
  size_t from = begin, to = end;
  if (at - begin > kAround) from = at - kAround;
  if (end - at > kAround) to = at + kAround;
  while (from < at && continues(text[from])) ++from;
  while (to > at && to < text.size() && continues(text[to])) --to;
  std::string shown;
  for (const char c : text.substr(from, to - from)) shown += static_cast<unsigned char>(c) < ' ' || c == 127 ? ' ' : c;
  return {reason, where + ": " + message + "\n  " + shown + "\n  " + std::string(characters(from, at), ' ') + "^"};
}

double evaluate(const Expression& expression, const std::vector<double>& operands) {
  std::vector<double> values;
  for (const ExpressionStep& s : expression.steps) {
    const auto value = [&](int i) { return static_cast<size_t>(i) < values.size() ? values[static_cast<size_t>(i)] : 0.0; };
    switch (s.kind) {
      case ExpressionStep::Kind::operand: values.push_back(operands[static_cast<size_t>(s.x)]); break;
      case ExpressionStep::Kind::number: values.push_back(s.a); break;
      case ExpressionStep::Kind::cast: {
        const double x = value(s.x);
        values.push_back(s.to == DType::boolean ? (x != 0 ? 1.0 : 0.0) : is_float(s.to) ? x : std::trunc(x));
        break;
      }
      case ExpressionStep::Kind::operation:
        values.push_back(evaluate(s.op, value(s.x), value(s.y), value(s.z), s.a, s.b));
        break;
    }
  }
  return values.back();
}

std::vector<std::string> expression_functions() {
  std::vector<std::string> names;
  for (const ExpressionFunction& f : expression_function_list()) names.emplace_back(f.name);
  return names;
}

}  // namespace sparkle
