// Expressions run on the CPU and, where there is one, a Vulkan device: random ones of the functions that rounding cannot turn,
// against plain evaluation in double precision; broadcasting, types and what is kept.
#include "run/evaluate/evaluate_expression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "families/values/element.h"
#include "graph/expressions/expression.h"
#include "graph/infer/infer.h"
#include "run/opening/open_backend.h"

namespace sparkle {
namespace {

std::shared_ptr<Backend> backend_of(const std::string& name) {
  BackendOptions options;
  options.name = name;
  options.threads = 2;
  auto open = open_backend(options);
  if (open.ok()) return open->backend;
  std::printf("SKIP: %s\n", open.error().message.c_str());
  return nullptr;
}

HostTensor random_tensor(std::mt19937_64& random, DType type, const Dims& shape) {
  HostTensor t = HostTensor::zeros(type, shape);
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < t.elements(); ++i)
    store_element(type, normal(random) * (is_float(type) ? 1 : 9), t.bytes.get() + i * size_of(type));
  return t;
}
double value_of(const HostTensor& t, int64_t i) { return load_element(t.dtype, t.bytes.get() + i * size_of(t.dtype)); }

// The element of an operand that broadcasts to the place `at` of `shape`.
double broadcast_element(const HostTensor& t, const Dims& shape, int64_t at) {
  int64_t index = 0, step = 1;
  for (int i = shape.size() - 1, k = t.shape.size() - 1; k >= 0; --i, --k) {
    if (t.shape[k] > 1) index += at % shape[i] * step;
    step *= t.shape[k];
    at /= shape[i];
  }
  return value_of(t, index);
}

// Functions whose values lie in a small range and do not jump: any of any of them stays as accurate as its parts.
std::string smooth(std::mt19937_64& random, int depth) {
  const auto between = [&](int a, int b) { return std::uniform_int_distribution<int>(a, b)(random); };
  if (depth == 0) {
    constexpr const char* kLeaves[] = {"x", "y", "z", "0.5", "-1.25", "3"};
    return kLeaves[between(0, 5)];
  }
  const auto inner = [&] { return smooth(random, depth - 1); };
  switch (between(0, 7)) {
    case 0: return "(" + inner() + " + " + inner() + ") * 0.5";
    case 1: return "tanh(" + inner() + ")";
    case 2: return "min(" + inner() + ", " + inner() + ", 2)";
    case 3: return "sigmoid(" + inner() + " - " + inner() + ")";
    case 4: return "clip(" + inner() + " * " + inner() + ", -3, 3)";
    case 5: return "max(-" + inner() + ", leaky_relu(" + inner() + ", 0.1))";
    case 6: return "sin(" + inner() + ") / (1 + abs(" + inner() + "))";
    default: return "(x < y ? " + inner() + " : " + inner() + ")";
  }
}

void check_random(const std::string& device, uint64_t seeds) {
  const auto backend = backend_of(device);
  if (!backend) GTEST_SKIP() << "no device " << device;
  ExpressionRunner runner(backend);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    std::mt19937_64 random(seed);
    const std::string text = smooth(random, 1 + static_cast<int>(seed % 3)) + " + 0 * (x + y + z)";
    const Dims shapes[] = {{2, 3, 5, 4}, {5, 4}, {3, 1, 4}, {1}, {2, 1, 1, 1}};
    std::vector<ExpressionArgument> arguments;
    for (const char* name : {"x", "y", "z"})
      arguments.push_back({name, random_tensor(random, DType::f32, shapes[std::uniform_int_distribution<int>(0, 4)(random)])});
    const auto result = runner.run(text, arguments);
    ASSERT_TRUE(result.ok()) << text << "\n" << result.error().message;
    Dims shape;
    for (const auto& a : arguments) shape = *broadcast(shape, a.tensor.shape);
    ASSERT_EQ(result->shape, shape) << text;
    const auto parsed = parse_expression(text);
    for (int64_t i = 0; i < result->elements(); ++i) {
      std::vector<double> values;
      for (const std::string& name : parsed->names)
        values.push_back(broadcast_element(arguments[static_cast<size_t>(name[0] - 'x')].tensor, shape, i));
      ASSERT_NEAR(value_of(*result, i), evaluate(*parsed, values), 5e-6) << "seed " << seed << " " << text << " at " << i;
    }
  }
}

TEST(EvaluateExpression, RandomOnesOnTheCpu) { check_random("cpu", 120); }
TEST(EvaluateExpression, RandomOnesOnVulkan) { check_random("vulkan", 24); }

TEST(EvaluateExpression, TypesAndNumbers) {
  const auto backend = backend_of("cpu");
  ExpressionRunner runner(backend);
  const HostTensor i = HostTensor::of<int64_t>(DType::i64, {3}, {int64_t{1} << 60, -7, 4});
  auto r = runner.run("i * 2 + 1", {{"i", i}});
  ASSERT_TRUE(r.ok()) << r.error().message;
  ASSERT_EQ(r->dtype, DType::i64);
  EXPECT_EQ(r->data<int64_t>()[0], (int64_t{1} << 61) + 1);
  EXPECT_EQ(r->data<int64_t>()[1], -13);
  r = runner.run("i / 2", {{"i", i}});
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->data<int64_t>()[1], -3);  // truncated
  r = runner.run("x > b",
                 {{"x", HostTensor::of<float>(DType::f32, {2}, {1, 3})}, {"b", HostTensor::of<double>(DType::f64, {}, {2})}});
  ASSERT_TRUE(r.ok()) << r.error().message;
  EXPECT_EQ(r->dtype, DType::boolean);
  EXPECT_EQ(value_of(*r, 0), 0);
  EXPECT_EQ(value_of(*r, 1), 1);
  r = runner.run("2 * pi", {});
  ASSERT_TRUE(r.ok()) << r.error().message;
  EXPECT_NEAR(value_of(*r, 0), 6.283185307, 1e-6);
  r = runner.run("x", {{"x", i}});
  ASSERT_TRUE(r.ok()) << r.error().message;
  EXPECT_EQ(r->data<int64_t>()[0], int64_t{1} << 60);
  r = runner.run("b", {{"b", HostTensor::of<float>(DType::f32, {}, {2.5f})}});
  ASSERT_TRUE(r.ok()) << r.error().message;
  EXPECT_EQ(value_of(*r, 0), 2.5);
}

TEST(EvaluateExpression, ArgumentsMustFit) {
  ExpressionRunner runner(backend_of("cpu"));
  const HostTensor x = HostTensor::of<float>(DType::f32, {2}, {1, 2});
  EXPECT_EQ(runner.run("x + 1", {{"x", x}, {"x", x}}).error().message, "'x' is given twice.");
  EXPECT_EQ(runner.run("x + 1", {{"x", x}, {"y", x}}).error().message, "'y' is given, but the expression does not use it.");
  EXPECT_EQ(runner.run("x + z", {{"x", x}}).error().message, "column 5: 'z' is not given; there are x\n  x + z\n      ^");
  EXPECT_EQ(runner.run("x +", {{"x", x}}).error().reason, Reason::bad_format);
}

TEST(EvaluateExpression, OneStepForTheWholeExpression) {
  ExpressionRunner runner(backend_of("cpu"));
  std::mt19937_64 random(1);
  RunReport report;
  const auto r = runner.run("silu(x) * a + b",
                            {{"x", random_tensor(random, DType::f32, {2, 8, 16})},
                             {"a", random_tensor(random, DType::f32, {16})},
                             {"b", HostTensor::of<double>(DType::f64, {}, {0.5})}},
                            &report);
  ASSERT_TRUE(r.ok()) << r.error().message;
  EXPECT_EQ(report.plan->steps.size(), 1u);
}

}  // namespace
}  // namespace sparkle
